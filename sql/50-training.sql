-- Training. Each function stands under MADlib's name and under a short one.

CREATE OR REPLACE FUNCTION madlib_keras_fit_multiple_model(
    -- The packed table to train on.
    source_table varchar,
    -- Name of the model table to create. The tables `<model_output_table>_info` and
    -- `<model_output_table>_summary` are created with it.
    model_output_table varchar,
    -- The model selection table, which has the configurations.
    model_selection_table varchar,
    -- Number of epochs. In an epoch a configuration visits every segment once.
    num_iterations integer,
    -- Give each trainer a GPU; trainers share GPUs if there are fewer. An error (55000) if there is
    -- no GPU, or if the framework finds none. The setting `gpus` lists them ([GPUs](../../how-to/gpus.md)).
    use_gpus boolean DEFAULT FALSE,
    -- A packed table to evaluate on. Its metrics then rank the leaderboard.
    validation_table varchar DEFAULT NULL,
    -- Evaluate after every so many epochs, and after the last one. NULL: only after the last one.
    metrics_compute_frequency integer DEFAULT NULL,
    -- Continue the configurations of the existing output tables: see [Warm start](#warm-start).
    warm_start boolean DEFAULT FALSE,
    -- A name for the run, in the summary table and in `cerebro.run`.
    name varchar DEFAULT NULL,
    -- A description, in the summary table.
    description varchar DEFAULT NULL,
    -- Accepted. Memory decides whether rows stay in the trainers.
    use_caching boolean DEFAULT FALSE,
    -- Seed of initial weights and of the order of rows within buffers. NULL: drawn, and kept in
    -- `cerebro.run.spec`.
    seed bigint DEFAULT NULL,
    -- Order of visits: `'longest'`, `'rotation'`, or `'replay'` of an earlier run. See [the
    -- schedule](../../internals/how-it-works.md#the-schedule).
    schedule text DEFAULT 'longest',
    -- Number of worker sessions, which share the cores. NULL: chosen, see [Workers](#workers).
    workers integer DEFAULT NULL,
    -- The run that `schedule => 'replay'` repeats: see [Replays](#replays).
    replay_run bigint DEFAULT NULL,
    -- FALSE: do not evaluate the training set. Its columns of the output are then NULL.
    training_metrics boolean DEFAULT TRUE,
    -- Dtype policy of all layers: `'float32'`, `'mixed_bfloat16'` or `'mixed_float16'`. NULL: the
    -- policies of the architectures. See [Mixed precision](#mixed-precision).
    dtype_policy text DEFAULT NULL,
    -- `'tensorflow'`, `'jax'`, `'torch'`, or `'auto'`: the fastest one for each architecture. See
    -- [Backends](#backends).
    backend text DEFAULT 'tensorflow',
    -- Attempts at a visit or an evaluation whose trainer or worker session is lost, or whose
    -- trainer exceeds its memory. After the last one the configuration fails with that reason;
    -- others go on.
    max_attempts integer DEFAULT 3,
    -- Time after which no further visit begins: see [Time limit](#time-limit). NULL: no limit.
    max_runtime interval DEFAULT NULL,
    -- FALSE: drop the states in `cerebro_state` in the transaction that creates the output tables,
    -- which have copies. `cerebro.write_outputs` can then not create them again.
    keep_states boolean DEFAULT TRUE,
    -- Rule that decides during training which configurations go on: see [Searches](#searches).
    -- NULL: all are trained to the last epoch.
    search text DEFAULT NULL,
    -- Parameters of `search`.
    search_params jsonb DEFAULT NULL,
    -- Disk space in MB for outputs of [frozen layers](#frozen-layers) during the run. NULL: at most
    -- the size of the packed rows, and only if that saves seconds. 0: none are stored.
    feature_budget integer DEFAULT NULL,
    -- The way in which workers divide the work: `'auto'`, `'mop'`, `'task'`, `'average'` or `'late_average'`.
    -- See [Strategies](#strategies).
    strategy text DEFAULT 'auto'
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import training
return training.fit_multiple_model(plpy, GD, *args)
$$;
COMMENT ON FUNCTION madlib_keras_fit_multiple_model IS 'Train all configurations of a model selection table over a packed table; use_caching is accepted, memory decides; seed, schedule (longest, rotation, or replay of replay_run), workers, training_metrics, dtype_policy (float32, mixed_bfloat16 or mixed_float16), backend, max_attempts, max_runtime, keep_states, search (a rule that decides while configurations train which of them go on), search_params, feature_budget (MB for what frozen layers give, which is then computed once) and strategy (auto, mop, task, average or late_average: how the work is divided among workers; the last two change what is learned) are additions to MADlib';
-- Alias: madlib_fit_multiple_model
