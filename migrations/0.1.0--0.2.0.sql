-- From 0.1.0 to 0.2.0: what of the tables cannot be created or replaced.

-- Arguments were added.
DROP FUNCTION @extschema@.madlib_keras_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text);
DROP FUNCTION @extschema@.madlib_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text);
DROP FUNCTION cerebro.resume(bigint);

-- A model may have several inputs.
DROP FUNCTION cerebro.predict_row(text, bytea);

CREATE POLICY own_numbers ON cerebro.run_log AS RESTRICTIVE FOR INSERT WITH CHECK (run_id = currval('cerebro.run_log_run_id_seq'));
