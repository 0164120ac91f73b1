-- From 0.2.0 to 0.3.0: what of the tables cannot be created or replaced.

-- A setting that is gone; a row of it would be refused.
DELETE FROM cerebro.setting WHERE name = 'function_path';
COMMENT ON COLUMN cerebro.setting.name IS 'trainer_python, worker_conninfo, trainer_idle_seconds, trainer_nursery_seconds, trainer_memory_mb, cache_mb, compilation_cache, kept_features_mb, commit_seconds, gpus, spare_cores, max_workers_total, tenant_roles, price_per_core_hour, price_per_gpu_hour, price_per_gb_month, watts_per_core, watts_per_gpu';

COMMENT ON SCHEMA cerebro IS 'cerebro_db: functions and views for models, runs and their configurations, and the tables of their log';
COMMENT ON SCHEMA cerebro_state IS 'cerebro_db: states of runs, weights of models, packed rows and cached activations; tables of roles, which calls create and drop';

-- Arguments have other names now, for which a function has to be made anew. What was granted on it is granted again.
SET LOCAL allow_system_table_mods = on;
DO $$
DECLARE
    f record;
    grantee text;
    grantees text[];
BEGIN
    FOR f IN SELECT pg_catalog.to_regprocedure(v.signature) AS made, v.signature, v.arguments
             FROM (VALUES ('cerebro.grant_predict(text, regrole)', 'model text, role regrole'),
                          ('cerebro.revoke_predict(text, regrole)', 'model text, role regrole'),
                          ('cerebro.write_outputs(bigint, text)', 'run_id bigint, output text')) v (signature, arguments)
    LOOP
        CONTINUE WHEN f.made IS NULL;  -- in 0.1.0
        grantees := ARRAY(SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
                          FROM pg_catalog.pg_proc p
                               CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
                          WHERE p.oid = f.made AND a.grantee <> p.proowner);
        EXECUTE pg_catalog.format('DROP FUNCTION %s', f.signature);
        EXECUTE pg_catalog.format('CREATE FUNCTION %s(%s) RETURNS void LANGUAGE plpython3u AS %L',
                                  pg_catalog.split_part(f.signature, '(', 1), f.arguments, '');
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
        FOREACH grantee IN ARRAY grantees LOOP
            EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %s', f.signature, grantee);
        END LOOP;
        -- For pg_dump only the owner's privileges are the extension's own.
        UPDATE pg_catalog.pg_init_privs i SET initprivs = ARRAY[pg_catalog.makeaclitem(p.proowner, p.proowner, 'EXECUTE', false)]
        FROM pg_catalog.pg_proc p
        WHERE p.oid = pg_catalog.to_regprocedure(f.signature) AND i.objoid = p.oid AND i.classoid = 'pg_catalog.pg_proc'::regclass;
    END LOOP;
END $$;
SET LOCAL allow_system_table_mods = off;

-- It takes another argument now.
DROP FUNCTION cerebro.grant_usage(regrole);

ALTER TABLE cerebro.run_log ALTER COLUMN run_id SET CACHE 1; -- Greenplum's usual cache gives each session numbers ahead
ALTER TABLE cerebro.run_log ADD COLUMN dropped boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN cerebro.run_log.dropped IS 'whether its owner wants it gone: see cerebro_internal.remove_dropped';
ALTER TABLE cerebro.run_log ADD COLUMN software jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN cerebro.run_log.software IS 'versions of the package, the frameworks, Keras and Python that train it, by name';
ALTER TABLE cerebro.run_log ADD COLUMN rank_dataset text GENERATED ALWAYS AS (spec ->> 'rank_dataset') STORED;
ALTER TABLE cerebro.run_log ADD COLUMN rank_metric text GENERATED ALWAYS AS (spec ->> 'rank_metric') STORED;
ALTER TABLE cerebro.run_log ADD COLUMN rank_descending boolean GENERATED ALWAYS AS (spec ->> 'rank_descending' = 'true') STORED;
COMMENT ON COLUMN cerebro.run_log.rank_dataset IS 'the data set by whose metric configurations are ranked; as the two below it stands in spec, too, which is long, and would have to be unpacked for each metric';
COMMENT ON COLUMN cerebro.run_log.rank_metric IS 'the metric by which they are ranked';
COMMENT ON COLUMN cerebro.run_log.rank_descending IS 'whether more of it is better';

-- A run is logged before its frameworks are chosen.
ALTER TABLE cerebro.config_log ALTER COLUMN backend DROP NOT NULL;
COMMENT ON COLUMN cerebro.config_log.backend IS 'the framework that trains it: tensorflow, jax or torch; NULL until it is chosen';

ALTER TABLE cerebro.config_log ADD COLUMN best_epoch integer;
COMMENT ON COLUMN cerebro.config_log.state_tables IS 'the tables in schema cerebro_state that alternate as holders of the state, and the one of the best epoch';
COMMENT ON COLUMN cerebro.config_log.best_epoch IS 'the epoch of which the state is kept as the best so far, where one is kept';
ALTER TABLE cerebro.config_log ADD COLUMN template text;
COMMENT ON COLUMN cerebro.config_log.template IS 'the template that its architecture was made by, of which params has the fields';
ALTER TABLE cerebro.config_log ADD COLUMN source text NOT NULL DEFAULT 'call' CHECK (source IN ('call', 'act', 'clone', 'search'));
ALTER TABLE cerebro.config_log ADD COLUMN cloned_from integer;
ALTER TABLE cerebro.config_log ADD COLUMN warm_started_from integer;
ALTER TABLE cerebro.config_log ADD COLUMN point jsonb;
ALTER TABLE cerebro.config_log ADD COLUMN released boolean NOT NULL DEFAULT FALSE;
ALTER TABLE cerebro.config_log ADD COLUMN group_value text;
ALTER TABLE cerebro.config_log ADD COLUMN segments integer[];
COMMENT ON COLUMN cerebro.config_log.group_value IS 'the group whose rows alone it sees; NULL where it sees those of all';
COMMENT ON COLUMN cerebro.config_log.segments IS 'the segments that it visits in an epoch; NULL for all of its run';
ALTER TABLE cerebro.config_log ADD COLUMN warm_started_visits integer;
ALTER TABLE cerebro.config_log ADD COLUMN cut text;
COMMENT ON COLUMN cerebro.config_log.cut IS 'the layer whose outputs for all rows were computed once, and it was trained on; NULL where it was trained on the rows themselves';
COMMENT ON COLUMN cerebro.config_log.source IS 'where it comes from: the call, an act that added it or cloned another one, or the search that drew it';
COMMENT ON COLUMN cerebro.config_log.released IS 'whether its state was dropped while the run went on, for which live_states left no room';
COMMENT ON COLUMN cerebro.config_log.point IS 'which point of the search space it is, where a sampler has suggested it';
COMMENT ON COLUMN cerebro.config_log.cloned_from IS 'the mst_key of which it is a clone with other parameters';
COMMENT ON COLUMN cerebro.config_log.warm_started_from IS 'the mst_key of whose state it began from a copy';
COMMENT ON COLUMN cerebro.config_log.warm_started_visits IS 'after how many visits of that one its state was copied';

ALTER TABLE cerebro.visit ADD COLUMN stored_at timestamptz;
COMMENT ON COLUMN cerebro.visit.stored_at IS 'when the state after this visit was stored, and the visit completed; it had ended before, and its worker may train the next one meanwhile';
COMMENT ON COLUMN cerebro.visit.state_table IS 'where the state after this visit was written; NULL where those that follow were made in the same job';

-- What runs cost: NULL of those that were made before.
ALTER TABLE cerebro.run_log ADD COLUMN trainer_seconds double precision,
    ADD COLUMN backend_seconds double precision,
    ADD COLUMN gpu_seconds double precision,
    ADD COLUMN read_bytes bigint,
    ADD COLUMN peak_memory_bytes bigint;
ALTER TABLE cerebro.run_log ADD COLUMN plan jsonb;
ALTER TABLE cerebro.run_log ADD COLUMN ticket text;
COMMENT ON COLUMN cerebro.run_log.ticket IS 'a secret of the owner, by which functions of the queue are told that a run is the caller''s';
ALTER TABLE cerebro.run_log ADD COLUMN final_metric text GENERATED ALWAYS AS (spec -> 'train' -> 'final_metric' ->> 0) STORED;
ALTER TABLE cerebro.run_log ADD COLUMN final_descending boolean GENERATED ALWAYS AS (spec -> 'train' -> 'final_metric' ->> 1 = 'true') STORED;
ALTER TABLE cerebro.run_log ADD COLUMN phase text;
ALTER TABLE cerebro.run_log ADD COLUMN deadline timestamptz;
ALTER TABLE cerebro.run_log ADD COLUMN hint text;
COMMENT ON COLUMN cerebro.run_log.hint IS 'what the caller can do about the error; NULL without one, and in runs of older versions';
COMMENT ON COLUMN cerebro.run_log.phase IS 'what the run does while its orchestrator is alive, such as training; NULL in runs of older versions';
COMMENT ON COLUMN cerebro.run_log.deadline IS 'when its budget ends; NULL without one';
COMMENT ON COLUMN cerebro.run_log.final_metric IS 'the metric by which configurations are ranked once the run is completed, where it is computed at the end only; generated as rank_metric';
COMMENT ON COLUMN cerebro.run_log.final_descending IS 'whether more of it is better';
COMMENT ON COLUMN cerebro.run_log.plan IS 'how it was expected to go when its trainers had started: see cerebro.plan_of; NULL where nobody asked';
COMMENT ON COLUMN cerebro.run_log.trainer_seconds IS 'what belongs to no visit and no evaluation, as the four below: how trainers started, and what was done between visits; NULL where nobody has measured it. See cerebro.cost';
COMMENT ON COLUMN cerebro.run_log.backend_seconds IS 'processor seconds of the orchestrator, of the session that writes the log, and of workers between visits';
ALTER TABLE cerebro.visit ADD COLUMN trainer_seconds double precision,
    ADD COLUMN backend_seconds double precision,
    ADD COLUMN gpu_seconds double precision,
    ADD COLUMN read_bytes bigint,
    ADD COLUMN peak_memory_bytes bigint,
    ADD COLUMN dropped_at timestamptz,
    ADD COLUMN base_table text;
COMMENT ON COLUMN cerebro.visit.trainer_seconds IS 'processor seconds of the trainer for the visit, and for what was done on its worker since the one before; NULL where they are not known';
COMMENT ON COLUMN cerebro.visit.backend_seconds IS 'the same of the server process of the worker';
COMMENT ON COLUMN cerebro.visit.gpu_seconds IS 'how long it took on a GPU; 0 without one';
COMMENT ON COLUMN cerebro.visit.read_bytes IS 'bytes of states that the trainer read for it; those that it wrote are state_bytes';
COMMENT ON COLUMN cerebro.visit.peak_memory_bytes IS 'the most memory that its trainer had by its end';
COMMENT ON COLUMN cerebro.visit.dropped_at IS 'when the table with its state was dropped, where no later state had taken its place';
COMMENT ON COLUMN cerebro.visit.base_table IS 'where the frozen weights of that state lie, which other states share; NULL where it has all itself';
ALTER TABLE cerebro.evaluation ADD COLUMN trainer_seconds double precision,
    ADD COLUMN backend_seconds double precision,
    ADD COLUMN gpu_seconds double precision,
    ADD COLUMN read_bytes bigint,
    ADD COLUMN peak_memory_bytes bigint;
COMMENT ON COLUMN cerebro.evaluation.trainer_seconds IS 'as of cerebro.visit, like the four below; the first of several segments that were evaluated in one job has what all have cost';

-- Forms are timed on more rows now, and some are faster than they were.
DELETE FROM cerebro.form_timing;

-- Who may update or delete the rows of a table may also lock it against everybody: roles may update columns instead.
DO $$
DECLARE
    role text;
    ours CONSTANT text := 'cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric, cerebro.form_timing';
BEGIN
    FOR role IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
        FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
        WHERE c.oid = 'cerebro.run_log'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner
    LOOP
        EXECUTE pg_catalog.format('REVOKE UPDATE, DELETE ON %s FROM %s', ours, role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, error, hint, pid, ticket, dropped, software, epochs, plan, phase, deadline,'
                                  ' trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes) ON cerebro.run_log TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, reason, state_tables, backend, best_epoch, source, cloned_from, warm_started_from, point, released, warm_started_visits, cut) ON cerebro.config_log TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, rows, state_bytes, form, threads, error, loss, state_table,'
                                  ' training_seconds, stored_at, trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes, dropped_at, base_table) ON cerebro.visit TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (status, ended_at, rows, error, trainer_seconds, backend_seconds, gpu_seconds, read_bytes, peak_memory_bytes) ON cerebro.evaluation TO %s', role);
        EXECUTE pg_catalog.format('GRANT UPDATE (seconds_per_row, compile_seconds, measured_at) ON cerebro.form_timing TO %s', role);
    END LOOP;
END $$;
-- By that PostgreSQL takes the privileges of these tables for the extension's own, and pg_dump would leave them out.
SET LOCAL allow_system_table_mods = on;
DELETE FROM pg_catalog.pg_init_privs p
WHERE p.classoid = 'pg_catalog.pg_class'::regclass
  AND p.objoid IN ('cerebro.run_log'::regclass, 'cerebro.config_log'::regclass, 'cerebro.visit'::regclass,
                   'cerebro.evaluation'::regclass, 'cerebro.metric'::regclass, 'cerebro.form_timing'::regclass);
SET LOCAL allow_system_table_mods = off;

-- Quotas, and a queue.
CREATE TABLE cerebro.quota (
    role         name,
    trainers     integer CHECK (trainers > 0),
    configs      integer CHECK (configs > 0),
    runs_waiting integer CHECK (runs_waiting >= 0),
    cpu_a_day    interval CHECK (cpu_a_day > '0')
);
COMMENT ON TABLE cerebro.quota IS 'How much of this database''s server the runs of a role may use, which only an administrator may change; a missing row or NULL means no limit';
COMMENT ON COLUMN cerebro.quota.role IS 'whose runs; NULL for those of all roles together';
COMMENT ON COLUMN cerebro.quota.trainers IS 'how many trainers may work for runs at a time';
COMMENT ON COLUMN cerebro.quota.configs IS 'how many configurations runs may have together that have trainers; acts add no more';
COMMENT ON COLUMN cerebro.quota.runs_waiting IS 'how many runs may be queued';
COMMENT ON COLUMN cerebro.quota.cpu_a_day IS 'how much processor time, as cerebro.cost counts it, runs may have used within 24 hours; they are queued until it is less';
ALTER TABLE cerebro.quota ENABLE ROW LEVEL SECURITY;
SELECT pg_catalog.pg_extension_config_dump('cerebro.quota', '');

-- Written by functions of the extension alone: nobody takes more than there is.
CREATE TABLE cerebro.queue_log (
    run_id     bigint PRIMARY KEY,
    arrived_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    fewest     integer NOT NULL CHECK (fewest > 0),
    most       integer NOT NULL CHECK (most >= fewest AND most <= 262143),
    configs    integer NOT NULL CHECK (configs > 0 AND configs <= 10000000),
    steady     boolean NOT NULL,
    places     integer NOT NULL DEFAULT 0 CHECK (places >= 0 AND places <= most),
    used       double precision NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    pid        integer,
    waits      boolean NOT NULL DEFAULT false,
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (fewest = most OR NOT steady)
);
COMMENT ON TABLE cerebro.queue_log IS 'How many places for trainers each run has, and waits for; a row counts while its backend holds the lock of its run. Read the view cerebro.queue';
COMMENT ON COLUMN cerebro.queue_log.arrived_at IS 'when the run began, or went on again: runs of a role are served in this order';
COMMENT ON COLUMN cerebro.queue_log.fewest IS 'with fewer places it cannot work';
COMMENT ON COLUMN cerebro.queue_log.most IS 'more are of no use to it; as many as a server can have connections';
COMMENT ON COLUMN cerebro.queue_log.steady IS 'whether it cannot give back what it has before it ends';
COMMENT ON COLUMN cerebro.queue_log.used IS 'seconds that it had places, each counted, until changed_at; what was five minutes before counts half';
COMMENT ON COLUMN cerebro.queue_log.pid IS 'the backend that held the lock of the run when it entered the queue; NULL: it has left';
COMMENT ON COLUMN cerebro.queue_log.waits IS 'whether it has no place and has said that it waits';
COMMENT ON COLUMN cerebro.queue_log.seen_at IS 'when it last took places, had a worker for each of them, or said that it waits; without workers it counts for a minute more';

-- Written by a function of the extension alone, out of what runs report while they are alive. Dropping a run changes nothing
-- here, and neither does what its owner writes into the log.
CREATE TABLE cerebro.used_time (
    owner      name NOT NULL,
    hour       timestamptz NOT NULL,
    seconds    double precision NOT NULL CHECK (seconds BETWEEN 0 AND 1e9),
    cores      integer NOT NULL CHECK (cores > 0),
    began_at   timestamptz NOT NULL,
    counted_at timestamptz NOT NULL,
    PRIMARY KEY (owner, hour)
);
COMMENT ON TABLE cerebro.used_time IS 'Internal: processor seconds that the runs of each role have used, by the hour in which they were counted';
COMMENT ON COLUMN cerebro.used_time.cores IS 'the processors that trainers could use: nobody uses more seconds of them than pass';
COMMENT ON COLUMN cerebro.used_time.began_at IS 'when the oldest call had begun that has counted something in this hour';
COMMENT ON COLUMN cerebro.used_time.counted_at IS 'when something was counted last; it counts for 24 hours from then on';
ALTER TABLE cerebro.used_time ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.queue_log ENABLE ROW LEVEL SECURITY;

CREATE TABLE cerebro.decision_log (
    run_id      bigint NOT NULL,
    decision_no integer NOT NULL,
    time        timestamptz NOT NULL DEFAULT clock_timestamp(),
    mst_key     integer,
    action      text NOT NULL CHECK (action IN ('start', 'continue', 'promote', 'rest', 'hold', 'stop', 'clone', 'replan')),
    epoch       integer NOT NULL,
    visits      integer NOT NULL,
    last_epoch  integer NOT NULL,
    cause       integer,
    rule        text NOT NULL,
    reason      text NOT NULL,
    act_id      bigint,
    PRIMARY KEY (run_id, decision_no)
);
COMMENT ON TABLE cerebro.decision_log IS 'What was decided of a run and of its configurations, in its order; read the view cerebro.decision';
COMMENT ON COLUMN cerebro.decision_log.mst_key IS 'the configuration; NULL where the run has changed its strategy (replan)';
COMMENT ON COLUMN cerebro.decision_log.epoch IS 'the newest epoch of the configuration that had metrics by then; of a run, the newest that all have completed';
COMMENT ON COLUMN cerebro.decision_log.visits IS 'how many visits of the configuration, or of all, were completed by then';
COMMENT ON COLUMN cerebro.decision_log.last_epoch IS 'until the end of which epoch it may train from then on';
COMMENT ON COLUMN cerebro.decision_log.rule IS 'the search rule, or what somebody asked for (see act_id), or the strategy that a run has changed to';
COMMENT ON COLUMN cerebro.decision_log.cause IS 'the configuration whose result was decided about; NULL where the search began. The decision about that one comes first';
ALTER TABLE cerebro.decision_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_runs ON cerebro.decision_log USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = decision_log.run_id AND r.owner = current_user));
SELECT pg_catalog.pg_extension_config_dump('cerebro.decision_log', '');

CREATE TABLE cerebro.act_log (
    run_id  bigint NOT NULL,
    act_id  bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
    time    timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor   name NOT NULL DEFAULT current_user,
    action  text NOT NULL CHECK (action IN ('stop_config', 'continue_config', 'set_epochs', 'prioritise', 'prioritize', 'pause_run', 'continue_run', 'clone_config', 'add_configs', 'drill_down')),
    mst_key integer,
    change  jsonb NOT NULL DEFAULT '{}',
    status  text NOT NULL DEFAULT 'scheduled' CHECK (status IN ('scheduled', 'done', 'refused')),
    reason  text,
    visits  integer,
    done_at timestamptz,
    PRIMARY KEY (run_id, act_id)
);
COMMENT ON TABLE cerebro.act_log IS 'What people ask of runs that go on; read the view cerebro.act';
COMMENT ON COLUMN cerebro.act_log.actor IS 'who asked: nobody can write another name';
COMMENT ON COLUMN cerebro.act_log.change IS 'what is asked beside the configuration: the epochs of set_epochs';
COMMENT ON COLUMN cerebro.act_log.reason IS 'why it was refused';
COMMENT ON COLUMN cerebro.act_log.visits IS 'after how many visits of the configuration it holds, those under way included';
ALTER TABLE cerebro.act_log ENABLE ROW LEVEL SECURITY;
SELECT pg_catalog.pg_extension_config_dump('cerebro.act_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.act_log_act_id_seq', '');
ALTER TABLE cerebro.run_log DROP CONSTRAINT run_log_status_check,
    ADD CONSTRAINT run_log_status_check CHECK (status IN ('running', 'queued', 'paused', 'completed', 'cancelled', 'failed'));
ALTER TABLE cerebro.config_log DROP CONSTRAINT config_log_status_check,
    ADD CONSTRAINT config_log_status_check CHECK (status IN ('waiting', 'running', 'paused', 'completed', 'stopped', 'failed'));

-- See sql/01-tables.sql.
ALTER TABLE cerebro.config_log DROP CONSTRAINT config_log_run_id_fkey;
ALTER TABLE cerebro.visit DROP CONSTRAINT visit_run_id_fkey;
ALTER TABLE cerebro.evaluation DROP CONSTRAINT evaluation_run_id_fkey;
ALTER TABLE cerebro.metric DROP CONSTRAINT metric_run_id_fkey;

-- They have more arguments.
DROP FUNCTION IF EXISTS @extschema@.madlib_keras_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean);
DROP FUNCTION IF EXISTS @extschema@.madlib_fit_multiple_model(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean);
DROP FUNCTION IF EXISTS cerebro.submit(varchar, varchar, varchar, integer, boolean, varchar, integer, boolean, varchar, varchar, boolean, bigint, text, integer, bigint, boolean, text, text, integer, interval, boolean);

-- It knows by other means that it is wanted; 0.1.0 had no such procedure.
DROP PROCEDURE IF EXISTS cerebro.work(integer, json);

-- Its normalizing_const may be a double precision, as drivers send numbers.
DROP FUNCTION @extschema@.training_preprocessor_dl(varchar, varchar, varchar, varchar, integer, real, integer[], text, integer, bigint, text);

-- A state is asked for by its name.
DROP FUNCTION cerebro.state_chunks(integer);

-- Blocks of rows are sent by cerebro.pack_block now.
DROP FUNCTION cerebro.pack_rows(json, bytea[]);

-- Its name is now that of a function for users; 0.1.0 had none with these arguments.
DROP FUNCTION IF EXISTS cerebro.predict_row(text, bytea[]);

-- Models by name.
-- No foreign keys among models and grants: pg_restore with several jobs fills the tables of an extension in any order.
CREATE TABLE cerebro.model_log (
    owner       name NOT NULL DEFAULT current_user,
    model       text NOT NULL,
    deployed    integer,
    previous    integer,
    deployed_at timestamptz,
    split       text NOT NULL,
    split_seed  bigint NOT NULL,
    dropped     boolean NOT NULL DEFAULT false,
    bound       text,
    identity    text[],
    PRIMARY KEY (owner, model)
);
COMMENT ON TABLE cerebro.model_log IS 'One row per name that versions of a model have; read the view cerebro.model';
COMMENT ON COLUMN cerebro.model_log.deployed IS 'the version that predicts';
COMMENT ON COLUMN cerebro.model_log.previous IS 'the version that did so before';
COMMENT ON COLUMN cerebro.model_log.split IS 'how rows are held back, alike for all versions';
COMMENT ON COLUMN cerebro.model_log.split_seed IS 'what the sides of rows are hashed with, in all versions';
COMMENT ON COLUMN cerebro.model_log.dropped IS 'whether its owner wants it gone: see cerebro_internal.remove_dropped_model';
COMMENT ON COLUMN cerebro.model_log.identity IS 'the columns whose values name a row, and so decide its side, in all versions; NULL: all, or those of the primary key';
COMMENT ON COLUMN cerebro.model_log.bound IS 'where the rows begin that are held back, of a split by the order of a column; alike for all versions';

CREATE TABLE cerebro.version_log (
    owner           name NOT NULL DEFAULT current_user,
    model           text NOT NULL,
    version         integer NOT NULL CHECK (version > 0),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_id          bigint NOT NULL,
    mst_key         integer NOT NULL,
    task            text NOT NULL CHECK (task IN ('classification', 'regression')),
    source          text NOT NULL,
    target          text NOT NULL,
    target_type     text NOT NULL,
    template        text NOT NULL,
    params          jsonb NOT NULL,
    metric          text NOT NULL,
    value           double precision,
    training_rows   bigint,
    validation_rows bigint,
    seed            bigint,
    recipe          jsonb NOT NULL,
    classes         text[] NOT NULL,
    margin          double precision,
    architecture    json,
    compile_params  text,
    backend         text NOT NULL,
    state_bytes     bigint NOT NULL,
    software        jsonb NOT NULL,
    fingerprint     text,
    profile         jsonb,
    importance       double precision[],
    importance_error double precision[],
    group_by         text,
    reading          jsonb,
    loss             double precision,
    calibration      jsonb NOT NULL DEFAULT '{}',
    holdout_calibration jsonb,
    PRIMARY KEY (owner, model, version)
);
COMMENT ON TABLE cerebro.version_log IS 'One trained model under a name, with all that predictions need but its members: see cerebro.member_log';
COMMENT ON COLUMN cerebro.version_log.mst_key IS 'the configuration of its run that is its first member';
COMMENT ON COLUMN cerebro.version_log.template IS 'the template of its member; ensemble where it has several';
COMMENT ON COLUMN cerebro.version_log.source IS 'the table that it was trained on, as it must stand in a statement';
COMMENT ON COLUMN cerebro.version_log.target_type IS 'the type of the target, as PostgreSQL writes it';
COMMENT ON COLUMN cerebro.version_log.value IS 'the metric over the rows that were held back';
COMMENT ON COLUMN cerebro.version_log.seed IS 'NULL, as are the numbers of rows, where a model table was registered that does not tell';
COMMENT ON COLUMN cerebro.version_log.recipe IS 'what was learned of the columns from training rows';
COMMENT ON COLUMN cerebro.version_log.classes IS 'the texts of the classes in the order of the outputs; none of a regression';
COMMENT ON COLUMN cerebro.version_log.margin IS 'of a regression: how far nine tenths of the rows that it was calibrated by lie from their predictions, at most';
COMMENT ON COLUMN cerebro.version_log.architecture IS 'the network of a version without rows in cerebro.member_log, which is its only member; NULL of all others';
COMMENT ON COLUMN cerebro.version_log.compile_params IS 'as architecture';
COMMENT ON COLUMN cerebro.version_log.backend IS 'the framework in which all its members predict';
COMMENT ON COLUMN cerebro.version_log.software IS 'the versions of what it was trained with';
COMMENT ON COLUMN cerebro.version_log.fingerprint IS 'a hash of all rows on both sides as the recipe encodes them, with their targets: of other rows it is another one';
COMMENT ON COLUMN cerebro.version_log.profile IS 'how the values of columns lay in training rows: see cerebro.drift';
COMMENT ON COLUMN cerebro.version_log.importance IS 'how much worse the metric of rows that were held back gets where a column is shuffled, in the order of the recipe; see cerebro.importance';
COMMENT ON COLUMN cerebro.version_log.importance_error IS 'the standard errors of these';
COMMENT ON COLUMN cerebro.version_log.reading IS 'how its source was read: the formats, which all its readings have, the kind of the source, its columns with their types, how many rows were read, and the names of the custom settings of the session; NULL: under UTC, and ISO, YMD';
COMMENT ON COLUMN cerebro.version_log.loss IS 'the log loss or the root mean squared error over the same rows, which decides between equal values; NULL of a version that was registered or imported, and where those rows were not predicted';
COMMENT ON COLUMN cerebro.version_log.calibration IS 'what was learned of its predictions, from folds of all rows or from the rows that were held back: of a regression order statistics of the absolute errors, for intervals of any level; of classes the temperature of their probabilities, and the probability from which on the second of two classes is predicted, where these are not 1 and 0.5';
COMMENT ON COLUMN cerebro.version_log.holdout_calibration IS 'as calibration, from the rows that were held back: versions are compared by it; NULL where calibration is that one';
COMMENT ON COLUMN cerebro.version_log.group_by IS 'the column by whose values rows have models of their own: see cerebro.group_log; NULL where there are none';

CREATE TABLE cerebro.group_log (
    owner           name NOT NULL DEFAULT current_user,
    model           text NOT NULL,
    version         integer NOT NULL,
    group_value     text NOT NULL,
    run_id          bigint NOT NULL,
    mst_key         integer NOT NULL,
    template        text NOT NULL,
    params          jsonb NOT NULL,
    value           double precision,
    training_rows   bigint NOT NULL,
    margin          double precision,
    architecture    json,
    compile_params  text,
    backend         text NOT NULL,
    state_bytes     bigint NOT NULL,
    calibration     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (owner, model, version, group_value)
);
COMMENT ON TABLE cerebro.group_log IS 'The models of groups of rows that a version has beside the one of all rows; read the view cerebro.model_group';
COMMENT ON COLUMN cerebro.group_log.group_value IS 'the text of the value that the rows of the group have in the column that the version is grouped by';
COMMENT ON COLUMN cerebro.group_log.mst_key IS 'the configuration of the run that is its first member: see cerebro.member_log';
COMMENT ON COLUMN cerebro.group_log.architecture IS 'as in cerebro.version_log, like compile_params';
COMMENT ON COLUMN cerebro.group_log.calibration IS 'as of cerebro.version_log, of the rows of the group that were held back';
COMMENT ON COLUMN cerebro.group_log.value IS 'the metric of the version over the rows of the group that were held back';

CREATE TABLE cerebro.member_log (
    owner           name NOT NULL DEFAULT current_user,
    model           text NOT NULL,
    version         integer NOT NULL,
    group_value     text NOT NULL,
    position        integer NOT NULL CHECK (position > 0),
    run_id          bigint NOT NULL,
    mst_key         integer NOT NULL,
    template        text NOT NULL,
    params          jsonb NOT NULL,
    share           double precision NOT NULL,
    architecture    json NOT NULL,
    compile_params  text NOT NULL,
    backend         text NOT NULL,
    state_bytes     bigint NOT NULL,
    refit_run_id    bigint,
    PRIMARY KEY (owner, model, version, group_value, position)
);
COMMENT ON TABLE cerebro.member_log IS 'The members of versions: their predictions, multiplied by their shares, add up to that of the version; read the view cerebro.model_member';
COMMENT ON COLUMN cerebro.member_log.group_value IS 'the group of which it is a model, as in cerebro.group_log; empty for a member of the model of all rows';
COMMENT ON COLUMN cerebro.member_log.position IS 'its place in the sum, from 1';
COMMENT ON COLUMN cerebro.member_log.mst_key IS 'the configuration of the run of which the weights are; they lie in a table of schema cerebro_state that both name';
COMMENT ON COLUMN cerebro.member_log.backend IS 'the framework that has trained it';
COMMENT ON COLUMN cerebro.member_log.refit_run_id IS 'the run that has trained the configuration again, on all rows: its weights predict, and those of run_id are compared with other versions; NULL if one did not';

CREATE TABLE cerebro.grant_log (
    owner   name NOT NULL DEFAULT current_user,
    model   text NOT NULL,
    version integer,
    gate    text,
    outline jsonb,
    PRIMARY KEY (owner, model)
);
COMMENT ON TABLE cerebro.grant_log IS 'One row per model by name that its owner lets others predict with; read the view cerebro.model_grant';
COMMENT ON COLUMN cerebro.grant_log.version IS 'the version that they predict with';
COMMENT ON COLUMN cerebro.grant_log.gate IS 'an empty table of the owner in schema cerebro_state: who may read it may predict; NULL where nobody may any more';
COMMENT ON COLUMN cerebro.grant_log.outline IS 'what of the version they may know: its columns without what was learned of them, its classes, the range of a regression';

-- The extension's copy, so that who predicts reads no table of the model's owner, which could run code of that role.
CREATE TABLE cerebro.grant_state (
    owner   name NOT NULL DEFAULT current_user,
    model   text NOT NULL,
    version integer NOT NULL,
    mst_key integer NOT NULL,
    part    integer NOT NULL,
    chunk   bytea NOT NULL,
    PRIMARY KEY (owner, model, version, mst_key, part)
);
ALTER TABLE cerebro.grant_state ALTER chunk SET STORAGE EXTERNAL;
COMMENT ON TABLE cerebro.grant_state IS 'The weights of versions that others than their owners predict with, in chunks that only trainers are given';
COMMENT ON COLUMN cerebro.grant_state.mst_key IS 'whose weights they are: those of a member of the version, or of the model of one of its groups';

ALTER TABLE cerebro.model_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.version_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.group_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.member_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.grant_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE cerebro.grant_state ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_models ON cerebro.model_log USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_models ON cerebro.version_log USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_models ON cerebro.group_log USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_models ON cerebro.member_log USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_models ON cerebro.grant_log USING (owner = current_user) WITH CHECK (owner = current_user);
CREATE POLICY own_models ON cerebro.grant_state USING (owner = current_user) WITH CHECK (owner = current_user);
SELECT pg_catalog.pg_extension_config_dump('cerebro.model_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.version_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.group_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.member_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.grant_log', '');
SELECT pg_catalog.pg_extension_config_dump('cerebro.grant_state', '');

CREATE TYPE cerebro.predicted_rows AS (
    margin double precision, ids text[], prediction bytea, probability bytea, probabilities bytea, number bytea);
COMMENT ON TYPE cerebro.predicted_rows IS 'Internal: a block of rows with what cerebro.predict tells of each; arrays as texts, NULL where the task has none';

CREATE TYPE cerebro.attributed_rows AS (ids text[], columns text[], patches text[], texts text[], attributions bytea, gaps bytea);
COMMENT ON TYPE cerebro.attributed_rows IS 'Internal: a block of rows with what cerebro.attribution tells of each of their columns and patches, which are arrays as texts; the last two are arrays as texts';

-- Optuna's tables have columns of these types, and their names are Optuna's.
CREATE SCHEMA cerebro_optuna;
COMMENT ON SCHEMA cerebro_optuna IS 'cerebro_db: runs as Optuna stores its studies, to be read by optuna-dashboard and by optuna.load_study; nothing can be written';

CREATE TYPE cerebro_optuna.studydirection AS ENUM ('NOT_SET', 'MINIMIZE', 'MAXIMIZE');
COMMENT ON TYPE cerebro_optuna.studydirection IS 'Whether smaller or larger values are better';
CREATE TYPE cerebro_optuna.trialstate AS ENUM ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING');
COMMENT ON TYPE cerebro_optuna.trialstate IS 'What has become of a configuration';
CREATE TYPE cerebro_optuna.trialvaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG');
COMMENT ON TYPE cerebro_optuna.trialvaluetype IS 'What a value is that no number may be';
CREATE TYPE cerebro_optuna.trialintermediatevaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG', 'NAN');
COMMENT ON TYPE cerebro_optuna.trialintermediatevaluetype IS 'The same of a value on the way';

CREATE SCHEMA cerebro_internal;
COMMENT ON SCHEMA cerebro_internal IS 'cerebro_db: functions that the extension itself calls';
-- A name in it is of no use without EXECUTE, which cerebro.grant_usage grants.
GRANT USAGE ON SCHEMA cerebro_internal TO PUBLIC;

-- Functions that only the extension calls move there, with what was granted on them.
DO $$
DECLARE
    moved regprocedure;
BEGIN
    FOR moved IN SELECT p.oid::regprocedure FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid
             WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
               AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db')
               AND p.pronamespace = 'cerebro'::regnamespace
               AND p.proname IN ('array_bytes', 'dataset_add', 'dataset_close', 'dataset_open', 'gpu_count', 'gpu_report', 'is_state', 'job_begin',
                                 'job_finish', 'may_see', 'metric_results', 'owns_run', 'predict_begin', 'predict_rest', 'state_add',
                                 'trainer_start', 'trainer_stop')
    LOOP
        EXECUTE pg_catalog.format('ALTER ROUTINE %s SET SCHEMA cerebro_internal', moved);
    END LOOP;
END $$;
