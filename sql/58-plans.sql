-- Plans: what a fit call would do, and what was expected of a run beside what happened.

CREATE OR REPLACE FUNCTION cerebro.plan_fit(
    source_table varchar,
    model_selection_table varchar,
    num_iterations integer,
    use_gpus boolean DEFAULT FALSE,
    validation_table varchar DEFAULT NULL,
    metrics_compute_frequency integer DEFAULT NULL,
    seed bigint DEFAULT NULL,
    schedule text DEFAULT 'longest',
    workers integer DEFAULT NULL,
    replay_run bigint DEFAULT NULL,
    training_metrics boolean DEFAULT TRUE,
    dtype_policy text DEFAULT NULL,
    backend text DEFAULT 'tensorflow',
    max_runtime interval DEFAULT NULL,
    search text DEFAULT NULL,
    search_params jsonb DEFAULT NULL,
    -- `'text'`: a tree, line by line. `'json'`: one document.
    format text DEFAULT 'text',
    strategy text DEFAULT 'auto',
    feature_budget integer DEFAULT NULL
) RETURNS SETOF text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import plans
return plans.plan_fit(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.plan_fit IS 'Show the plan of madlib_fit_multiple_model with these arguments and its expected time, as a tree like that of EXPLAIN, in lines of text or (format) as json. Programs without known times are timed on real rows; nothing is trained';
-- Arguments without a comment are those of madlib_keras_fit_multiple_model.

CREATE OR REPLACE FUNCTION cerebro.plan_of(
    -- An own run.
    run_id bigint,
    format text DEFAULT 'text'
) RETURNS SETOF text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import plans
return plans.plan_of(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.plan_of IS 'Show the plan of an own run beside its measured times: the error of each estimate, and a better plan if there was one. It is a tree like that of EXPLAIN ANALYZE, in lines of text or (format) as json';
-- Arguments without a comment are those of cerebro.plan_fit.
