-- Models by name: from a raw table to the best model, in one statement.

CREATE OR REPLACE FUNCTION cerebro.train(
    source text, target text, model text DEFAULT NULL, budget interval DEFAULT '5 minutes', columns text DEFAULT '*',
    types jsonb DEFAULT NULL, task text DEFAULT NULL, split text DEFAULT NULL, weight text DEFAULT NULL,
    models text[] DEFAULT NULL, space jsonb DEFAULT NULL, search text DEFAULT 'auto', search_params jsonb DEFAULT NULL, metric text DEFAULT NULL,
    configs integer DEFAULT NULL, epochs integer DEFAULT NULL, ensemble integer DEFAULT NULL, start_from text[] DEFAULT NULL, seed bigint DEFAULT NULL,
    backend text DEFAULT NULL, workers integer DEFAULT NULL, use_gpus boolean DEFAULT FALSE,
    background boolean DEFAULT FALSE, group_by text DEFAULT NULL, min_group_rows integer DEFAULT NULL,
    max_cost double precision DEFAULT NULL, max_cpu interval DEFAULT NULL) RETURNS TABLE (
    run_id bigint, rank bigint, mst_key integer, template text, params jsonb, epochs integer, status text, metric text,
    validation double precision, training double precision, seconds double precision, group_value text)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.train(plpy, GD, source, target, model, budget, columns, types, task, split, weight, models, space, search, search_params, metric, configs, epochs, ensemble, start_from, seed, backend, workers, use_gpus, background, group_by, min_group_rows, max_cost, max_cpu)
$$;
COMMENT ON FUNCTION cerebro.train(text, text, text, interval, text, jsonb, text, text, text, text[], jsonb, text, jsonb, text, integer, integer, integer, text[], bigint, text, integer, boolean, boolean, text, integer, double precision, interval)
IS 'Train a model by name that predicts a column of a raw table from its others, in the time of budget, and return the configurations that were tried, best first';

CREATE OR REPLACE FUNCTION cerebro.plan(
    source text, target text, model text DEFAULT NULL, budget interval DEFAULT '5 minutes', columns text DEFAULT '*',
    types jsonb DEFAULT NULL, task text DEFAULT NULL, split text DEFAULT NULL, weight text DEFAULT NULL,
    models text[] DEFAULT NULL, space jsonb DEFAULT NULL, search text DEFAULT 'auto', search_params jsonb DEFAULT NULL, metric text DEFAULT NULL,
    configs integer DEFAULT NULL, epochs integer DEFAULT NULL, ensemble integer DEFAULT NULL, start_from text[] DEFAULT NULL, seed bigint DEFAULT NULL,
    backend text DEFAULT NULL, workers integer DEFAULT NULL, use_gpus boolean DEFAULT FALSE,
    background boolean DEFAULT FALSE, group_by text DEFAULT NULL, min_group_rows integer DEFAULT NULL,
    max_cost double precision DEFAULT NULL, max_cpu interval DEFAULT NULL) RETURNS TABLE (section text, name text, what text, why text, data jsonb)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.plan_train(plpy, GD, source, target, model, budget, columns, types, task, split, weight, models, space, search, search_params, metric, configs, epochs, ensemble, start_from, seed, backend, workers, use_gpus, background, group_by, min_group_rows, max_cost, max_cpu)
$$;
COMMENT ON FUNCTION cerebro.plan(text, text, text, interval, text, jsonb, text, text, text, text[], jsonb, text, jsonb, text, integer, integer, integer, text[], bigint, text, integer, boolean, boolean, text, integer, double precision, interval)
IS 'What cerebro.train would do with the same arguments: columns and their encodings, rows on either side, configurations, time and disk; nothing is trained or written';

CREATE OR REPLACE FUNCTION cerebro.deploy(model text, version text DEFAULT 'best') RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.deploy(plpy, GD, model, version)
$$;
COMMENT ON FUNCTION cerebro.deploy(text, text) IS 'Let a version of an own model predict from now on: best, newest, previous (the one that did so before), or a number; return its number';

CREATE OR REPLACE FUNCTION cerebro.register(model text, table_name text, mst_key integer DEFAULT NULL) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.register(plpy, GD, model, table_name, mst_key)
$$;
COMMENT ON FUNCTION cerebro.register(text, text, integer) IS 'Give a model that madlib_fit or madlib_fit_multiple_model has trained a name, as a version from then on: what is asked of models by name is asked of it over rows with the arrays that it was trained on; return the number of the version';

CREATE OR REPLACE FUNCTION cerebro.drop_model(model text) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.drop_model(plpy, GD, model)
$$;
COMMENT ON FUNCTION cerebro.drop_model(text) IS 'Remove an own model with all its versions, their weights, and the packed tables of their runs; the log of the runs stays';

CREATE OR REPLACE FUNCTION cerebro.remove_dropped_models() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DELETE FROM cerebro.grant_state s USING cerebro.model_log m WHERE s.owner = m.owner AND s.model = m.model AND m.dropped;
DELETE FROM cerebro.grant_log g USING cerebro.model_log m WHERE g.owner = m.owner AND g.model = m.model AND m.dropped;
DELETE FROM cerebro.group_log g USING cerebro.model_log m WHERE g.owner = m.owner AND g.model = m.model AND m.dropped;
DELETE FROM cerebro.version_log v USING cerebro.model_log m WHERE v.owner = m.owner AND v.model = m.model AND m.dropped;
DELETE FROM cerebro.model_log m WHERE m.dropped;
$$;
COMMENT ON FUNCTION cerebro.remove_dropped_models() IS 'Internal: remove the models that their owners have marked as dropped';

CREATE OR REPLACE FUNCTION cerebro.remove_grants() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DELETE FROM cerebro.grant_state s USING cerebro.grant_log g
WHERE s.owner = g.owner AND s.model = g.model AND (g.gate IS NULL OR s.version <> g.version);
DELETE FROM cerebro.grant_log g WHERE g.gate IS NULL;
$$;
COMMENT ON FUNCTION cerebro.remove_grants() IS 'Internal: remove grants of models that their owners have taken back, and the weights of versions that nobody was granted';

CREATE OR REPLACE FUNCTION cerebro.template_fields() RETURNS TABLE (
    template text, description text, field text, meaning text, usual jsonb, usual_regression jsonb, range jsonb)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.template_fields(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.template_fields() IS 'Internal: the rows of the view cerebro.template';
