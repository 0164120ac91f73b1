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
COMMENT ON FUNCTION cerebro.plan_fit IS 'How madlib_fit_multiple_model with these arguments would be executed, and how long that is expected to take: a tree as of EXPLAIN, as text line by line or (format) as json. Programs that nobody has timed yet are timed on real rows; nothing is trained';
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
COMMENT ON FUNCTION cerebro.plan_of IS 'The plan of an own run beside what happened: how far each estimate was off, and what would have been better by the times that were measured; a tree as of EXPLAIN, as text line by line or (format) as json';
-- Arguments without a comment are those of cerebro.plan_fit.
