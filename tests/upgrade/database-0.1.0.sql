-- A database of release 0.1.0 as pg_dump wrote it, without pg_dump's comments and without the settings, which name
-- files of a machine: packed data, a model selection of two configurations trained, evaluated and predicted from, and
-- a second run that was cancelled in the middle. Never changed: tests/upgrade/test_release.py updates and restores it.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA madlib;

ALTER SCHEMA madlib OWNER TO postgres;

CREATE EXTENSION IF NOT EXISTS plpython3u WITH SCHEMA pg_catalog;

COMMENT ON EXTENSION plpython3u IS 'PL/Python3U untrusted procedural language';

CREATE EXTENSION IF NOT EXISTS cerebro_db WITH SCHEMA madlib;

COMMENT ON EXTENSION cerebro_db IS 'Model selection for deep learning: trains many configurations over the partitions of a table';

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE cerebro_state.r1_c1_a (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r1_c1_a ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r1_c1_a OWNER TO cerebro;

CREATE TABLE cerebro_state.r1_c2_a (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r1_c2_a ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r1_c2_a OWNER TO cerebro;

CREATE TABLE cerebro_state.r2_c1_a (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r2_c1_a ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r2_c1_a OWNER TO cerebro;

CREATE TABLE cerebro_state.r2_c1_b (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r2_c1_b ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r2_c1_b OWNER TO cerebro;

CREATE TABLE cerebro_state.r2_c2_a (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r2_c2_a ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r2_c2_a OWNER TO cerebro;

CREATE TABLE cerebro_state.r2_c2_b (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r2_c2_b ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r2_c2_b OWNER TO cerebro;

CREATE TABLE public.evaluated (
    loss double precision,
    metric double precision,
    metrics_type text[],
    loss_type text
);

ALTER TABLE public.evaluated OWNER TO cerebro;

CREATE TABLE public.long (
    mst_key integer NOT NULL,
    model_id integer,
    compile_params character varying,
    fit_params character varying
);

ALTER TABLE public.long OWNER TO cerebro;

CREATE SEQUENCE public.long_mst_key_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE public.long_mst_key_seq OWNER TO cerebro;

ALTER SEQUENCE public.long_mst_key_seq OWNED BY public.long.mst_key;

CREATE TABLE public.long_summary (
    model_arch_table character varying,
    object_table character varying
);

ALTER TABLE public.long_summary OWNER TO cerebro;

CREATE TABLE public.model (
    mst_key integer,
    model_weights bytea,
    model_arch json,
    __dist_key__ integer
);

ALTER TABLE public.model OWNER TO cerebro;

CREATE TABLE public.model_info (
    mst_key integer NOT NULL,
    model_id integer,
    compile_params text,
    fit_params text,
    model_type text,
    model_size double precision,
    metrics_elapsed_time double precision[],
    metrics_type text[],
    loss_type text,
    training_metrics_final double precision,
    training_loss_final double precision,
    training_metrics double precision[],
    training_loss double precision[],
    validation_metrics_final double precision,
    validation_loss_final double precision,
    validation_metrics double precision[],
    validation_loss double precision[],
    backend text
);

ALTER TABLE public.model_info OWNER TO cerebro;

CREATE TABLE public.model_state (
    mst_key integer NOT NULL,
    part integer NOT NULL,
    chunk bytea NOT NULL
);
ALTER TABLE ONLY public.model_state ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE public.model_state OWNER TO cerebro;

CREATE TABLE public.model_summary (
    source_table text,
    validation_table text,
    model text,
    model_info text,
    dependent_varname text[],
    independent_varname text[],
    model_arch_table text,
    model_selection_table text,
    object_table text,
    num_iterations integer,
    metrics_compute_frequency integer,
    warm_start boolean,
    name text,
    description text,
    start_training_time timestamp without time zone,
    end_training_time timestamp without time zone,
    madlib_version text,
    num_classes integer[],
    label_class_values text[],
    dependent_vartype text[],
    normalizing_const real,
    metrics_iters integer[],
    run_id bigint,
    dtype_policy text
);

ALTER TABLE public.model_summary OWNER TO cerebro;

CREATE TABLE public.models (
    model_id integer NOT NULL,
    model_arch json,
    model_weights bytea,
    name text,
    description text,
    __internal_madlib_id__ text
);

ALTER TABLE public.models OWNER TO cerebro;

CREATE TABLE public.packed (
    __dist_key__ integer NOT NULL,
    x bytea NOT NULL,
    label bytea NOT NULL,
    x_shape integer[] NOT NULL,
    label_shape integer[] NOT NULL,
    buffer_id integer NOT NULL
);
ALTER TABLE ONLY public.packed ALTER COLUMN x SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.packed ALTER COLUMN label SET STORAGE EXTERNAL;

ALTER TABLE public.packed OWNER TO cerebro;

CREATE TABLE public.packed_summary (
    source_table text,
    output_table text,
    dependent_varname text[],
    independent_varname text[],
    dependent_vartype text[],
    label_class_values text[],
    buffer_size integer,
    normalizing_const real,
    num_classes integer[],
    distribution_rules text,
    __internal_gpu_config__ text
);

ALTER TABLE public.packed_summary OWNER TO cerebro;

CREATE TABLE public.points (
    id integer,
    x real[],
    label text,
    positive boolean,
    flag real,
    amount real,
    pair real[]
);

ALTER TABLE public.points OWNER TO cerebro;

CREATE TABLE public.predicted (
    id integer,
    class_name text,
    class_value text,
    prob double precision,
    rank integer
);

ALTER TABLE public.predicted OWNER TO cerebro;

CREATE TABLE public.two (
    mst_key integer NOT NULL,
    model_id integer,
    compile_params character varying,
    fit_params character varying
);

ALTER TABLE public.two OWNER TO cerebro;

CREATE SEQUENCE public.two_mst_key_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE public.two_mst_key_seq OWNER TO cerebro;

ALTER SEQUENCE public.two_mst_key_seq OWNED BY public.two.mst_key;

CREATE TABLE public.two_summary (
    model_arch_table character varying,
    object_table character varying
);

ALTER TABLE public.two_summary OWNER TO cerebro;

ALTER TABLE ONLY public.long ALTER COLUMN mst_key SET DEFAULT nextval('public.long_mst_key_seq'::regclass);

ALTER TABLE ONLY public.two ALTER COLUMN mst_key SET DEFAULT nextval('public.two_mst_key_seq'::regclass);

COPY cerebro.run_log (run_id, name, owner, status, spec, started_at, ended_at, error, pid, epochs, segments) FROM stdin;
1	first	cerebro	completed	{"name": "first", "seed": 864713864, "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_target": false, "dependent_types": ["text"], "normalizing_const": 1.0}, "tables": {"source": "\\"public\\".\\"packed\\"", "selection": "\\"public\\".\\"two\\"", "validation": "\\"public\\".\\"packed\\"", "model_output": "\\"public\\".\\"model\\"", "architectures": "\\"public\\".\\"models\\"", "source_summary": "\\"public\\".\\"packed_summary\\"", "selection_summary": "\\"public\\".\\"two_summary\\"", "validation_summary": "\\"public\\".\\"packed_summary\\""}, "backend": "tensorflow", "version": "0.1.0", "workers": null, "schedule": "longest", "segments": [0, 1], "use_gpus": false, "replay_run": null, "validation": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_target": false, "dependent_types": ["text"], "normalizing_const": 1.0}, "warm_start": false, "description": null, "rank_metric": "accuracy", "use_caching": false, "dtype_policy": null, "object_table": null, "rank_dataset": "validation", "source_table": "packed", "num_iterations": 2, "evaluate_epochs": [2], "rank_descending": true, "model_arch_table": "models", "training_metrics": true, "validation_table": "packed", "model_output_table": "model", "model_selection_table": "two", "metrics_compute_frequency": 2}	2026-11-20 19:03:48.818097+00	2026-11-20 19:03:49.975808+00	\N	7433	2	{0,1}
2	\N	cerebro	cancelled	{"name": null, "seed": 1653314004, "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_target": false, "dependent_types": ["text"], "normalizing_const": 1.0}, "tables": {"source": "\\"public\\".\\"packed\\"", "selection": "\\"public\\".\\"long\\"", "model_output": "\\"public\\".\\"rest\\"", "architectures": "\\"public\\".\\"models\\"", "source_summary": "\\"public\\".\\"packed_summary\\"", "selection_summary": "\\"public\\".\\"long_summary\\""}, "backend": "tensorflow", "version": "0.1.0", "workers": null, "schedule": "longest", "segments": [0, 1], "use_gpus": false, "replay_run": null, "validation": null, "warm_start": false, "description": null, "rank_metric": "accuracy", "use_caching": false, "dtype_policy": null, "object_table": null, "rank_dataset": "training", "source_table": "packed", "num_iterations": 2, "evaluate_epochs": [2], "rank_descending": true, "model_arch_table": "models", "training_metrics": true, "validation_table": null, "model_output_table": "rest", "model_selection_table": "long", "metrics_compute_frequency": 2}	2026-11-20 19:03:52.931301+00	2026-11-20 19:03:53.567037+00	canceling statement due to user request	7459	2	{0,1}
\.

COPY cerebro.config_log (run_id, mst_key, params, status, reason, state_tables, model_id, compile_params, fit_params, architecture, backend) FROM stdin;
1	1	{"model_id": 1, "fit_params": "batch_size=8", "compile_params": "optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	completed	\N	{"cerebro_state.\\"r1_c1_a\\""}	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
1	2	{"model_id": 1, "fit_params": "batch_size=8", "compile_params": "optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	completed	\N	{"cerebro_state.\\"r1_c2_a\\""}	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
2	1	{"model_id": 1, "fit_params": "batch_size=1,epochs=20", "compile_params": "optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	stopped	\N	{"cerebro_state.\\"r2_c1_a\\"","cerebro_state.\\"r2_c1_b\\""}	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
2	2	{"model_id": 1, "fit_params": "batch_size=1,epochs=20", "compile_params": "optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']"}	stopped	\N	{"cerebro_state.\\"r2_c2_a\\"","cerebro_state.\\"r2_c2_b\\""}	1	optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
\.

COPY cerebro.evaluation (run_id, epoch, mst_key, segment_id, attempt, status, started_at, ended_at, rows, error) FROM stdin;
1	2	2	1	1	completed	2026-11-20 19:03:49.719989+00	2026-11-20 19:03:49.841808+00	96	\N
1	2	2	0	1	completed	2026-11-20 19:03:49.725244+00	2026-11-20 19:03:49.847696+00	96	\N
1	2	1	1	1	completed	2026-11-20 19:03:49.85808+00	2026-11-20 19:03:49.971027+00	96	\N
1	2	1	0	1	completed	2026-11-20 19:03:49.857556+00	2026-11-20 19:03:49.972483+00	96	\N
\.

COPY cerebro.metric (run_id, mst_key, epoch, dataset, name, value, "time") FROM stdin;
1	2	2	training	loss	0.956472173333168	2026-11-20 19:03:49.851019+00
1	2	2	training	accuracy	0.4583333432674408	2026-11-20 19:03:49.85128+00
1	2	2	validation	loss	0.956472173333168	2026-11-20 19:03:49.851288+00
1	2	2	validation	accuracy	0.4583333432674408	2026-11-20 19:03:49.851291+00
1	1	2	training	loss	0.7696663737297058	2026-11-20 19:03:49.975052+00
1	1	2	training	accuracy	0.7395833134651184	2026-11-20 19:03:49.975111+00
1	1	2	validation	loss	0.7696663737297058	2026-11-20 19:03:49.975118+00
1	1	2	validation	accuracy	0.7395833134651184	2026-11-20 19:03:49.975121+00
\.

COPY cerebro.setting (name, value) FROM stdin;
\.

COPY cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status, started_at, ended_at, rows, state_bytes, form, threads, error, loss, state_table, worker_pid, training_seconds) FROM stdin;
1	1	2	1	1	1	completed	2026-11-20 19:03:48.830077+00	2026-11-20 19:03:49.344406+00	48	912	graph_loop	1	\N	1.0272505780061085	cerebro_state."r1_c2_b"	7440	0.005124593000005007
1	1	1	0	1	1	completed	2026-11-20 19:03:48.829742+00	2026-11-20 19:03:49.41621+00	48	1944	graph_loop	1	\N	1.0112090408802032	cerebro_state."r1_c1_b"	7439	0.0056825940000635455
1	1	2	0	2	1	completed	2026-11-20 19:03:49.418315+00	2026-11-20 19:03:49.593861+00	48	912	graph_loop	1	\N	0.9557751615842184	cerebro_state."r1_c2_a"	7439	0.004473785999948632
1	2	2	0	3	1	completed	2026-11-20 19:03:49.595121+00	2026-11-20 19:03:49.60359+00	48	912	graph_loop	1	\N	0.947638471921285	cerebro_state."r1_c2_b"	7439	0.004417113000272366
1	1	1	1	2	1	completed	2026-11-20 19:03:49.417835+00	2026-11-20 19:03:49.70397+00	48	1944	graph_loop	1	\N	0.9654739499092102	cerebro_state."r1_c1_a"	7440	0.005487430000130189
1	2	2	1	4	1	completed	2026-11-20 19:03:49.706923+00	2026-11-20 19:03:49.718467+00	48	912	graph_loop	1	\N	0.9910945097605387	cerebro_state."r1_c2_a"	7440	0.004977431000042998
1	2	1	0	3	1	completed	2026-11-20 19:03:49.706445+00	2026-11-20 19:03:49.723937+00	48	1944	graph_loop	1	\N	0.8809589942296346	cerebro_state."r1_c1_b"	7439	0.00857937499995387
1	2	1	1	4	1	completed	2026-11-20 19:03:49.842525+00	2026-11-20 19:03:49.856131+00	48	1944	graph_loop	1	\N	0.7918591201305389	cerebro_state."r1_c1_a"	7440	0.006690312000046106
2	1	2	1	1	1	completed	2026-11-20 19:03:52.946792+00	2026-11-20 19:03:53.549909+00	960	912	graph_loop	1	\N	0.4450305721198674	cerebro_state."r2_c2_b"	7463	0.12126880200105461
2	1	1	0	1	1	completed	2026-11-20 19:03:52.942983+00	2026-11-20 19:03:53.559023+00	960	912	graph_loop	1	\N	0.678517567756353	cerebro_state."r2_c1_b"	7462	0.12785764999978255
\.

COPY cerebro_state.r1_c1_a (part, chunk) FROM stdin;
1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d20201800000000000000bdb5df3e181aa63e39fa80be44074d3f4bed5bbf86fa5fbee23654bfbf70c73e668e41bec5c9e1beac0e9c3e3ee00e3f3ac102bfb8229fbec7d7563e870bec3e88db94bc5b833f3f36aa703e15ee183fbc59dd3eb51d03bf852919bf483c7f3ef398c0be90108a3eb5864f3e47dbe9bd1789b73efd51ea3d81a7b03e0a8cf73b146f263da1e916bcf770f7bdbd29ba3d087b1a3ed368bd3acd84273e541a003b0005563fe86ababdd0c3e03e913de53ecd9abbbebf3eaebdf14cc1befe133bbe9b9b1e3f7412863e28e14cbe7bbe8b3dee6c9fbc729b353f4785373e8292663e2b4da73eb7fbc7bd30a0d63b274f343f9c58a23ecd43293fa735bfbe5691953ebf81b13c146eb73cc88058bd0ad7233c940b90bd916d6cbd6fd132bdbdbd04bdf6fe953de007923c33a4ab3d6649cebd8d37373b86d684bc1843e13b5ddab53b29e317bc4f82ba3b28c096bbfe98eb3c0360a13cc067f0b8588392ba0c3b783cdb4b26bcd51f81bb51e5fdbca2e4cb3c3b2f00bba673333b7be213bc59a37dbba9c01b3c45773d3cfb35c63c195d8fbc6da9413982083539aa0035390673ee37aba24b39e04eb537eee36139ab95c039a38b673843327f3819aa5439145ba337ac1f4c3860a2b537943ca4384fba7a399dd42c38fcaea438e4c08a38f7121c37ad12a137564584372e3d6938faf4be389df63c3802462e38e6449438a5d07236b4e5bc37098aba37453908381a17873805a426bdf2cf843c08d12f3d140ccdbbdc5289bd053d17bc885b62bdda88443b0b9a2139a846c5388c30c1393c4b1a384f545539a07f0538c380323955f2cc3958442abd59e9b93c589f9a3c4831e8bbb767c43b30268f3aefbbc43ccbbd1ebd4b7f713c730580bd6164ee3cb6d8083da8e29d3d80fddfbdb035043d413961bc31b7f63b50bbcb3bfccd373d7cc7b2bdfdc02d3d20b4c1bce712073c5b557c3cd67c043976fee537ddc68a38c15f5d396b04ff3788ca833919b50038893d3339e483bc38307be139b4909438f8b4733981c45a39b1640e3a4a449539cb0a6e38d25449388c9d4a381fe3d838c56e083a0efc8739b14b99381dc03438116c5e38806a40ba574a68bd004c6b3d6fee653acb6f743afbe9923a
\.

COPY cerebro_state.r1_c2_a (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d202020180000000000000081772d3f117a133fb750a6be1d21763e88b5143f875f2b3fba4d19bf7131a0be9d5512bfa451b6bee9e62a3e7e6dae3ef9fc2e3ea0d507bf55a02fbf0b8ad2be9e29233f044779be302d223e7c20473e8be6233e2f0ffabe67c5debe047b90bde9ef283e1aa3fc3e340e0e3eb1ef053f4f631d3fff3a8c3e36800c3f1c6859be93403bbb3ce3833c29f583bcdd4b9bbb1b8f443c2812f8bb67c88b3c6340e8bcd35ec43dddf009bfe0bbd93e68d0043feb24a2be02d810bf4e0785bd9d44c9beafbf19bec41f0c3f9ad568bed4748c3e744b063fbda232bff6efcfbdb8f43bbef097643e43b0033e6749d9be4f1ce43e011bd53dcb87323f82649dbe8c0d013f99c51cbc3176ef3c6613a1bc0ad7233c
\.

COPY cerebro_state.r2_c1_a (part, chunk) FROM stdin;
\.

COPY cerebro_state.r2_c1_b (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a22393630222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020c003000000000000c24b883f9ead6ebf76559e3f233936bf3a99e93d74b8a9be2da7b83e6b43d2be6dffe53eaab211bfe2e389be909f00bf0260023f9f4f2f3f546d4ebe3364c53d12721f3f3a8dcbbc9b2d1a3ef8d287bd0c7cccbddedb51be278664be1d3677bc7553d53e34b6f43d006e38bc9379a3bed402ccbe912a82bea8089bbeb8ff94be07278abbea69dc3eba62f13e380cc1bd58c079be29536b3ec84830bc475f843dbd30803f459368be8c3d10bf5ad522bf47978a3fb6fd053f2930ea3e6acd8fbf426c05bfaa9123be20db823e4fe83cbf4b0819bfcca6903e585c68bef56157bfbcd7893e5da8373fad05583f3d18d93db8d2003ec6a442be7cad5f3e579c3a3cf1d3fabd78267cbe50c8bc3e0ad7233c
\.

COPY cerebro_state.r2_c2_a (part, chunk) FROM stdin;
\.

COPY cerebro_state.r2_c2_b (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a22393630222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020c0030000000000001d13a73f9eadc8bff97bb43f91b239be1f911b3f5f167ebdcccf3dbdce5ef93ee2f527be1818f8bd90cf65bd38ce96be78e03bbf8e0839bfc7d803bf111119bec4a6f6b9334fa7beca02fdbdad3706bf2f8678be26ff9abe29f128bf2245c03e1eb19abe2dfe8fbe182bbb3d4125fa3ef93abd3cb1ba533ecb50c6be3a58033e549a1abc999f573ffc67833f8c51b9bd3531b43d4a0e763d279756becf11abbe7f5fa23f4cf5013efd6287be1f19b4bf3e3a883fc4f011bfbd4e953f347fa8bfc54bdf3eb48282beefc9b73e1db6f83df1b1473e40c78ebeeabeaa3e6ea7abbde1b641be399b3e3ebc0a4d3fd02d16bec68394be91984ebc43d721bec09609bfa58515bfc4dfa33daa09013f0ad7a33c
\.

COPY public.evaluated (loss, metric, metrics_type, loss_type) FROM stdin;
0.956472173333168	0.4583333432674408	{accuracy}	categorical_crossentropy
\.

COPY public.long (mst_key, model_id, compile_params, fit_params) FROM stdin;
1	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20
2	1	optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20
\.

COPY public.long_summary (model_arch_table, object_table) FROM stdin;
models	\N
\.

COPY public.model (mst_key, model_weights, model_arch, __dist_key__) FROM stdin;
1	\\xbdb5df3e181aa63e39fa80be44074d3f4bed5bbf86fa5fbee23654bfbf70c73e668e41bec5c9e1beac0e9c3e3ee00e3f3ac102bfb8229fbec7d7563e870bec3e88db94bc5b833f3f36aa703e15ee183fbc59dd3eb51d03bf852919bf483c7f3ef398c0be90108a3eb5864f3e47dbe9bd1789b73efd51ea3d81a7b03e0a8cf73b146f263da1e916bcf770f7bdbd29ba3d087b1a3ed368bd3acd84273e541a003b0005563fe86ababdd0c3e03e913de53ecd9abbbebf3eaebdf14cc1befe133bbe9b9b1e3f7412863e28e14cbe7bbe8b3dee6c9fbc729b353f4785373e8292663e2b4da73eb7fbc7bd30a0d63b274f343f9c58a23ecd43293fa735bfbe5691953ebf81b13c146eb73cc88058bd	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	0
2	\\x81772d3f117a133fb750a6be1d21763e88b5143f875f2b3fba4d19bf7131a0be9d5512bfa451b6bee9e62a3e7e6dae3ef9fc2e3ea0d507bf55a02fbf0b8ad2be9e29233f044779be302d223e7c20473e8be6233e2f0ffabe67c5debe047b90bde9ef283e1aa3fc3e340e0e3eb1ef053f4f631d3fff3a8c3e36800c3f1c6859be93403bbb3ce3833c29f583bcdd4b9bbb1b8f443c2812f8bb67c88b3c6340e8bcd35ec43dddf009bfe0bbd93e68d0043feb24a2be02d810bf4e0785bd9d44c9beafbf19bec41f0c3f9ad568bed4748c3e744b063fbda232bff6efcfbdb8f43bbef097643e43b0033e6749d9be4f1ce43e011bd53dcb87323f82649dbe8c0d013f99c51cbc3176ef3c6613a1bc	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	0
\.

COPY public.model_info (mst_key, model_id, compile_params, fit_params, model_type, model_size, metrics_elapsed_time, metrics_type, loss_type, training_metrics_final, training_loss_final, training_metrics, training_loss, validation_metrics_final, validation_loss_final, validation_metrics, validation_loss, backend) FROM stdin;
1	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	madlib_keras	0.26171875	{1.157021}	{accuracy}	categorical_crossentropy	0.7395833134651184	0.7696663737297058	{0.7395833134651184}	{0.7696663737297058}	0.7395833134651184	0.7696663737297058	{0.7395833134651184}	{0.7696663737297058}	tensorflow
2	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	madlib_keras	0.26171875	{1.033191}	{accuracy}	categorical_crossentropy	0.4583333432674408	0.956472173333168	{0.4583333432674408}	{0.956472173333168}	0.4583333432674408	0.956472173333168	{0.4583333432674408}	{0.956472173333168}	tensorflow
\.

COPY public.model_state (mst_key, part, chunk) FROM stdin;
1	1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d20201800000000000000bdb5df3e181aa63e39fa80be44074d3f4bed5bbf86fa5fbee23654bfbf70c73e668e41bec5c9e1beac0e9c3e3ee00e3f3ac102bfb8229fbec7d7563e870bec3e88db94bc5b833f3f36aa703e15ee183fbc59dd3eb51d03bf852919bf483c7f3ef398c0be90108a3eb5864f3e47dbe9bd1789b73efd51ea3d81a7b03e0a8cf73b146f263da1e916bcf770f7bdbd29ba3d087b1a3ed368bd3acd84273e541a003b0005563fe86ababdd0c3e03e913de53ecd9abbbebf3eaebdf14cc1befe133bbe9b9b1e3f7412863e28e14cbe7bbe8b3dee6c9fbc729b353f4785373e8292663e2b4da73eb7fbc7bd30a0d63b274f343f9c58a23ecd43293fa735bfbe5691953ebf81b13c146eb73cc88058bd0ad7233c940b90bd916d6cbd6fd132bdbdbd04bdf6fe953de007923c33a4ab3d6649cebd8d37373b86d684bc1843e13b5ddab53b29e317bc4f82ba3b28c096bbfe98eb3c0360a13cc067f0b8588392ba0c3b783cdb4b26bcd51f81bb51e5fdbca2e4cb3c3b2f00bba673333b7be213bc59a37dbba9c01b3c45773d3cfb35c63c195d8fbc6da9413982083539aa0035390673ee37aba24b39e04eb537eee36139ab95c039a38b673843327f3819aa5439145ba337ac1f4c3860a2b537943ca4384fba7a399dd42c38fcaea438e4c08a38f7121c37ad12a137564584372e3d6938faf4be389df63c3802462e38e6449438a5d07236b4e5bc37098aba37453908381a17873805a426bdf2cf843c08d12f3d140ccdbbdc5289bd053d17bc885b62bdda88443b0b9a2139a846c5388c30c1393c4b1a384f545539a07f0538c380323955f2cc3958442abd59e9b93c589f9a3c4831e8bbb767c43b30268f3aefbbc43ccbbd1ebd4b7f713c730580bd6164ee3cb6d8083da8e29d3d80fddfbdb035043d413961bc31b7f63b50bbcb3bfccd373d7cc7b2bdfdc02d3d20b4c1bce712073c5b557c3cd67c043976fee537ddc68a38c15f5d396b04ff3788ca833919b50038893d3339e483bc38307be139b4909438f8b4733981c45a39b1640e3a4a449539cb0a6e38d25449388c9d4a381fe3d838c56e083a0efc8739b14b99381dc03438116c5e38806a40ba574a68bd004c6b3d6fee653acb6f743afbe9923a
2	1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d202020180000000000000081772d3f117a133fb750a6be1d21763e88b5143f875f2b3fba4d19bf7131a0be9d5512bfa451b6bee9e62a3e7e6dae3ef9fc2e3ea0d507bf55a02fbf0b8ad2be9e29233f044779be302d223e7c20473e8be6233e2f0ffabe67c5debe047b90bde9ef283e1aa3fc3e340e0e3eb1ef053f4f631d3fff3a8c3e36800c3f1c6859be93403bbb3ce3833c29f583bcdd4b9bbb1b8f443c2812f8bb67c88b3c6340e8bcd35ec43dddf009bfe0bbd93e68d0043feb24a2be02d810bf4e0785bd9d44c9beafbf19bec41f0c3f9ad568bed4748c3e744b063fbda232bff6efcfbdb8f43bbef097643e43b0033e6749d9be4f1ce43e011bd53dcb87323f82649dbe8c0d013f99c51cbc3176ef3c6613a1bc0ad7233c
\.

COPY public.model_summary (source_table, validation_table, model, model_info, dependent_varname, independent_varname, model_arch_table, model_selection_table, object_table, num_iterations, metrics_compute_frequency, warm_start, name, description, start_training_time, end_training_time, madlib_version, num_classes, label_class_values, dependent_vartype, normalizing_const, metrics_iters, run_id, dtype_policy) FROM stdin;
packed	packed	model	model_info	{label}	{x}	models	two	\N	2	2	f	first	\N	2026-11-20 19:03:48.818097	2026-11-20 19:03:49.975808	0.1.0	{3}	{high,low,middle}	{text}	1	{2}	1	\N
\.

COPY public.models (model_id, model_arch, model_weights, name, description, __internal_madlib_id__) FROM stdin;
1	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	\N	\N	\N	1b65f997-0010-4073-a852-2d81f975e079
\.

COPY public.packed (__dist_key__, x, label, x_shape, label_shape, buffer_id) FROM stdin;
0	\\xa18aa6bdc42b5d3e6f2667bf11272dbfcc8352bf8f246c3f0d5a3fbfc42e68bf2cba30bf0649703f8bdabfbe6d787fbf241e383f50ce7fbf57a67cbfee64afbe44adf03e06f7643f808d293f643ec33e339318bee9d47ebf6f6d7c3f73d576bf9521cb3edc60a33e1d528dbedd5670bfa28578bee16530bf886a123feed186be	\\x000000000100000001000000000001000000010000000000010000000000000000000100000000000100000000000100	{8,4}	{8,3}	0
0	\\x5d456ebf5bfa7ebf8b2a6c3e26890bbf43a7413e5545623fc65dc23ec98a14bebfdd7d3fb940723f11912abf22cc733ff96e01bf7e537fbf55bc15bf0eef7f3f59b46b3f452c10bfe59a7e3f9b82753ff8748b3db965823ecf3d76bf51e5e93ea477f93d21b8303e033f1ebf2f4872bf29b57f3f3d2b663f700e6c3f9a6b5ebf	\\x000001000000000000000100010000000000000001000000010000000000000000000100000000000100010000000000	{8,4}	{8,3}	1
0	\\xeadf68bfec1d5e3f9bdfc4be7871793f49d682be9183ab3e39b0e5bd575a503fae28bebed4866b3fdf3636bfe83975bfbc93353f34bc1f3e13205f3faaea4c3f70a9183f413417bf241e473ffde21cbfda753abfd8347fbf39fe58bff645433f45704e3f865fa03ec5e7703fb9456ebff8ac7e3ff4ef7fbf0e41793fd711783f	\\x000001000000000000000100000000000100010000000000010000000000000001000000010000000000010000000000	{8,4}	{8,3}	2
0	\\xff745fbfe0a6873eabf54abda81e53bf53f3d73e0c3220bfdbdb793f19936abf830ff73e80980cbf921761bfef5b46bff771073f6979193e6d46ddbe621d7f3f54ec15bf83dc0ebf69262d3e1277073f9658d13e117e33bf9a8a57bf0bec25bf3cf5773f4bfc603fbd7e7f3f5bf47fbfbd6e56bf46bd7fbf1ae266beb73e61bf	\\x000001000000010000000000010000000000010000000000000001000000010000000000010000000000000001000000	{8,4}	{8,3}	3
0	\\xea077b3f166419bf3145583fddd7343fd75a0d3f23544c3eaaa67f3f2d5d7d3fc42b5d3ead3d2bbfc7757ebf407951be31026dbf57a307bf5cd3503fa60b193f4d507c3f91f8923e84c95fbf4491293f33696abec28723bf7b9b51bf2af5583f752975bfc38e7ebfe271223e5515c5be6df27f3fdc8a31bfaef747bf8c5b56bf	\\x010000000000010000000000000000000100000001000000010000000000000000000100000001000000010000000000	{8,4}	{8,3}	4
0	\\x1a220b3e279a7fbfb2b5593f632615bf5afe7fbf6f0f2abfd47e32be11834dbf733da4bebbe57fbfc0cc27be8e7f633fda577abf886d21bf25ed8f3e67c1d6bef9ad263db86912bfff97613ebcf4cd3e8416debe600428bf5971603f3f6531bf2b4d34be9adb663f8bd0a6beed7b7abf6ee1c4be0bef8f3e52d3da3e0aecfeba	\\x000000000100000001000000000000000100000001000000000000000100000001000000000000000100000000000100	{8,4}	{8,3}	5
1	\\x6dfcfc3e89627ebf5a8f79bfb34ba63ea7436a3fdf01633f9ef865bf9b5e0c3fd1f8453f946a2ebff5dd753f2b776c3f0d687dbf33c46e3fcc3802bc20ac1d3f86ff7ebf4e827fbf21a2143f2392d43d86b423bf77101ebfd8e6da3dab5803bffd2a33bf59b1ee3d9160a93e4d0492be95dd7cbfc9a97e3e60efabbe7aa26e3f	\\x010000000000010000000000010000000000000001000000000001000000000001000000000001000000000001000000	{8,4}	{8,3}	6
1	\\x20a8aa3eaafb7fbf6541073f14eefabd03487e3fb7b40e3e0f267ebf0446323ddc63893eca2c983ef0893dbf6eae533fdce520bf748a5a3fda27e2be515078bf24942b3f2ab48a3ed54e7e3f7b027ebf3c3e1ebf37b6593ff8936cbf536110bfc107773f9cb513bf577c75bf57239dbea944583f13ff7fbfbe0950bf391e40bf	\\x000000000100010000000000000000000100000001000000010000000000000001000000010000000000010000000000	{8,4}	{8,3}	7
1	\\xbac7e0bcf5a71abfd012f5be52887f3f8390503f4505683f14ff7fbf8832a63d07f25b3fb8d3703f5b90663fdffc49bf452c10bfb01b743ec8cf483f2331f43ed5594abfed402dbf464c5cbe62f5713fa371413f8b40643f6c4c34bfdb1b663fa7694c3f4a9e34bfb973f73eea59aa3cbf5e903e82ce693fcc176d3fb3fc463f	\\x000000000100010000000000010000000000000001000000000001000000010000000000010000000000000000000100	{8,4}	{8,3}	8
1	\\xe15a643fbed01cbfb7327cbfb98a3e3ef4bf703fbc792a3eae723e3fa9a1fcbe631b48bfa2d126bf1d8d093fca5a22bd0a18613f54329b3e694f1f3f7ef87a3e59305a3fcd45fb3de49b763f0f7c59bf7fd6b73e48556f3f9e937fbf28617fbd074d263f54ec15bfdc8613bf089f7bbf7c8f1b3f6de65e3f674072bfe956143f	\\x010000000000010000000000000001000000010000000000010000000000000000000100010000000000010000000000	{8,4}	{8,3}	9
1	\\x06343fbf78af683f474d76bdadea383f251e76bff8440bbfbf6708bf52c77fbfe2857fbf80726a3ff1b7df3e419d273ea2a9eabebe39603f7ba12d3b96383cbf0b936fbf6288523ef477f03d9829253fcfa95dbf192e6d3f0560c73ecd3d9b3ec8c778bf07f25b3f4c42353f7649babe688d04bf43a7413e11b68a3e85bd883e	\\x000001000000000001000000000001000000000001000000000001000000000001000000000001000000000001000000	{8,4}	{8,3}	10
1	\\x9d1774bf435a633edad2f9be22ab7ebf814759bc6ec05c3f0c40403f9543b13e4c152ebf63f36d3e68932b3f4b3668be32df96be86c56d3f43cf713fd6fd5b3f220c733fb86d3b3e625c71bfcf44e1bedd7cdebdfb6d083e48a2603d347221bf6efd25be8dfa08bfc46c213fdb22aebd97de65bfeabe24bfaa5e20bf19777c3f	\\x000001000000000000000100000001000000000000000100010000000000000000000100000000000100000001000000	{8,4}	{8,3}	11
\.

COPY public.packed_summary (source_table, output_table, dependent_varname, independent_varname, dependent_vartype, label_class_values, buffer_size, normalizing_const, num_classes, distribution_rules, __internal_gpu_config__) FROM stdin;
points	packed	{label}	{x}	{text}	{high,low,middle}	8	1	{3}	all_segments	all_segments
\.

COPY public.points (id, x, label, positive, flag, amount, pair) FROM stdin;
1	{0.9916648,0.9463001,-0.66627604,0.95233357}	high	t	1	0.25925738	{0.4958324,-1.6186095}
2	{-0.25554112,0.33498815,-0.112152524,0.8138785}	middle	t	1	-0.21151759	{-0.12777056,-0.926031}
3	{-0.9258147,-0.5298361,0.8157251,0.597834}	low	f	0	-0.3304483	{-0.46290734,0.21789111}
4	{0.49411336,-0.993691,-0.9748436,0.3247963}	high	f	0	0.49547943	{0.24705668,-1.2996399}
5	{0.7984871,-0.7055403,0.48330477,0.020794827}	high	t	1	0.57562864	{0.39924356,0.46250993}
6	{-0.6998747,0.1165492,0.33081487,-0.28518906}	low	f	0	-0.37907463	{-0.34993735,0.61600393}
7	{-0.6181371,0.8504366,-0.9241328,-0.56398505}	low	t	1	-0.52167773	{-0.30906856,-0.36014774}
8	{0.8591618,0.9407306,0.9006402,-0.78901476}	high	t	1	0.19439827	{0.4295809,1.689655}
9	{0.3967406,0.31909835,-0.2760171,-0.9388254}	middle	t	1	0.1185957	{0.1983703,0.6628083}
10	{-0.96139747,-0.5440211,-0.53283304,-0.99913514}	low	f	0	-0.34469348	{-0.48069873,0.46630213}
11	{-0.14899902,-0.99543625,0.9860448,-0.9641945}	middle	f	0	0.17435955	{-0.07449951,1.9502393}
12	{0.9997929,-0.6935251,-0.78112304,-0.8373344}	high	t	1	0.67327774	{0.49989644,0.056211367}
13	{-0.108636595,0.13323204,0.054842263,-0.63064885}	middle	t	1	-0.08762631	{-0.054318298,0.6854911}
14	{-0.9717984,0.8591618,0.70804286,-0.3638417}	low	f	0	-0.7006897	{-0.4858992,1.0718846}
15	{0.35905835,0.93489504,-0.9983462,-0.062348515}	middle	t	1	-0.05419459	{0.17952918,-0.9359977}
16	{0.87927306,0.30311835,0.62230545,0.24508855}	high	t	1	0.36385694	{0.43963653,0.3772169}
17	{-0.58563733,-0.55805224,0.16909184,0.5291606}	low	f	0	-0.1533056	{-0.29281867,-0.36006877}
18	{-0.7283608,-0.9969001,-0.84762913,0.76278627}	low	f	0	-0.114955366	{-0.3641804,-1.6104153}
19	{0.7733279,-0.68131375,0.96041805,0.92369336}	high	t	1	0.5569924	{0.38666394,0.03672472}
20	{0.5290827,0.1498772,-0.43217793,0.9965421}	high	t	1	0.22707205	{0.26454136,-1.42872}
21	{-0.90966666,0.8676441,-0.38451847,0.97438765}	low	f	0	-0.67174435	{-0.45483333,-1.3589061}
22	{-0.2946716,0.9287952,0.9445688,0.859342}	middle	t	1	-0.3795346	{-0.1473358,0.08522681}
23	{0.9856003,0.28705266,-0.87416863,0.6623728}	high	t	1	0.421037	{0.49280015,-1.5365415}
24	{0.040693257,-0.57192564,0.22030638,0.4022578}	middle	f	0	0.16332804	{0.020346629,-0.18195142}
25	{-0.9960865,-0.99808204,0.5805989,0.10379436}	low	f	0	-0.24852274	{-0.49804324,0.47680455}
26	{0.21598727,-0.66890985,-0.99398464,-0.2045641}	middle	f	0	0.27522108	{0.10799363,-0.78942055}
27	{0.940429,0.16648,0.7439374,-0.49342087}	high	t	1	0.42859447	{0.4702145,1.2373582}
28	{-0.45832545,0.8758811,0.0026493955,-0.73523843}	low	t	1	-0.448133	{-0.22916272,0.7378878}
29	{-0.82232356,0.92243284,-0.7474678,-0.9069636}	low	t	1	-0.64176995	{-0.41116178,0.15949577}
30	{0.6702292,0.2709058,0.9933904,-0.99222535}	high	t	1	0.26738814	{0.3351146,1.9856157}
31	{0.64961284,-0.58563733,-0.57627654,-0.9828954}	high	t	1	0.47121575	{0.32480642,0.40661883}
32	{-0.83762723,-0.99898183,-0.22547188,-0.8798632}	low	f	0	-0.16906817	{-0.41881362,0.65439135}
33	{-0.43376553,-0.65631676,0.87672955,-0.69295114}	low	f	0	-0.05280358	{-0.21688277,1.5696807}
34	{0.9494039,0.18303573,-0.9428159,-0.4399781}	high	t	1	0.428943	{0.47470194,-0.5028378}
35	{0.18911462,0.8838704,0.37962168,-0.14506067}	middle	t	1	-0.12641029	{0.09455731,0.52468234}
36	{-0.99813664,0.91580963,0.43695024,0.16368581}	low	f	0	-0.7280207	{-0.49906832,0.27326444}
37	{0.068094194,0.25468233,-0.9618806,0.45682767}	middle	t	1	-0.029623486	{0.034047097,-1.4187083}
38	{0.9805895,-0.59918344,0.8448058,0.7064188}	high	t	1	0.6400906	{0.49029475,0.13838693}
39	{-0.32078132,-0.99959916,-0.163867,0.8886651}	middle	f	0	0.08950913	{-0.16039066,-1.0525321}
40	{-0.8979277,-0.6435381,-0.62644446,0.9861923}	low	f	0	-0.28807932	{-0.44896385,-1.6126368}
41	{0.55216736,0.1995397,0.99863684,0.989703}	high	t	1	0.22619876	{0.27608368,0.008933805}
42	{0.7556402,0.89160985,-0.7042911,0.89886254}	high	t	1	0.15491764	{0.3778201,-1.6031536}
43	{-0.74688756,0.90892744,-0.06013229,0.72233087}	low	t	1	-0.60067564	{-0.37344378,-0.7824632}
44	{-0.5631755,0.23838687,0.7844205,0.47693738}	low	f	0	-0.3411845	{-0.28158775,0.30748314}
45	{0.8920117,-0.61256015,-0.98514885,0.18607606}	high	t	1	0.5991459	{0.44600585,-1.171225}
46	{0.33331394,-0.99993384,0.5283416,-0.12252441}	middle	f	0	0.41664043	{0.16665697,0.65086603}
47	{-0.977903,-0.63057756,0.28110614,-0.4194443}	low	f	0	-0.3313071	{-0.4889515,0.70055044}
48	{-0.0813191,0.21598727,-0.9029302,-0.67637736}	middle	t	1	-0.09465637	{-0.04065955,-0.22655286}
49	{0.99885803,0.89909726,0.9220953,-0.86882937}	high	t	1	0.27465472	{0.49942902,1.7909247}
50	{-0.17607562,0.90178835,-0.3258098,-0.97845346}	middle	t	1	-0.3134849	{-0.08803781,0.6526437}
51	{-0.9534853,0.22202401,-0.4879368,-0.9947988}	low	f	0	-0.5322487	{-0.47674266,0.506862}
52	{0.4217783,-0.62576365,0.976011,-0.91630703}	high	f	0	0.36733004	{0.21088915,1.892318}
53	{0.8447977,-0.9999859,-0.81264865,-0.75046116}	high	f	0	0.6723953	{0.42239884,-0.06218745}
54	{-0.6394733,-0.61743873,0.10688561,-0.5130717}	low	f	0	-0.16537699	{-0.31973666,0.6199573}
55	{-0.68001246,0.23237376,0.670218,-0.22676961}	low	f	0	-0.39809966	{-0.34000623,0.8969876}
56	{0.8147051,0.9063304,-0.99998593,0.08115107}	high	t	1	0.18076994	{0.40735254,-1.0811371}
57	{0.4700719,0.8943943,0.66231537,0.38133538}	high	t	1	0.011437393	{0.23503596,0.28097996}
58	{-0.93583745,0.20559838,0.11741629,0.6451659}	low	f	0	-0.5193183	{-0.46791872,-0.5277496}
59	{-0.22891693,-0.63879025,-0.8187787,0.8474909}	middle	f	0	0.045239106	{-0.114458464,-1.6662695}
60	{0.9948268,-0.99975514,0.9736489,0.9690222}	high	f	0	0.7473522	{0.4974134,0.0046267}
61	{-0.027438987,-0.6041253,-0.47865915,0.99817383}	middle	f	0	0.13731183	{-0.0137194935,-1.476833}
62	{-0.9877561,0.24869455,-0.33581066,0.9321667}	low	f	0	-0.5560517	{-0.49387804,-1.2679774}
63	{0.28197286,0.9133073,0.92614436,0.7772934}	middle	t	1	-0.08734041	{0.14098643,0.14885093}
64	{0.9150948,0.8867473,-0.89832485,0.54831856}	high	t	1	0.23586056	{0.4575474,-1.4466434}
65	{-0.5177827,0.18911462,0.2709203,0.26707092}	low	f	0	-0.30617002	{-0.25889134,0.00384939}
66	{-0.7816679,-0.65163624,0.53730947,-0.039637364}	low	f	0	-0.22792487	{-0.39083394,0.57694685}
67	{0.7192099,-0.9992418,-0.98691314,-0.3425669}	high	f	0	0.6094154	{0.35960495,-0.64434624}
68	{0.5963354,-0.5906411,0.77780366,-0.61283857}	high	t	1	0.44582796	{0.2981677,1.3906422}
69	{-0.87287897,0.26494503,-0.049550693,-0.8246865}	low	f	0	-0.5026758	{-0.43643948,0.7751358}
70	{-0.3714041,0.92002606,-0.71177477,-0.9579148}	middle	t	1	-0.41570857	{-0.18570206,0.24614005}
71	{0.9685857,0.8788497,0.9980276,-0.9998223}	high	t	1	0.26458043	{0.48429286,1.99785}
72	{0.12181023,0.1725774,-0.618149,-0.94641393}	middle	t	1	0.017760767	{0.060905114,0.32826495}
73	{-0.99997485,-0.664298,-0.17431194,-0.80278116}	low	f	0	-0.33391294	{-0.49998742,0.6284692}
74	{0.13587227,-0.9984459,0.8504287,-0.582617}	middle	f	0	0.31754762	{0.06793614,1.4330456}
75	{0.96496207,-0.5769899,-0.9589285,-0.30691025}	high	t	1	0.6267285	{0.48248103,-0.6520183}
76	{-0.3845324,0.28112063,0.4273935,-0.0019449007}	middle	f	0	-0.26254636	{-0.1922662,0.4293384}
77	{-0.8658723,0.92648464,0.38940445,0.30320588}	low	t	1	-0.66455734	{-0.43293616,0.0861986}
78	{0.60765815,0.8707035,-0.9462952,0.57945114}	high	t	1	0.08615319	{0.30382907,-1.5257463}
79	{0.7092855,0.15599138,0.87158316,0.8004557}	high	t	1	0.31564492	{0.35464275,0.07112747}
80	{-0.7904332,-0.67677194,-0.21513471,0.9451505}	low	f	0	-0.22602361	{-0.3952166,-1.1602852}
81	{-0.50559956,-0.99736774,-0.58490497,0.99974144}	low	f	0	-0.003457843	{-0.25279978,-1.5846463}
82	{0.92072064,-0.5631755,0.994551,0.95902413}	high	t	1	0.6011542	{0.46036032,0.035526883}
83	{0.26834,0.2972167,-0.740386,0.82688034}	middle	t	1	0.059865817	{0.13417,-1.5672663}
84	{-0.98986894,0.93268126,-0.007948112,0.61590767}	low	f	0	-0.72810477	{-0.49493447,-0.62385577}
85	{-0.013261677,0.86231124,0.7509773,0.34621873}	middle	t	1	-0.22220865	{-0.0066308384,0.40475854}
86	{0.9932863,0.13936125,-0.9927682,0.043523803}	high	t	1	0.46180284	{0.49664316,-1.0362921}
87	{-0.24269727,-0.68905455,0.57193804,-0.2633204}	middle	f	0	0.050915007	{-0.121348634,0.8352584}
88	{-0.9307459,-0.9960076,0.23063104,-0.54506147}	low	f	0	-0.21637104	{-0.46537295,0.7756925}
89	{0.48254022,-0.54920197,-0.8792659,-0.7748403}	high	f	0	0.37857062	{0.24127011,-0.10442557}
90	{0.8064006,0.3132288,0.9410365,-0.9307514}	high	t	1	0.3248931	{0.4032003,1.8717879}
91	{-0.69034076,0.93861425,-0.37471423,-0.9979313}	low	t	1	-0.579824	{-0.34517038,0.62321705}
92	{-0.6285074,0.8536751,-0.4417103,-0.96997553}	low	t	1	-0.52767247	{-0.3142537,0.52826524}
93	{0.8523002,0.12269173,0.9633162,-0.84954923}	high	t	1	0.39547718	{0.4261501,1.8128654}
94	{0.40887898,-0.7011424,-0.84195864,-0.648133}	high	f	0	0.37972507	{0.20443949,-0.19382566}
95	{-0.95766383,-0.9943659,0.15863755,-0.38492838}	low	f	0	-0.23024045	{-0.47883192,0.5435659}
96	{-0.16209957,-0.5350731,0.6305659,-0.08502742}	middle	f	0	0.052718498	{-0.081049785,0.7155933}
\.

COPY public.predicted (id, class_name, class_value, prob, rank) FROM stdin;
1	label	high	0.48536714911460876	1
1	label	middle	0.3212439715862274	2
1	label	low	0.19338899850845337	3
2	label	low	0.4939887523651123	1
2	label	middle	0.30259203910827637	2
2	label	high	0.20341920852661133	3
3	label	low	0.5719666481018066	1
3	label	middle	0.24934497475624084	2
3	label	high	0.17868837714195251	3
4	label	high	0.3817150890827179	1
4	label	low	0.355448842048645	2
4	label	middle	0.2628360986709595	3
5	label	high	0.6247162818908691	1
5	label	middle	0.24836762249469757	2
5	label	low	0.12691602110862732	3
6	label	low	0.5038523077964783	1
6	label	middle	0.28844043612480164	2
6	label	high	0.2077072411775589	3
7	label	low	0.5177754759788513	1
7	label	middle	0.26649415493011475	2
7	label	high	0.21573038399219513	3
8	label	high	0.726860523223877	1
8	label	middle	0.22191329300403595	2
8	label	low	0.051226139068603516	3
9	label	high	0.49654555320739746	1
9	label	middle	0.31214213371276855	2
9	label	low	0.1913122832775116	3
10	label	low	0.5672615766525269	1
10	label	middle	0.22666427493095398	2
10	label	high	0.20607417821884155	3
11	label	high	0.47356516122817993	1
11	label	middle	0.26409420371055603	2
11	label	low	0.2623406946659088	3
12	label	high	0.5070801973342896	1
12	label	middle	0.28666266798973083	2
12	label	low	0.20625713467597961	3
13	label	high	0.3877534866333008	1
13	label	middle	0.3198834955692291	2
13	label	low	0.2923630177974701	3
14	label	low	0.41971030831336975	1
14	label	middle	0.376202255487442	2
14	label	high	0.20408748090267181	3
15	label	high	0.3560087978839874	1
15	label	low	0.3297824561595917	2
15	label	middle	0.3142087161540985	3
16	label	high	0.6734036207199097	1
16	label	middle	0.24080193042755127	2
16	label	low	0.08579444140195847	3
17	label	low	0.5821287631988525	1
17	label	middle	0.21942545473575592	2
17	label	high	0.19844575226306915	3
18	label	low	0.7444561719894409	1
18	label	middle	0.14396028220653534	2
18	label	high	0.11158353090286255	3
19	label	high	0.6417235732078552	1
19	label	middle	0.22199298441410065	2
19	label	low	0.13628339767456055	3
20	label	high	0.3560467064380646	1
20	label	low	0.33774539828300476	2
20	label	middle	0.30620789527893066	3
21	label	low	0.6163275241851807	1
21	label	middle	0.27879318594932556	2
21	label	high	0.10487924516201019	3
22	label	middle	0.4287903904914856	1
22	label	high	0.3530709743499756	2
22	label	low	0.2181387096643448	3
23	label	high	0.4414754807949066	1
23	label	middle	0.30562493205070496	2
23	label	low	0.25289952754974365	3
24	label	low	0.3733525574207306	1
24	label	high	0.3539251983165741	2
24	label	middle	0.27272215485572815	3
25	label	low	0.619301438331604	1
25	label	middle	0.19481192529201508	2
25	label	high	0.18588665127754211	3
26	label	high	0.366840124130249	1
26	label	low	0.3643144369125366	2
26	label	middle	0.26884546875953674	3
27	label	high	0.7120863795280457	1
27	label	middle	0.22245189547538757	2
27	label	low	0.06546178460121155	3
28	label	middle	0.34519895911216736	1
28	label	high	0.32995888590812683	2
28	label	low	0.3248421847820282	3
29	label	low	0.5043031573295593	1
29	label	middle	0.2776525318622589	2
29	label	high	0.21804435551166534	3
30	label	high	0.7095357179641724	1
30	label	middle	0.2251727283000946	2
30	label	low	0.06529159098863602	3
31	label	high	0.47901231050491333	1
31	label	middle	0.2961958646774292	2
31	label	low	0.22479179501533508	3
32	label	low	0.550760805606842	1
32	label	middle	0.2272324413061142	2
32	label	high	0.22200679779052734	3
33	label	low	0.36905089020729065	1
33	label	high	0.360821932554245	2
33	label	middle	0.2701271176338196	3
34	label	high	0.5089309215545654	1
34	label	middle	0.2982138693332672	2
34	label	low	0.19285526871681213	3
35	label	high	0.47893622517585754	1
35	label	middle	0.34842798113822937	2
35	label	low	0.17263579368591309	3
36	label	low	0.49365752935409546	1
36	label	middle	0.3565758764743805	2
36	label	high	0.14976656436920166	3
37	label	low	0.48705965280532837	1
37	label	middle	0.2637748420238495	2
37	label	high	0.24916547536849976	3
38	label	high	0.6975017189979553	1
38	label	middle	0.2105238437652588	2
38	label	low	0.09197448194026947	3
39	label	low	0.5829063057899475	1
39	label	high	0.2153688371181488	2
39	label	middle	0.20172488689422607	3
40	label	low	0.7671031951904297	1
40	label	middle	0.1385398507118225	2
40	label	high	0.09435699135065079	3
41	label	high	0.6082693338394165	1
41	label	middle	0.2793119251728058	2
41	label	low	0.11241872608661652	3
42	label	high	0.42669644951820374	1
42	label	middle	0.32610154151916504	2
42	label	low	0.24720197916030884	3
43	label	low	0.5110718607902527	1
43	label	middle	0.343405544757843	2
43	label	high	0.1455225795507431	3
44	label	low	0.4231875538825989	1
44	label	middle	0.335016131401062	2
44	label	high	0.24179629981517792	3
45	label	high	0.43253764510154724	1
45	label	low	0.28871989250183105	2
45	label	middle	0.2787424921989441	3
46	label	high	0.5011140704154968	1
46	label	middle	0.26622262597084045	2
46	label	low	0.2326633483171463	3
47	label	low	0.6138623952865601	1
47	label	middle	0.21689532697200775	2
47	label	high	0.1692422479391098	3
48	label	low	0.3959091901779175	1
48	label	high	0.31647565960884094	2
48	label	middle	0.28761518001556396	3
49	label	high	0.7518288493156433	1
49	label	middle	0.2061316817998886	2
49	label	low	0.0420394204556942	3
50	label	high	0.395656943321228	1
50	label	middle	0.3245261311531067	2
50	label	low	0.27981695532798767	3
51	label	low	0.5275322794914246	1
51	label	middle	0.2584020793437958	2
51	label	high	0.21406561136245728	3
52	label	high	0.6368759870529175	1
52	label	middle	0.2429790049791336	2
52	label	low	0.12014510482549667	3
53	label	high	0.4955519437789917	1
53	label	middle	0.27801889181137085	2
53	label	low	0.22642922401428223	3
54	label	low	0.5197530388832092	1
54	label	middle	0.25234830379486084	2
54	label	high	0.22789862751960754	3
55	label	low	0.4591018557548523	1
55	label	middle	0.3150523006916046	2
55	label	high	0.22584588825702667	3
56	label	high	0.468204528093338	1
56	label	middle	0.3171578645706177	2
56	label	low	0.21463754773139954	3
57	label	high	0.5607600212097168	1
57	label	middle	0.32948678731918335	2
57	label	low	0.10975311696529388	3
58	label	low	0.6309856176376343	1
58	label	middle	0.2536128759384155	2
58	label	high	0.1154015064239502	3
59	label	low	0.6179290413856506	1
59	label	middle	0.20181803405284882	2
59	label	high	0.18025293946266174	3
60	label	high	0.6862676739692688	1
60	label	middle	0.2021089345216751	2
60	label	low	0.1116233542561531	3
61	label	low	0.5441256761550903	1
61	label	middle	0.22814734280109406	2
61	label	high	0.22772696614265442	3
62	label	low	0.6889316439628601	1
62	label	middle	0.21446704864501953	2
62	label	high	0.09660133719444275	3
63	label	high	0.5456032752990723	1
63	label	middle	0.3534570336341858	2
63	label	low	0.10093975812196732	3
64	label	high	0.46150660514831543	1
64	label	middle	0.3201206624507904	2
64	label	low	0.21837276220321655	3
65	label	low	0.5031368732452393	1
65	label	middle	0.2996841073036194	2
65	label	high	0.19717903435230255	3
66	label	low	0.5475054383277893	1
66	label	middle	0.2320723831653595	2
66	label	high	0.2204221934080124	3
67	label	high	0.46742504835128784	1
67	label	middle	0.26990950107574463	2
67	label	low	0.26266542077064514	3
68	label	high	0.64560467004776	1
68	label	middle	0.2428964078426361	2
68	label	low	0.11149895936250687	3
69	label	low	0.5012351274490356	1
69	label	middle	0.2762056589126587	2
69	label	high	0.22255927324295044	3
70	label	low	0.4087804853916168	1
70	label	middle	0.3071576654911041	2
70	label	high	0.28406184911727905	3
71	label	high	0.758303701877594	1
71	label	middle	0.20178785920143127	2
71	label	low	0.0399085134267807	3
72	label	high	0.3959251046180725	1
72	label	middle	0.30931365489959717	2
72	label	low	0.2947612404823303	3
73	label	low	0.6027852892875671	1
73	label	middle	0.2166443020105362	2
73	label	high	0.18057040870189667	3
74	label	high	0.5137852430343628	1
74	label	middle	0.26007065176963806	2
74	label	low	0.22614406049251556	3
75	label	high	0.46420449018478394	1
75	label	middle	0.2837319076061249	2
75	label	low	0.2520635426044464	3
76	label	low	0.40009015798568726	1
76	label	middle	0.3262639343738556	2
76	label	high	0.27364587783813477	3
77	label	low	0.46400803327560425	1
77	label	middle	0.36950430274009705	2
77	label	high	0.16648773849010468	3
78	label	high	0.37325814366340637	1
78	label	middle	0.3155246078968048	2
78	label	low	0.31121721863746643	3
79	label	high	0.6429991722106934	1
79	label	middle	0.2564793825149536	2
79	label	low	0.10052143037319183	3
80	label	low	0.7164314389228821	1
80	label	middle	0.16359111666679382	2
80	label	high	0.1199774295091629	3
81	label	low	0.6988962888717651	1
81	label	middle	0.16356156766414642	2
81	label	high	0.13754214346408844	3
82	label	high	0.6922849416732788	1
82	label	middle	0.20765703916549683	2
82	label	low	0.10005798190832138	3
83	label	low	0.443144291639328	1
83	label	middle	0.28176799416542053	2
83	label	high	0.27508774399757385	3
84	label	low	0.5599750876426697	1
84	label	middle	0.3235830068588257	2
84	label	high	0.11644194275140762	3
85	label	high	0.4581421911716461	1
85	label	middle	0.380925714969635	2
85	label	low	0.16093210875988007	3
86	label	high	0.4809715151786804	1
86	label	middle	0.2969658374786377	2
86	label	low	0.22206266224384308	3
87	label	low	0.3668575584888458	1
87	label	high	0.35888874530792236	2
87	label	middle	0.2742536962032318	3
88	label	low	0.5999692678451538	1
88	label	middle	0.21217721700668335	2
88	label	high	0.18785355985164642	3
89	label	high	0.4572948217391968	1
89	label	middle	0.28412967920303345	2
89	label	low	0.2585754692554474	3
90	label	high	0.7240239381790161	1
90	label	middle	0.2177772969007492	2
90	label	low	0.05819873884320259	3
91	label	low	0.4281613826751709	1
91	label	middle	0.31478777527809143	2
91	label	high	0.25705090165138245	3
92	label	low	0.43628832697868347	1
92	label	middle	0.3042925000190735	2
92	label	high	0.2594192326068878	3
93	label	high	0.7329800724983215	1
93	label	middle	0.21035107970237732	2
93	label	low	0.05666882172226906	3
94	label	high	0.4506243169307709	1
94	label	middle	0.28043633699417114	2
94	label	low	0.2689392864704132	3
95	label	low	0.6326450109481812	1
95	label	middle	0.19918955862522125	2
95	label	high	0.16816537082195282	3
96	label	high	0.36760684847831726	1
96	label	low	0.35792458057403564	2
96	label	middle	0.2744685411453247	3
\.

COPY public.two (mst_key, model_id, compile_params, fit_params) FROM stdin;
1	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8
2	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8
\.

COPY public.two_summary (model_arch_table, object_table) FROM stdin;
models	\N
\.

SELECT pg_catalog.setval('cerebro.run_log_run_id_seq', 2, true);

SELECT pg_catalog.setval('public.long_mst_key_seq', 2, true);

SELECT pg_catalog.setval('public.two_mst_key_seq', 2, true);

ALTER TABLE ONLY public.long
    ADD CONSTRAINT long_model_id_compile_params_fit_params_key UNIQUE (model_id, compile_params, fit_params);

ALTER TABLE ONLY public.long
    ADD CONSTRAINT long_pkey PRIMARY KEY (mst_key);

ALTER TABLE ONLY public.model_info
    ADD CONSTRAINT model_info_pkey PRIMARY KEY (mst_key);

ALTER TABLE ONLY public.model_state
    ADD CONSTRAINT model_state_pkey PRIMARY KEY (mst_key, part);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (model_id);

ALTER TABLE ONLY public.two
    ADD CONSTRAINT two_model_id_compile_params_fit_params_key UNIQUE (model_id, compile_params, fit_params);

ALTER TABLE ONLY public.two
    ADD CONSTRAINT two_pkey PRIMARY KEY (mst_key);

CREATE INDEX packed___dist_key___buffer_id_idx ON public.packed USING btree (__dist_key__, buffer_id);

GRANT USAGE ON SCHEMA madlib TO cerebro;

GRANT USAGE ON SCHEMA cerebro TO cerebro;

GRANT ALL ON SCHEMA cerebro_state TO cerebro;

GRANT ALL ON SCHEMA public TO cerebro;

GRANT ALL ON FUNCTION cerebro.array_bytes(value anyarray) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_add(dataset text, pass_no integer, buffer_id integer, shapes json, part bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_close(dataset text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_open(dataset text, cache_bytes bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.drop_run(run_id bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.job_begin(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.job_finish() TO cerebro;

GRANT ALL ON FUNCTION cerebro.may_see(owner name) TO cerebro;

GRANT ALL ON FUNCTION cerebro.metric_results(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.pack_rows(spec json, data bytea[]) TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_begin(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_rest() TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_row(id text, data bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.python_version() TO cerebro;

GRANT ALL ON FUNCTION cerebro.resume(run_id bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.state_add(part integer, chunk bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.state_chunks(chunk_bytes integer) TO cerebro;

GRANT ALL ON FUNCTION cerebro.trainer_report(framework text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.trainer_start(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.worker_report() TO cerebro;

GRANT ALL ON FUNCTION cerebro.write_outputs(run_id bigint, name text) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_keras_model(keras_model_arch_table character varying, model_id integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.generate_model_configs(model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_grid character varying, fit_params_grid character varying, search_type character varying, num_configs integer, random_state integer, object_table character varying) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_keras_model(keras_model_arch_table character varying, model_arch json, model_weights bytea, name text, description text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_model_selection_table(model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_list character varying[], fit_params_list character varying[], object_table character varying) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_evaluate(model_table character varying, test_table character varying, output_table character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_fit_multiple_model(source_table character varying, model_output_table character varying, model_selection_table character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, use_caching boolean, seed bigint, schedule text, workers integer, replay_run bigint, training_metrics boolean, dtype_policy text, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_evaluate(model_table character varying, test_table character varying, output_table character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_fit_multiple_model(source_table character varying, model_output_table character varying, model_selection_table character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, use_caching boolean, seed bigint, schedule text, workers integer, replay_run bigint, training_metrics boolean, dtype_policy text, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.training_preprocessor_dl(source_table character varying, output_table character varying, dependent_varname character varying, independent_varname character varying, buffer_size integer, normalizing_const real, num_classes integer[], distribution_rules text, n_segments integer, seed bigint, dependent_type text) TO cerebro;

GRANT ALL ON FUNCTION madlib.validation_preprocessor_dl(source_table character varying, output_table character varying, dependent_varname character varying, independent_varname character varying, training_preprocessor_table character varying, buffer_size integer, distribution_rules text) TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.config_log TO cerebro;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE cerebro.run_log TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.visit TO cerebro;

GRANT SELECT ON TABLE cerebro.config TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.evaluation TO cerebro;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE cerebro.form_timing TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.metric TO cerebro;

GRANT SELECT ON TABLE cerebro.leaderboard TO cerebro;

GRANT SELECT ON TABLE cerebro.learning_curve TO cerebro;

GRANT SELECT ON TABLE cerebro.run TO cerebro;

GRANT SELECT ON TABLE cerebro.progress TO cerebro;

GRANT USAGE ON SEQUENCE cerebro.run_log_run_id_seq TO cerebro;

GRANT SELECT ON TABLE cerebro.setting TO cerebro;

GRANT SELECT ON TABLE cerebro.timeline TO cerebro;
