-- Models by name: from a raw table to the best model, in one statement.

CREATE OR REPLACE FUNCTION cerebro.train(
    -- The table or view to learn from.
    source text DEFAULT NULL,
    -- The column to predict: its name, as exact text. Every call names it.
    target text DEFAULT NULL,
    -- Name of the model. NULL: `<table>_<target>`; a call with `query` names it. Each call adds a
    -- version to it.
    model text DEFAULT NULL,
    -- Time for the whole call. Unless `configs` and `epochs` are given, it determines how many
    -- configurations are tried for how many epochs.
    budget interval DEFAULT '5 minutes',
    -- The columns to learn from: `'*'`, a list, or `'* except a, b'`.
    columns text DEFAULT '*',
    -- Kinds of columns, such as `{"zip": "category", "note": "text"}`, instead of those that are
    -- inferred: `number`, `category`, `moment` (times and intervals), `text`, `vector`, `series`
    -- and `image`.
    types jsonb DEFAULT NULL,
    -- `'classification'` or `'regression'`. NULL: the task of the deployed version, else chosen by
    -- the type and the values of the target: see [Task](#task).
    task text DEFAULT NULL,
    -- The rows that are held out for validation, such as `'random 0.2'` or `'last 0.2 by sold_on'`: see
    -- [Split](#split).
    split text DEFAULT NULL,
    -- Column of numbers that weigh rows in the training loss (0: ignored, 2: counted twice): its
    -- name, as exact text. The column is not learned from, and metrics ignore it.
    weight text DEFAULT NULL,
    -- Templates to try, such as `realmlp` and `linear`, or networks of an architecture table: see
    -- [Templates](#templates).
    models text[] DEFAULT NULL,
    -- Values of the fields of templates: `{"depth": 3}` fixes a field, `{"lr": [1e-4, 1e-1,
    -- "log"]}` is a range, `{"width": [128, 256]}` a choice. Other fields are drawn from their
    -- usual ranges.
    space jsonb DEFAULT NULL,
    -- The way in which configurations are chosen and stopped, such as `'asha'`, `'patience'` or
    -- `'tpe'`: see [Search](#search).
    search text DEFAULT 'auto',
    -- Parameters of `search`.
    search_params jsonb DEFAULT NULL,
    -- The metric by which models are compared, as [cerebro.evaluate](#cerebro.evaluate) defines it:
    -- `accuracy` (the default), `balanced_accuracy`, `f1`, `auc`, `average_precision`, `log_loss` or
    -- `brier`; for a regression `rmse` (the default), `mae`, `mape` or `r2`. See
    -- [Metrics](#metrics-and-early-stopping).
    metric text DEFAULT NULL,
    -- Number of configurations to try. NULL: as many as fit into `budget`.
    configs integer DEFAULT NULL,
    -- Most epochs of a configuration. NULL: as many as fit into `budget`.
    epochs integer DEFAULT NULL,
    -- Most picks of greedy ensemble selection: see [Ensembles](#ensembles). NULL: 10, or 1 for
    -- more than 100,000 training rows.
    ensemble integer DEFAULT NULL,
    -- Models, or runs such as `'run:12'`, whose best configurations are tried first.
    start_from text[] DEFAULT NULL,
    -- Seed of all random choices: see [Repeating a call](#repeating-a-call).
    seed bigint DEFAULT NULL,
    -- `'tensorflow'`, `'jax'` or `'torch'`.
    backend text DEFAULT 'tensorflow',
    -- Number of worker sessions, which share the cores. NULL: chosen by cores, memory and segments.
    workers integer DEFAULT NULL,
    -- Give each trainer a GPU ([GPUs](../../how-to/gpus.md)).
    use_gpus boolean DEFAULT FALSE,
    -- TRUE: return one row, with the id of the run, as soon as the run is logged. See
    -- [cerebro.wait](#cerebro.wait).
    background boolean DEFAULT FALSE,
    -- Column of texts, whole numbers, dates or booleans, whose values also get models of their own:
    -- see [Groups](#groups).
    group_by text DEFAULT NULL,
    -- Training rows that a value of `group_by` needs for a model of its own. NULL: 100.
    min_group_rows integer DEFAULT NULL,
    -- Most that the run may cost, by the prices that an administrator has set ([What runs
    -- cost](#what-runs-cost)). 55000 if nothing has a price.
    max_cost double precision DEFAULT NULL,
    -- Most processor time that the run may use, all processes together.
    max_cpu interval DEFAULT NULL,
    -- A query in place of `source`: one SELECT, VALUES, TABLE or WITH that only reads. See
    -- [Queries](#queries).
    query text DEFAULT NULL,
    -- The members of the model that are trained again on all rows, also those that were held out:
    -- `'auto'`, `'all'` or `'none'`. See [Training on all rows](#training-on-all-rows).
    refit text DEFAULT 'auto',
    -- Costs of mistakes, by the class of a row and the predicted class, such as `{"ill": {"well":
    -- 20}}`: see [Costs](#costs).
    costs jsonb DEFAULT NULL
) RETURNS TABLE (
    run_id bigint, rank bigint, mst_key integer, template text, metric text, validation double precision, epochs integer,
    status text, training double precision, seconds double precision, group_value text, params jsonb)
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
COMMENT ON FUNCTION cerebro.plan IS 'Show the plan of cerebro.train with the same arguments, as EXPLAIN does for a query: columns and their encodings, rows, configurations, time and disk. Nothing is trained or written';

CREATE OR REPLACE FUNCTION cerebro.deploy(
    -- An own model.
    model text,
    -- `'best'`: the best by the metric of the newest version, among those with its target and task. Equal values are decided by
    -- the loss, then by the size.
    -- `'newest'`. `'previous'`: the one that predicted before. Or a number.
    version text DEFAULT 'best'
) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.deploy(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.deploy IS 'Let a version of an own model predict from now on: best, newest, previous (the one that did so before), or a number; return its number';

CREATE OR REPLACE FUNCTION cerebro.deploy(model text, version integer) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.deploy(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.deploy IS 'Let a version of an own model predict from now on, by its number; return that';

CREATE OR REPLACE FUNCTION cerebro.register(
    -- Name of the model. An existing model gets a version more.
    model text,
    -- The model table.
    model_table text,
    -- The configuration, if the table has several. NULL: the best one, of a table of
    -- `madlib_automl`.
    mst_key integer DEFAULT NULL
) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.register(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.register IS 'Add a model of a model table of MADlib''s functions as a version of a model by name; return the number of the version. Its rows have the arrays that it was trained on';

CREATE OR REPLACE FUNCTION cerebro.export_model(
    -- An own model.
    model text,
    -- A version by its number. NULL: the one that predicts.
    version integer DEFAULT NULL
) RETURNS bytea
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.export_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.export_model IS 'Return a version of an own model as the bytes of a file, which has everything that predictions need and no code; cerebro.import_model adds it to another database';

CREATE OR REPLACE FUNCTION cerebro.import_model(
    -- The bytes of a file that `cerebro.export_model` returned.
    exported bytea,
    -- Name of the model. An existing model gets a version more. NULL: its name in the file.
    model text DEFAULT NULL
) RETURNS integer
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.import_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.import_model IS 'Check the version in a file, and add it to an own model; return the number of the version, which predicts if no other one is deployed';

CREATE OR REPLACE FUNCTION cerebro.drop_model(
    -- An own model.
    model text
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.drop_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.drop_model IS 'Remove an own model with all its versions, their weights, and the packed tables of their runs; the log of the runs stays';

-- As cerebro_internal.remove_dropped, these touch no rows of another model, for which its owner would have to wait.
CREATE OR REPLACE FUNCTION cerebro_internal.remove_dropped_model(owner name, model text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM cerebro.model_log m WHERE m.owner = remove_dropped_model.owner AND m.model = remove_dropped_model.model AND m.dropped;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM cerebro.grant_state s WHERE s.owner = remove_dropped_model.owner AND s.model = remove_dropped_model.model;
    DELETE FROM cerebro.grant_log g WHERE g.owner = remove_dropped_model.owner AND g.model = remove_dropped_model.model;
    DELETE FROM cerebro.member_log b WHERE b.owner = remove_dropped_model.owner AND b.model = remove_dropped_model.model;
    DELETE FROM cerebro.group_log g WHERE g.owner = remove_dropped_model.owner AND g.model = remove_dropped_model.model;
    DELETE FROM cerebro.version_log v WHERE v.owner = remove_dropped_model.owner AND v.model = remove_dropped_model.model;
    DELETE FROM cerebro.model_log m WHERE m.owner = remove_dropped_model.owner AND m.model = remove_dropped_model.model AND m.dropped;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.remove_dropped_model IS 'Internal: remove a model that its owner has marked as dropped';

CREATE OR REPLACE FUNCTION cerebro_internal.remove_grants(owner name, model text) RETURNS void
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
COMMENT ON FUNCTION cerebro_internal.remove_grants IS 'Internal: remove the grant of a model that its owner has taken back, and the weights of versions that nobody was granted';

CREATE OR REPLACE FUNCTION cerebro_internal.template_fields() RETURNS TABLE (
    template text, description text, field text, meaning text, usual jsonb, usual_regression jsonb, range jsonb)
LANGUAGE plpython3u STABLE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import named_models
return named_models.template_fields(plpy, GD)
$$;
COMMENT ON FUNCTION cerebro_internal.template_fields IS 'Internal: the rows of the view cerebro.template';
