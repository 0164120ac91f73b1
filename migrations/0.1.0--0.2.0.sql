-- From 0.1.0 to 0.2.0: what of the tables cannot be created or replaced.

-- Arguments were added.
DROP FUNCTION @extschema@.madlib_keras_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text);
DROP FUNCTION @extschema@.madlib_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text);
DROP FUNCTION cerebro.resume(bigint);

ALTER TABLE cerebro.visit ADD COLUMN kind text NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'average'));
COMMENT ON COLUMN cerebro.visit.kind IS 'train, or average: the visit after those of an epoch, which makes the mean of the states that they left';

-- A model may have several inputs.
DROP FUNCTION cerebro.predict_row(text, bytea);

CREATE POLICY own_numbers ON cerebro.run_log AS RESTRICTIVE FOR INSERT WITH CHECK (run_id = currval('cerebro.run_log_run_id_seq'));

COMMENT ON COLUMN cerebro.setting.name IS 'trainer_python, worker_conninfo, trainer_idle_seconds, trainer_memory_mb, cache_mb, compilation_cache, gpus, function_path';
