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
return named_models.train(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.train IS 'Train a model by name that predicts a column of a raw table from its others, in the time of budget, and return the configurations that were tried, best first';

CREATE OR REPLACE FUNCTION cerebro.plan(@arguments of cerebro.train@) RETURNS TABLE (section text, name text, what text, why text, data jsonb)
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.plan_train(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.plan IS 'What cerebro.train would do with the same arguments: columns and their encodings, rows on either side, configurations, time and disk; nothing is trained or written';

CREATE OR REPLACE FUNCTION cerebro.deploy(model text, version text DEFAULT 'best') RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.deploy(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.deploy IS 'Let a version of an own model predict from now on: best, newest, previous (the one that did so before), or a number; return its number';

CREATE OR REPLACE FUNCTION cerebro.register(model text, table_name text, mst_key integer DEFAULT NULL) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.register(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.register IS 'Give a model that madlib_fit or madlib_fit_multiple_model has trained a name, as a version from then on: what is asked of models by name is asked of it over rows with the arrays that it was trained on; return the number of the version';

CREATE OR REPLACE FUNCTION cerebro.drop_model(model text) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.drop_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drop_model IS 'Remove an own model with all its versions, their weights, and the packed tables of their runs; the log of the runs stays';

-- As cerebro.remove_dropped, these touch no rows of another model, for which its owner would have to wait.
CREATE OR REPLACE FUNCTION cerebro.remove_dropped_model(owner name, model text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM cerebro.model_log m WHERE m.owner = remove_dropped_model.owner AND m.model = remove_dropped_model.model AND m.dropped;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM cerebro.grant_state s WHERE s.owner = remove_dropped_model.owner AND s.model = remove_dropped_model.model;
    DELETE FROM cerebro.grant_log g WHERE g.owner = remove_dropped_model.owner AND g.model = remove_dropped_model.model;
    DELETE FROM cerebro.group_log g WHERE g.owner = remove_dropped_model.owner AND g.model = remove_dropped_model.model;
    DELETE FROM cerebro.version_log v WHERE v.owner = remove_dropped_model.owner AND v.model = remove_dropped_model.model;
    DELETE FROM cerebro.model_log m WHERE m.owner = remove_dropped_model.owner AND m.model = remove_dropped_model.model AND m.dropped;
END;
$$;
COMMENT ON FUNCTION cerebro.remove_dropped_model IS 'Internal: remove a model that its owner has marked as dropped';

CREATE OR REPLACE FUNCTION cerebro.remove_grants(owner name, model text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
BEGIN
    SELECT g.version, g.gate INTO granted FROM cerebro.grant_log g
    WHERE g.owner = remove_grants.owner AND g.model = remove_grants.model
      AND (g.gate IS NULL OR EXISTS (SELECT FROM cerebro.grant_state s WHERE s.owner = remove_grants.owner AND s.model = remove_grants.model
                                                                         AND s.version <> g.version));
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM cerebro.grant_state s
    WHERE s.owner = remove_grants.owner AND s.model = remove_grants.model AND (granted.gate IS NULL OR s.version <> granted.version);
    DELETE FROM cerebro.grant_log g WHERE g.owner = remove_grants.owner AND g.model = remove_grants.model AND g.gate IS NULL;
END;
$$;
COMMENT ON FUNCTION cerebro.remove_grants IS 'Internal: remove the grant of a model that its owner has taken back, and the weights of versions that nobody was granted';

CREATE OR REPLACE FUNCTION cerebro.template_fields() RETURNS TABLE (
    template text, description text, field text, meaning text, usual jsonb, usual_regression jsonb, range jsonb)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.template_fields(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro.template_fields IS 'Internal: the rows of the view cerebro.template';
