-- A database of release 0.2.0 as pg_dump wrote it, without pg_dump's comments and without the settings, which name
-- files of a machine: packed data, a model selection of two configurations trained, evaluated and predicted from, whose
-- predictions are granted to pg_monitor, a second run that was cancelled in the middle, and a run of madlib_fit that
-- was cancelled before its last average. Never changed: tests/upgrade/test_release.py updates and restores it.
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

CREATE TABLE public.model (
    mst_key integer,
    model_weights bytea,
    model_arch json,
    __dist_key__ integer
);

ALTER TABLE public.model OWNER TO cerebro;

CREATE TABLE public.model_state (
    mst_key integer NOT NULL,
    part integer NOT NULL,
    chunk bytea NOT NULL
);
ALTER TABLE ONLY public.model_state ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE public.model_state OWNER TO cerebro;

CREATE FUNCTION public.model_predict(spec json, mst_key integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    BEGIN ATOMIC
 SELECT cerebro.sealed_begin(model_predict.spec, m.model_arch) AS sealed_begin
    FROM public.model m
   WHERE (m.mst_key = model_predict.mst_key);
 SELECT count(cerebro.sealed_add(s.part, s.chunk)) AS count
    FROM ( SELECT t.part,
             t.chunk
            FROM public.model_state t
           WHERE (t.mst_key = model_predict.mst_key)
           ORDER BY t.part
          OFFSET 0) s;
END;

ALTER FUNCTION public.model_predict(spec json, mst_key integer) OWNER TO cerebro;

COMMENT ON FUNCTION public.model_predict(spec json, mst_key integer) IS 'Made by cerebro.grant_predict: lets who may execute it predict with the model, and not read it';

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

CREATE TABLE cerebro_state.r3_c1_a0_ (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r3_c1_a0_ ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r3_c1_a0_ OWNER TO cerebro;

CREATE TABLE cerebro_state.r3_c1_a1_ (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r3_c1_a1_ ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r3_c1_a1_ OWNER TO cerebro;

CREATE TABLE cerebro_state.r3_c1_a2_ (
    part integer NOT NULL,
    chunk bytea NOT NULL
)
WITH (autovacuum_enabled='false');
ALTER TABLE ONLY cerebro_state.r3_c1_a2_ ALTER COLUMN chunk SET STORAGE PLAIN;

ALTER TABLE cerebro_state.r3_c1_a2_ OWNER TO cerebro;

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
1	first	cerebro	completed	{"one": null, "name": "first", "seed": 1937841723, "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_targets": [false], "target_shapes": [[3]], "dependent_types": ["text"], "normalizing_const": 1.0}, "tables": {"source": "\\"public\\".\\"packed\\"", "selection": "\\"public\\".\\"two\\"", "validation": "\\"public\\".\\"packed\\"", "model_output": "\\"public\\".\\"model\\"", "architectures": "\\"public\\".\\"models\\"", "source_summary": "\\"public\\".\\"packed_summary\\"", "selection_summary": "\\"public\\".\\"two_summary\\"", "validation_summary": "\\"public\\".\\"packed_summary\\""}, "backend": "tensorflow", "version": "0.2.0", "workers": null, "schedule": "longest", "segments": [0, 1], "use_gpus": false, "functions": {}, "replay_run": null, "validation": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_targets": [false], "target_shapes": [[3]], "dependent_types": ["text"], "normalizing_const": 1.0}, "warm_start": false, "description": null, "keep_states": true, "max_runtime": null, "rank_metric": "accuracy", "use_caching": false, "dtype_policy": null, "max_attempts": 3, "object_table": null, "rank_dataset": "validation", "source_table": "packed", "num_iterations": 2, "evaluate_epochs": [2], "rank_descending": true, "model_arch_table": "models", "training_metrics": true, "validation_table": "packed", "model_output_table": "model", "model_selection_table": "two", "metrics_compute_frequency": 2}	2026-11-21 14:21:41.064052+00	2026-11-21 14:21:43.908594+00	\N	32417	2	{0,1}
2	\N	cerebro	cancelled	{"one": null, "name": null, "seed": 1688578142, "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_targets": [false], "target_shapes": [[3]], "dependent_types": ["text"], "normalizing_const": 1.0}, "tables": {"source": "\\"public\\".\\"packed\\"", "selection": "\\"public\\".\\"long\\"", "model_output": "\\"public\\".\\"rest\\"", "architectures": "\\"public\\".\\"models\\"", "source_summary": "\\"public\\".\\"packed_summary\\"", "selection_summary": "\\"public\\".\\"long_summary\\""}, "backend": "tensorflow", "version": "0.2.0", "workers": null, "schedule": "longest", "segments": [0, 1], "use_gpus": false, "functions": {}, "replay_run": null, "validation": null, "warm_start": false, "description": null, "keep_states": true, "max_runtime": null, "rank_metric": "accuracy", "use_caching": false, "dtype_policy": null, "max_attempts": 3, "object_table": null, "rank_dataset": "training", "source_table": "packed", "num_iterations": 2, "evaluate_epochs": [2], "rank_descending": true, "model_arch_table": "models", "training_metrics": true, "validation_table": null, "model_output_table": "rest", "model_selection_table": "long", "metrics_compute_frequency": 2}	2026-11-21 14:21:48.866883+00	2026-11-21 14:21:50.497126+00	canceling statement due to user request	1008	2	{0,1}
3	\N	cerebro	cancelled	{"one": {"model_id": 1, "fit_params": "batch_size=1,epochs=20", "object_table": null, "compile_params": "optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']", "model_arch_table": "models"}, "name": null, "seed": 2097845192, "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"], "independent": ["x"], "class_values": [["high", "low", "middle"]], "float_targets": [false], "target_shapes": [[3]], "dependent_types": ["text"], "normalizing_const": 1.0}, "tables": {"source": "\\"public\\".\\"packed\\"", "model_output": "\\"public\\".\\"averaged\\"", "architectures": "\\"public\\".\\"models\\"", "source_summary": "\\"public\\".\\"packed_summary\\""}, "backend": "tensorflow", "version": "0.2.0", "workers": null, "schedule": "averaging", "segments": [0, 1], "use_gpus": false, "functions": {}, "replay_run": null, "validation": null, "warm_start": false, "description": null, "keep_states": true, "max_runtime": null, "rank_metric": "accuracy", "use_caching": null, "dtype_policy": null, "max_attempts": 3, "object_table": null, "rank_dataset": "training", "source_table": "packed", "num_iterations": 2, "evaluate_epochs": [2], "rank_descending": true, "model_arch_table": "models", "training_metrics": true, "validation_table": null, "model_output_table": "averaged", "model_selection_table": null, "metrics_compute_frequency": 2}	2026-11-21 14:21:55.766168+00	2026-11-21 14:21:58.656881+00	canceling statement due to user request	1032	2	{0,1}
\.

COPY cerebro.config_log (run_id, mst_key, params, status, reason, state_tables, model_id, compile_params, fit_params, architecture, backend) FROM stdin;
1	1	{"model_id": 1, "fit_params": "batch_size=8", "compile_params": "optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	completed	\N	{"cerebro_state.\\"r1_c1_a\\""}	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
1	2	{"model_id": 1, "fit_params": "batch_size=8", "compile_params": "optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	completed	\N	{"cerebro_state.\\"r1_c2_a\\""}	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
2	1	{"model_id": 1, "fit_params": "batch_size=1,epochs=20", "compile_params": "optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	stopped	\N	{"cerebro_state.\\"r2_c1_a\\"","cerebro_state.\\"r2_c1_b\\""}	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
2	2	{"model_id": 1, "fit_params": "batch_size=1,epochs=20", "compile_params": "optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']"}	stopped	\N	{"cerebro_state.\\"r2_c2_a\\"","cerebro_state.\\"r2_c2_b\\""}	1	optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
3	1	{"model_id": 1, "fit_params": "batch_size=1,epochs=20", "compile_params": "optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']"}	stopped	\N	{"cerebro_state.\\"r3_c1_a0_\\"","cerebro_state.\\"r3_c1_a2_\\"","cerebro_state.\\"r3_c1_a1_\\""}	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	tensorflow
\.

COPY cerebro.evaluation (run_id, epoch, mst_key, segment_id, attempt, status, started_at, ended_at, rows, error) FROM stdin;
1	2	2	0	1	completed	2026-11-21 14:21:43.127762+00	2026-11-21 14:21:43.436064+00	96	\N
1	2	1	1	1	completed	2026-11-21 14:21:43.185603+00	2026-11-21 14:21:43.624022+00	96	\N
1	2	1	0	1	completed	2026-11-21 14:21:43.438614+00	2026-11-21 14:21:43.723161+00	96	\N
1	2	2	1	1	completed	2026-11-21 14:21:43.62504+00	2026-11-21 14:21:43.897967+00	96	\N
\.

COPY cerebro.metric (run_id, mst_key, epoch, dataset, name, value, "time") FROM stdin;
1	1	2	training	loss	0.830279991030693	2026-11-21 14:21:43.732639+00
1	1	2	training	accuracy	0.7395833134651184	2026-11-21 14:21:43.73312+00
1	1	2	validation	loss	0.830279991030693	2026-11-21 14:21:43.733136+00
1	1	2	validation	accuracy	0.7395833134651184	2026-11-21 14:21:43.733142+00
1	2	2	training	loss	1.1722200413544972	2026-11-21 14:21:43.905896+00
1	2	2	training	accuracy	0.2291666716337204	2026-11-21 14:21:43.905963+00
1	2	2	validation	loss	1.1722200413544972	2026-11-21 14:21:43.90597+00
1	2	2	validation	accuracy	0.2291666716337204	2026-11-21 14:21:43.905977+00
\.

COPY cerebro.setting (name, value) FROM stdin;
\.

COPY cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status, started_at, ended_at, rows, state_bytes, form, threads, error, loss, state_table, worker_pid, training_seconds, kind) FROM stdin;
1	1	2	1	1	1	completed	2026-11-21 14:21:41.090729+00	2026-11-21 14:21:42.484945+00	48	912	graph_loop	1	\N	1.271425187587738	cerebro_state."r1_c2_b"	32640	0.03505832900009409	train
1	1	1	0	1	1	completed	2026-11-21 14:21:41.092701+00	2026-11-21 14:21:42.523799+00	48	1944	graph_loop	1	\N	1.0903549989064534	cerebro_state."r1_c1_b"	32624	0.004094149000593461	train
1	1	2	0	2	1	completed	2026-11-21 14:21:42.530746+00	2026-11-21 14:21:42.883525+00	48	912	graph_loop	1	\N	1.1506955027580261	cerebro_state."r1_c2_a"	32624	0.013129322000168031	train
1	2	2	0	3	1	completed	2026-11-21 14:21:42.885902+00	2026-11-21 14:21:42.912888+00	48	912	graph_loop	1	\N	1.1427141825358074	cerebro_state."r1_c2_b"	32624	0.016025823000290984	train
1	1	1	1	2	1	completed	2026-11-21 14:21:42.530491+00	2026-11-21 14:21:43.082215+00	48	1944	graph_loop	1	\N	1.0059110422929127	cerebro_state."r1_c1_a"	32640	0.018689293000079488	train
1	2	1	0	3	1	completed	2026-11-21 14:21:43.086148+00	2026-11-21 14:21:43.113207+00	48	1944	graph_loop	1	\N	0.9486404558022817	cerebro_state."r1_c1_b"	32624	0.01005864200033102	train
1	2	2	1	4	1	completed	2026-11-21 14:21:43.086702+00	2026-11-21 14:21:43.116136+00	48	912	graph_loop	1	\N	1.2308637897173564	cerebro_state."r1_c2_a"	32640	0.013361418000386038	train
1	2	1	1	4	1	completed	2026-11-21 14:21:43.126958+00	2026-11-21 14:21:43.173147+00	48	1944	graph_loop	1	\N	0.8570338189601898	cerebro_state."r1_c1_a"	32640	0.022321232000649616	train
2	1	1	0	1	1	completed	2026-11-21 14:21:48.888535+00	2026-11-21 14:21:50.385802+00	960	912	graph_loop	1	\N	0.7938575175047542	cerebro_state."r2_c1_b"	1014	0.24151544199912678	train
2	1	2	1	1	1	completed	2026-11-21 14:21:48.886797+00	2026-11-21 14:21:50.426684+00	960	912	graph_loop	1	\N	0.4873510396350563	cerebro_state."r2_c2_b"	1015	0.27557726800114324	train
3	1	1	0	1	1	completed	2026-11-21 14:21:55.780685+00	2026-11-21 14:21:58.046881+00	960	1944	graph_loop	1	\N	0.3388895703077253	cerebro_state."r3_c1_a1_"	1035	0.6214461350027705	train
3	1	1	1	2	1	completed	2026-11-21 14:21:55.789131+00	2026-11-21 14:21:58.059858+00	960	1944	graph_loop	1	\N	0.24196637041768554	cerebro_state."r3_c1_a2_"	1038	0.6192534119986703	train
3	1	1	1	3	1	completed	2026-11-21 14:21:58.067587+00	2026-11-21 14:21:58.09673+00	1920	1944	\N	1	\N	\N	cerebro_state."r3_c1_a0_"	1038	0	average
3	2	1	1	5	1	completed	2026-11-21 14:21:58.099488+00	2026-11-21 14:21:58.571071+00	960	1944	graph_loop	1	\N	0.024846080679572915	cerebro_state."r3_c1_a2_"	1038	0.437335669998447	train
3	2	1	0	4	1	completed	2026-11-21 14:21:58.099822+00	2026-11-21 14:21:58.642959+00	960	1944	graph_loop	1	\N	0.069126665310487	cerebro_state."r3_c1_a1_"	1035	0.5106475680017866	train
\.

COPY cerebro_state.r1_c1_a (part, chunk) FROM stdin;
1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d20201800000000000000a2dbef3e46780dbe123de0be4977ab3e3df235bfabed243d100c0f3e203f023e620ecbbe9b3888be0976cabeaab8113e4c3bc4baf4da773e4bfe1c3f86f50fbeea38483e7627af3ed533a73e7a3acf3da5256bbdc7f73abf02f6983db9cd18bf6812c1bd297d5e3e7d19b93ebc70a03dfa29b6bed2659cbcfa6abdbc5ae7093fa07d453da5bf873c2005f43c4a54013e505b243e3a18033d3c3ad8bdd4ca28be915e04be9c092dbfa893cebd0317313f39b2f53e07f83fbe8bcf27bfee20da3e5a91e0bd70ba0e3fd15993bde4b0b3bd185516bf1740383fb6ba943ef1c2023e101a64be08ac2bbe36d9a8bdb0d1553ead8303bf586ed83dfee7833e91baad3ebdd5d93dd473c9bd178305bd0ad7233c0323e1bc1d4f2e3bda3cdc3dae71a1bdb768dd3dbafa04bd20bb043de5a8e93c41667f3b5b82f03bd946b1bc47b36d3c23f4ebbcc8300a3c7cbd973be5596dbbf87153bb3087fb3a3a86093c88e6e33bf1cd6fbc21b4863cd4d4663bd18d59bc588e54bac8cf5c3c908201bbde2c413c092442bca15d04baf668453ca01e0fbabfc4093827323e38b70e083a46b443393c83c73918bb0f38d170d13868689c386328bb3790550a397782fb38dc3bd237723e31392acb923708a20d394bacbb37537721375f882239ca702d39125695385dd34a3870a38a37d6202b3880922738187bd03719d79f385c0a9338c5bd3838316801393aae7336c2e249385028a4376853e4bcf88a8e3b4f397fbd2fee26bd2899e4bd805d19bc9322523c112ba83c452d6e3841019839f4de9b39d3744139e9c8173aeba6de378171603978418938f02481bdf9d8253dcde1b83c7bec0e3c8fcc10bcc00af03887e2ba3cc0e808bdf2dd2d3cf0ed1cbd00a50a3d7147923bdb384d3dccc4ccbdbe504c3d5d7be4bc5445563c66b1723c4c359dbc12d4a33ca0d853ba2f8b2ebdc1aafd3c3ed73e3c81857439b9b79238079da43841e00b38fe52ab3717576138d6cd7f381ee98c389e4dda38bf3392382eac2c380d707a37fa73b9386f5db839280a0e3977769e3854d79338954a73382260c6386022ed3800aa193884432f3998f1e6388cba6b38fee551bd4c8a0c3b5e1d493d392a963abe67803a8ade8a3a
\.

COPY cerebro_state.r1_c2_a (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020201800000000000000ba1e0bbfc56c73bd053e203d0c1a983d1a66f1bd875484be578113bf879432bfef208bbd948bbd3b52f4dc3ed3b5dbbec4c79a3d470d84be0eed323fd179593e2a6b973e7c383b3e9127143fee0918bfdf68fb3c81b941be538d2ebed116f43a0773153e4db60e3fd6a0873eb559a4bec369b5be99e9033fcce32fbf704ed33e5d0333bd231c95bbcd3bb5bba598b2ba4cf8b93afa185cbc407762bc87de883c1773233ff88cd8be651119bf9392433ed678b9beffa993bea434b2bd6c2fdf3c2d95483e5a900fbfd81cb5bee2bfb0bee6eb2ebee8bb223fe362153ffd7b15bfb2c21cbf75de863e0b6ebe3ea7c83b3eb4e4383f470ae2beb483e6bd939c0abfe6c2173c3be88d3cafc9d9bc0ad7233c
\.

COPY cerebro_state.r2_c1_a (part, chunk) FROM stdin;
\.

COPY cerebro_state.r2_c1_b (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a22393630222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020c00300000000000087d900bf4f978c3c9738863ffd2db93ea92fa9bdd6469bbf0a4b89bf162b87be6fca0dbf98fd453e75cc1abf5475f73e1757ed3ebd61dc3e4ca6e8be4cc7afbc7144193e5fee1fbf06a01e3efb5f9abe3a6b513e9bbb81bb97e436be9445aebd2065fcbda59db03e56d19c3de744383f516b12bf40a41cbf12d26a3e7a67a1be0bf6abbdf317eb3d64178d3eace536beba361d3ebb483e3e4491883ef8f0313d751907bf5a690a3f7648f93b7c2f123f3935ae3e68765b3fd1cc363fa1f9e2be685438be4341083f1b9346bc0846f3be3e68d43cc639dbbe9e64003f9ebe8fbec566943f09e5893d683c89bfceca5a3f1d2c94be407796bed35fedbdeb2b133f783fc03ee70422bf54ca833e0ad7233c
\.

COPY cerebro_state.r2_c2_a (part, chunk) FROM stdin;
\.

COPY cerebro_state.r2_c2_b (part, chunk) FROM stdin;
1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a22393630222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020c003000000000000479d993ffdf588bcdc5266bfde2fdbbdf668f8bc1e981b3f7386dabf7a46fbbe4fc11cbe8aaad4bef41540be2532cc3e7f9dfb3e8d89edbeb3e656bd9385273e89a1b93e48070f3f14cc133eaf6b333f0efcc1beb59b6ebfda7a79bd29dcba3e294e04bea61b533fe4aad8be3965ca3d62ea2bbf66adfbbd08fbc13ec4df3ebf8d50193f71e9953ee6839c3e68d5a4be93e793be6fe08abd64b2583fcbab0fbd4aca7f3f88cb8bbf27cbafbe243112bf333234bffa6d103f40e55cbfe282a73eb06e12be22a300bf6e4c46bfc412053fb0350c3edfe7233fb229ef3e8895733fe70806bfd8e601be40a18fbfe565b53f948a86bcd3dd3abe70f66f3ba28058bf48f4193efa52cebed258813e0ad7a33c
\.

COPY cerebro_state.r3_c1_a0_ (part, chunk) FROM stdin;
1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a22393630222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d20c003000000000000514c0140e6ee11406237f13d102ccd3f98a325c05cbe1540ac4c403f208aba3b426d47bfb0a2d73d66cc6b3eccb33f3fc097e63b70641ebc90dc5c3c44c038bdaa3289bc0ed0b53e256cfabe1e5d0e3d88ed30bef29e92be72fe01be029ddbbea4e176be2429273ff08bcb3e2a21073f626a17be80652cbc62b4a1bec35bb63e0aa2633f600cf0bec81944bed18b4a3fa4fcaf3f1a1aa8be00772fbe81e7abbde8443b3fd07934c05aeab7bdcc2a423fcc7914bf2136a9bf5a95843e50fe043cc5e4bdbe690e6dbee6d431c00c30e23ed38822c0753a9e3fd1e93abe8fc4623f38f317bf2c9e86bf297b053f12c0733eb415c1be632905bfead3a5bd921dd93e64c22abfdbd906be6db70a3f0ad7233cd87f193cb2386a3ab8566a3920c0f73cb6ef3ebc0c3dee396c6f82b9dc89fdba0236b73c809257bcdab78c3980625c3c923f683c7c946fbcee9cd0bbdc6dea3bd8bff53b93290e3c1ffd0aba3bf611bce2e0193ca0f6f439ecaa0f3ac801f13bf40fcdbc4a86c3bb5c5017ba94a786bd393db03c139361bb9353c1bbbc72203aa2c6a33bc1fe963a6fc9193a437e263c90f6c93babda1f3b39cfd23a5caf003b7c05933c1ed6c93bc2d89c3a3281e03c56bfb83c48f62f3c1022a43b10a7aa3bbb365d3c2038913b380ba93a32a3773cf8369a3c533d203c348cb03b3417bf3ba7527a3cdf481a3bb4144a3aaca1dd3c21cc623c9bbb9f3b7535863b7278753b60e757bd4001933c081d9838d379edbd0043fd3ca649a73c99ea763c3e171ebcacd0073d38900d3ced07fd3a09323f3d02af1f3d171e853ce0982c3cba88183cf836863c0427db3cfcae30bd680ad4bae9464b371e74d23a0e60c739ce8a9cb8333da0b900430e3c160ee13cc71714bdc1a66e3c5d50943d3525b2bd4e5b153a166052374ea418ba1024463a60e89a3a5bfafdba387b333b2dbb3f3cf9996cbc919dd03c0807503bab50eb3c5eca673b83f1553a4e43203ba6b9143b3eab973a92061b3b109a903c72ed1f3bfc7ea73c2286863b46c8393df400483d3661d63b185c8a3aa405b73ba65d743b1a05fc3a0cc0843bc6e1aa3a2c61213ba12f5d3b8eee413c6c7c2a3d0df85abdaaca953cccb9b63c120f183d
\.

COPY cerebro_state.r3_c1_a1_ (part, chunk) FROM stdin;
1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a2231393230222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d800700000000000028c72c4078113c40fe02bfbe4978fc3fc93454c03f8137402b8a713fe091043dfc8d57bfabb2b93e982dec3e4b78543fd8cc353e0294bebeb87ca2be6f7de2bd648900be34e4553f830621bf6af0063e9421c1bd7ce831bebfa815bec82ce6beabde073dfe73453ff2e63a3fafec9c3efe52d7bda2f4b53ded7591be5622ff3e6057643f4ec6a8be6625b3be6c3dca3f41a6bf3fb810d1bedd2fcbbe99b2eabd6021633f5b7a5cc0e60933bd5a73a73fd09d14bf4cb9fcbfd7e18a3ef641e53e20fb33bf67b584beaf4984c06c4f7d3f593f5ac06581b73ff92a2bbe1717a43f702518bf3c4ebcbf3a8e333f5f7b6e3e97180cbfe2f43abff1eae13d9199c33e8e6648bf95e5a6be62a1453f0ad7233c3ee048b990a5273962c717bb7ecf533ca1e423bb6e3337baa65085b9b4314dbacc5e073cc365f2bb24fbfabbdc44f43b65cf2a3c97ab11bc8b9f83bb4c56b83be7969a3ce05ca83b9776ebbaebd08d3c45e247bb124112bbc00c88ba3fafc23bb82e00bde37228bb8825e13b063931bd3287493cfa91163a1225ab394041c6b91d14a13b04044f3a8a9fcc3952fc823c4bd5d53b47ea2f3bab2a753a4d17713a54afa63ce4b5693b6d319e3ad2fe473dbbd5a93cd902113ca18f373b38b42c3b14fd4d3cfb66483b1772353ab720c13c25efac3c97a13a3c5c08653b03674d3ba99d963c4672293b72df823af397443d085fa23c87db073c883c363b1450f23aa77351bb4b8de23b54d1ff3b51d854bd84f75f3a0613253cd49b993b84f3f8bb0d04ff3c1e0dc03b1dbaca3adae4973d807f2a3d91df9c3cd252d33b7a539c3b3cb4bf3bc0b6b33b88b539bccf5817ba10801534914f173a1bcde1b7ae4c8f3a7bc58bbae8863b3b9c5f333c574162bc340ec53bb8249c3c5068cdbca65813bac3a03f34e24c133ad833c2b96c24ca335a27c2398311b33a74cb5b3b1caa9abb6045b33ca38f063bc38fc43c5580c33a96c1a339cfc08c3a18ea633aeff1193a41c3893a8974423ccfc61a3b2e6f6b3ccfc4143bc0f2363d917d3f3d48c1813b5cced339c8846b3b2c4fe13a1bea403afe7ff13a149a093a8d439e3a0c87cf3a7d54833b34ce0e3c7c7850bcb2241d3c4b51493ca781a83c
\.

COPY cerebro_state.r3_c1_a2_ (part, chunk) FROM stdin;
1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a2231393230222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d8007000000000000d801084084452e40b8f9403e824efc3f62d33bc0538a2d40d77c883ffda329bd7f6546bfe359943d037977beef67193f1e8eeb3dcb11223d1e072b3dd05b8d3e6d5a053e76c7173e3200f7be21febf3ef786dfbc3125c0be889954be431cd8beb119dfbef9b3ca3e20771e3f0446fc3e8b4200bef97df3bdcaf38fbea87c633e4bc99f3f4a2359bf1bdd10bec8b9883f98e5ed3f569a14bf3b2c68be1102ebbd6b20363f4c6358c034bfd63dab3e963fc1a114bf3a56e8bfc51ea73e02f0e83c3b05e7bed64896beef5156c0bc3a323f927c50c017f7c83f8dac96be68f59f3fba4218bf35a4b8bf881d353f4e7f713e15e20dbf36740cbf51ac6abded5cd83eb95052bfc317e5bd2ddf223f0ad7233ca97e043bfcbdc1b9975403b810ae233b24f510baa828bbb942612fb96ade64b8cce0653af4f7ce3914114b39fe3ad1bb2021263b1a8e93398e470b392f1806b90d5085bb3f6912baa1982cb9c5df5abc4a05d83bc20819ba33e98fb9c3a25239fec4053c1b8b08badea366b988b3893aa0015439e46c0cba1edb83b9b717b4397b25063b51d28d3ababf8239dc5c963b1c4f523becb3c63ac770403a01ec523a65b0f33b8715be3bab7e133aebf44b3c0537593c8916ed3b1064263b6345113b9a22b83b27b8863be1f31f3afb39013c1c1b2a3cd4bfc13b0e98233bef92223b7e48cf3baaa1bb3a5971a539a5c8463ca9aac93bf2c8183bea29d73a5aa0c13abb0f94bcdc78213ad3ee203935fed7bca22a2c3c51faf839870d6a39c51a8eb8b5c7713cbb1dee3bee9a633a7957bc3c015ea93c4eaf203c17e29a3bf4937b3b18c836389a83d83b2cf1d9bb09ab19ba2c4958338ba7193a3c9929b9aa469736acdf2439f3e6fdb709cefd3b23d0fcbb29b26e3a7f95523c828061bc7669b3b9ec8b0235d327b3396ab78eb8f8f47334b83c8e382c2d8d38a7f09fb801211637c52f5d3c2791b53a2e8c743c5b6fbe3a96c1a339c0b1873af8b1773a62a8e839d6d5803af4af073c75829c3a048c1d3cbdf7ee3a127ca23cc5a4af3c09b1393b58ced339c2b5213b3d33c13a96e6403a8062d13a9759113ae442773abcb4b03afd1c9839b292cb3b7214d5bb4739fe3b6027123c7ea67b3c
\.

COPY public.evaluated (loss, metric, metrics_type, loss_type) FROM stdin;
1.1722200413544972	0.2291666716337204	{accuracy}	categorical_crossentropy
\.

COPY public.long (mst_key, model_id, compile_params, fit_params) FROM stdin;
1	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20
2	1	optimizer='SGD(learning_rate=0.02)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=1,epochs=20
\.

COPY public.long_summary (model_arch_table, object_table) FROM stdin;
models	\N
\.

COPY public.model (mst_key, model_weights, model_arch, __dist_key__) FROM stdin;
1	\\xa2dbef3e46780dbe123de0be4977ab3e3df235bfabed243d100c0f3e203f023e620ecbbe9b3888be0976cabeaab8113e4c3bc4baf4da773e4bfe1c3f86f50fbeea38483e7627af3ed533a73e7a3acf3da5256bbdc7f73abf02f6983db9cd18bf6812c1bd297d5e3e7d19b93ebc70a03dfa29b6bed2659cbcfa6abdbc5ae7093fa07d453da5bf873c2005f43c4a54013e505b243e3a18033d3c3ad8bdd4ca28be915e04be9c092dbfa893cebd0317313f39b2f53e07f83fbe8bcf27bfee20da3e5a91e0bd70ba0e3fd15993bde4b0b3bd185516bf1740383fb6ba943ef1c2023e101a64be08ac2bbe36d9a8bdb0d1553ead8303bf586ed83dfee7833e91baad3ebdd5d93dd473c9bd178305bd	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	0
2	\\xba1e0bbfc56c73bd053e203d0c1a983d1a66f1bd875484be578113bf879432bfef208bbd948bbd3b52f4dc3ed3b5dbbec4c79a3d470d84be0eed323fd179593e2a6b973e7c383b3e9127143fee0918bfdf68fb3c81b941be538d2ebed116f43a0773153e4db60e3fd6a0873eb559a4bec369b5be99e9033fcce32fbf704ed33e5d0333bd231c95bbcd3bb5bba598b2ba4cf8b93afa185cbc407762bc87de883c1773233ff88cd8be651119bf9392433ed678b9beffa993bea434b2bd6c2fdf3c2d95483e5a900fbfd81cb5bee2bfb0bee6eb2ebee8bb223fe362153ffd7b15bfb2c21cbf75de863e0b6ebe3ea7c83b3eb4e4383f470ae2beb483e6bd939c0abfe6c2173c3be88d3cafc9d9bc	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	0
\.

COPY public.model_info (mst_key, model_id, compile_params, fit_params, model_type, model_size, metrics_elapsed_time, metrics_type, loss_type, training_metrics_final, training_loss_final, training_metrics, training_loss, validation_metrics_final, validation_loss_final, validation_metrics, validation_loss, backend) FROM stdin;
1	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	madlib_keras	0.26171875	{2.669084}	{accuracy}	categorical_crossentropy	0.7395833134651184	0.830279991030693	{0.7395833134651184}	{0.830279991030693}	0.7395833134651184	0.830279991030693	{0.7395833134651184}	{0.830279991030693}	tensorflow
2	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8	madlib_keras	0.26171875	{2.841918}	{accuracy}	categorical_crossentropy	0.2291666716337204	1.1722200413544972	{0.2291666716337204}	{1.1722200413544972}	0.2291666716337204	1.1722200413544972	{0.2291666716337204}	{1.1722200413544972}	tensorflow
\.

COPY public.model_state (mst_key, part, chunk) FROM stdin;
1	1	\\x60040000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a224164616d222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d2c223030303036223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3238302c3430385d7d2c223030303037223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b3430382c3533365d7d2c223030303038223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3533362c3536385d7d2c223030303039223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3536382c3630305d7d2c223030303130223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3630302c3639365d7d2c223030303131223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3639362c3739325d7d2c223030303132223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3739322c3830345d7d2c223030303133223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3830342c3831365d7d7d20201800000000000000a2dbef3e46780dbe123de0be4977ab3e3df235bfabed243d100c0f3e203f023e620ecbbe9b3888be0976cabeaab8113e4c3bc4baf4da773e4bfe1c3f86f50fbeea38483e7627af3ed533a73e7a3acf3da5256bbdc7f73abf02f6983db9cd18bf6812c1bd297d5e3e7d19b93ebc70a03dfa29b6bed2659cbcfa6abdbc5ae7093fa07d453da5bf873c2005f43c4a54013e505b243e3a18033d3c3ad8bdd4ca28be915e04be9c092dbfa893cebd0317313f39b2f53e07f83fbe8bcf27bfee20da3e5a91e0bd70ba0e3fd15993bde4b0b3bd185516bf1740383fb6ba943ef1c2023e101a64be08ac2bbe36d9a8bdb0d1553ead8303bf586ed83dfee7833e91baad3ebdd5d93dd473c9bd178305bd0ad7233c0323e1bc1d4f2e3bda3cdc3dae71a1bdb768dd3dbafa04bd20bb043de5a8e93c41667f3b5b82f03bd946b1bc47b36d3c23f4ebbcc8300a3c7cbd973be5596dbbf87153bb3087fb3a3a86093c88e6e33bf1cd6fbc21b4863cd4d4663bd18d59bc588e54bac8cf5c3c908201bbde2c413c092442bca15d04baf668453ca01e0fbabfc4093827323e38b70e083a46b443393c83c73918bb0f38d170d13868689c386328bb3790550a397782fb38dc3bd237723e31392acb923708a20d394bacbb37537721375f882239ca702d39125695385dd34a3870a38a37d6202b3880922738187bd03719d79f385c0a9338c5bd3838316801393aae7336c2e249385028a4376853e4bcf88a8e3b4f397fbd2fee26bd2899e4bd805d19bc9322523c112ba83c452d6e3841019839f4de9b39d3744139e9c8173aeba6de378171603978418938f02481bdf9d8253dcde1b83c7bec0e3c8fcc10bcc00af03887e2ba3cc0e808bdf2dd2d3cf0ed1cbd00a50a3d7147923bdb384d3dccc4ccbdbe504c3d5d7be4bc5445563c66b1723c4c359dbc12d4a33ca0d853ba2f8b2ebdc1aafd3c3ed73e3c81857439b9b79238079da43841e00b38fe52ab3717576138d6cd7f381ee98c389e4dda38bf3392382eac2c380d707a37fa73b9386f5db839280a0e3977769e3854d79338954a73382260c6386022ed3800aa193884432f3998f1e6388cba6b38fee551bd4c8a0c3b5e1d493d392a963abe67803a8ade8a3a
2	1	\\x70020000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226365726562726f5f64622e73746174652f31222c226b65726173223a22332e31352e31222c226672616d65776f726b223a2274656e736f72666c6f77222c22617263686974656374757265223a2233613337326534343332343630336462633165316666343735363364393535633661333866666437313739316336613539376131356264363936383835393931222c226f7074696d697a6572223a22534744222c2273746570223a223234222c2277656967687473223a225b5c2230303030305c222c205c2230303030315c222c205c2230303030325c222c205c2230303030335c225d227d2c223030303034223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c223030303030223a7b226474797065223a22463332222c227368617065223a5b342c385d2c22646174615f6f666673657473223a5b382c3133365d7d2c223030303031223a7b226474797065223a22463332222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3133362c3136385d7d2c223030303032223a7b226474797065223a22463332222c227368617065223a5b382c335d2c22646174615f6f666673657473223a5b3136382c3236345d7d2c223030303033223a7b226474797065223a22463332222c227368617065223a5b335d2c22646174615f6f666673657473223a5b3236342c3237365d7d2c223030303035223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473223a5b3237362c3238305d7d7d2020201800000000000000ba1e0bbfc56c73bd053e203d0c1a983d1a66f1bd875484be578113bf879432bfef208bbd948bbd3b52f4dc3ed3b5dbbec4c79a3d470d84be0eed323fd179593e2a6b973e7c383b3e9127143fee0918bfdf68fb3c81b941be538d2ebed116f43a0773153e4db60e3fd6a0873eb559a4bec369b5be99e9033fcce32fbf704ed33e5d0333bd231c95bbcd3bb5bba598b2ba4cf8b93afa185cbc407762bc87de883c1773233ff88cd8be651119bf9392433ed678b9beffa993bea434b2bd6c2fdf3c2d95483e5a900fbfd81cb5bee2bfb0bee6eb2ebee8bb223fe362153ffd7b15bfb2c21cbf75de863e0b6ebe3ea7c83b3eb4e4383f470ae2beb483e6bd939c0abfe6c2173c3be88d3cafc9d9bc0ad7233c
\.

COPY public.model_summary (source_table, validation_table, model, model_info, dependent_varname, independent_varname, model_arch_table, model_selection_table, object_table, num_iterations, metrics_compute_frequency, warm_start, name, description, start_training_time, end_training_time, madlib_version, num_classes, label_class_values, dependent_vartype, normalizing_const, metrics_iters, run_id, dtype_policy) FROM stdin;
packed	packed	model	model_info	{label}	{x}	models	two	\N	2	2	f	first	\N	2026-11-21 14:21:41.064052	2026-11-21 14:21:43.908594	0.2.0	{3}	{high,low,middle}	{text}	1	{2}	1	\N
\.

COPY public.models (model_id, model_arch, model_weights, name, description, __internal_madlib_id__) FROM stdin;
1	{"module": "keras", "class_name": "Sequential", "registered_name": "Sequential", "config": {"name": "model", "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4], "dtype": "float32"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": "output", "units": 3, "activation": "softmax"}, "registered_name": null}]}}	\N	\N	\N	855b32e9-3ac9-4f86-8b34-bc728c50bdb8
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
1	label	high	0.49961239099502563	1
1	label	low	0.2791106402873993	2
1	label	middle	0.22127695381641388	3
2	label	low	0.35654255747795105	1
2	label	high	0.3420902490615845	2
2	label	middle	0.3013671636581421	3
3	label	low	0.670701265335083	1
3	label	middle	0.1937449425458908	2
3	label	high	0.13555379211902618	3
4	label	high	0.4093068242073059	1
4	label	middle	0.3558105230331421	2
4	label	low	0.2348826676607132	3
5	label	high	0.48427078127861023	1
5	label	middle	0.29304763674736023	2
5	label	low	0.22268162667751312	3
6	label	low	0.5113224983215332	1
6	label	middle	0.3104002773761749	2
6	label	high	0.17827722430229187	3
7	label	low	0.46544939279556274	1
7	label	middle	0.2973064184188843	2
7	label	high	0.23724418878555298	3
8	label	high	0.4929029047489166	1
8	label	low	0.28429386019706726	2
8	label	middle	0.2228032946586609	3
9	label	high	0.3816298544406891	1
9	label	low	0.31544843316078186	2
9	label	middle	0.30292174220085144	3
10	label	low	0.5463443398475647	1
10	label	middle	0.32557323575019836	2
10	label	high	0.12808237969875336	3
11	label	low	0.4375099241733551	1
11	label	middle	0.3149130046367645	2
11	label	high	0.24757710099220276	3
12	label	high	0.47891631722450256	1
12	label	middle	0.32537034153938293	2
12	label	low	0.19571340084075928	3
13	label	low	0.38451194763183594	1
13	label	middle	0.34035587310791016	2
13	label	high	0.2751321494579315	3
14	label	low	0.5780383944511414	1
14	label	middle	0.27029502391815186	2
14	label	high	0.1516665369272232	3
15	label	high	0.4860202372074127	1
15	label	low	0.2799529433250427	2
15	label	middle	0.23402683436870575	3
16	label	high	0.5001587867736816	1
16	label	middle	0.259819895029068	2
16	label	low	0.24002137780189514	3
17	label	low	0.549643874168396	1
17	label	middle	0.25237464904785156	2
17	label	high	0.19798143208026886	3
18	label	low	0.5368417501449585	1
18	label	middle	0.29034122824668884	2
18	label	high	0.17281696200370789	3
19	label	high	0.4526183605194092	1
19	label	low	0.3052656650543213	2
19	label	middle	0.24211597442626953	3
20	label	high	0.4289626479148865	1
20	label	middle	0.3092358112335205	2
20	label	low	0.2618015706539154	3
21	label	low	0.468594491481781	1
21	label	middle	0.30403974652290344	2
21	label	high	0.22736582159996033	3
22	label	low	0.4208080768585205	1
22	label	high	0.37409886717796326	2
22	label	middle	0.20509301126003265	3
23	label	high	0.47840458154678345	1
23	label	middle	0.2825806736946106	2
23	label	low	0.23901481926441193	3
24	label	high	0.3606705963611603	1
24	label	low	0.3554609417915344	2
24	label	middle	0.2838684320449829	3
25	label	low	0.6904449462890625	1
25	label	middle	0.19955098628997803	2
25	label	high	0.11000409722328186	3
26	label	high	0.37666186690330505	1
26	label	middle	0.34486937522888184	2
26	label	low	0.2784687578678131	3
27	label	high	0.49054965376853943	1
27	label	middle	0.28897640109062195	2
27	label	low	0.22047394514083862	3
28	label	low	0.4865025579929352	1
28	label	middle	0.2891997694969177	2
28	label	high	0.22429771721363068	3
29	label	low	0.5263068675994873	1
29	label	middle	0.2913643717765808	2
29	label	high	0.18232880532741547	3
30	label	high	0.47378650307655334	1
30	label	middle	0.28798359632492065	2
30	label	low	0.238229900598526	3
31	label	high	0.4286065101623535	1
31	label	middle	0.3383421301841736	2
31	label	low	0.2330513298511505	3
32	label	low	0.5773836970329285	1
32	label	middle	0.3020750880241394	2
32	label	high	0.12054119259119034	3
33	label	low	0.5118123292922974	1
33	label	middle	0.2904341518878937	2
33	label	high	0.19775345921516418	3
34	label	high	0.4948280453681946	1
34	label	middle	0.28131863474845886	2
34	label	low	0.22385334968566895	3
35	label	high	0.41561323404312134	1
35	label	low	0.338609904050827	2
35	label	middle	0.24577686190605164	3
36	label	low	0.5668773055076599	1
36	label	middle	0.2680070996284485	2
36	label	high	0.1651156097650528	3
37	label	high	0.42158839106559753	1
37	label	middle	0.3118307292461395	2
37	label	low	0.2665809392929077	3
38	label	high	0.49653562903404236	1
38	label	middle	0.25465306639671326	2
38	label	low	0.2488112598657608	3
39	label	low	0.4849388599395752	1
39	label	middle	0.27112406492233276	2
39	label	high	0.243937149643898	3
40	label	low	0.5659664869308472	1
40	label	middle	0.2752579152584076	2
40	label	high	0.15877559781074524	3
41	label	high	0.452758252620697	1
41	label	low	0.32297641038894653	2
41	label	middle	0.22426532208919525	3
42	label	high	0.48579782247543335	1
42	label	low	0.2806204855442047	2
42	label	middle	0.23358172178268433	3
43	label	low	0.46097949147224426	1
43	label	middle	0.285580575466156	2
43	label	high	0.25343987345695496	3
44	label	low	0.5085446834564209	1
44	label	middle	0.255855530500412	2
44	label	high	0.23559986054897308	3
45	label	high	0.45279306173324585	1
45	label	middle	0.33320102095603943	2
45	label	low	0.21400593221187592	3
46	label	high	0.4096718430519104	1
46	label	low	0.2957250475883484	2
46	label	middle	0.2946031391620636	3
47	label	low	0.6342867016792297	1
47	label	middle	0.25216153264045715	2
47	label	high	0.1135517954826355	3
48	label	low	0.36842718720436096	1
48	label	middle	0.3294479548931122	2
48	label	high	0.30212485790252686	3
49	label	high	0.5055279731750488	1
49	label	low	0.2704784870147705	2
49	label	middle	0.22399359941482544	3
50	label	low	0.45568597316741943	1
50	label	middle	0.278656929731369	2
50	label	high	0.2656571567058563	3
51	label	low	0.5163774490356445	1
51	label	middle	0.33439329266548157	2
51	label	high	0.14922931790351868	3
52	label	high	0.4342438876628876	1
52	label	middle	0.31574422121047974	2
52	label	low	0.2500118613243103	3
53	label	high	0.45674484968185425	1
53	label	middle	0.3424336314201355	2
53	label	low	0.20082151889801025	3
54	label	low	0.537233829498291	1
54	label	middle	0.2995988428592682	2
54	label	high	0.16316735744476318	3
55	label	low	0.5233339667320251	1
55	label	middle	0.29278796911239624	2
55	label	high	0.18387798964977264	3
56	label	high	0.5059813857078552	1
56	label	low	0.27169573307037354	2
56	label	middle	0.22232283651828766	3
57	label	high	0.4601083993911743	1
57	label	low	0.3167519271373749	2
57	label	middle	0.2231396585702896	3
58	label	low	0.556075930595398	1
58	label	middle	0.2745679020881653	2
58	label	high	0.16935618221759796	3
59	label	low	0.38643068075180054	1
59	label	middle	0.32341137528419495	2
59	label	high	0.2901579439640045	3
60	label	high	0.4706292152404785	1
60	label	low	0.28709593415260315	2
60	label	middle	0.24227476119995117	3
61	label	low	0.3850996196269989	1
61	label	high	0.30860430002212524	2
61	label	middle	0.30629613995552063	3
62	label	low	0.5225059986114502	1
62	label	middle	0.2992821931838989	2
62	label	high	0.1782117784023285	3
63	label	high	0.45434874296188354	1
63	label	low	0.3462696075439453	2
63	label	middle	0.1993817239999771	3
64	label	high	0.5017659664154053	1
64	label	low	0.27254799008369446	2
64	label	middle	0.22568601369857788	3
65	label	low	0.4644695520401001	1
65	label	middle	0.3002648651599884	2
65	label	high	0.2352655977010727	3
66	label	low	0.6151842474937439	1
66	label	middle	0.2388850897550583	2
66	label	high	0.14593064785003662	3
67	label	high	0.43979284167289734	1
67	label	middle	0.34736618399620056	2
67	label	low	0.2128409892320633	3
68	label	high	0.4831284284591675	1
68	label	middle	0.3015778660774231	2
68	label	low	0.2152937352657318	3
69	label	low	0.5026424527168274	1
69	label	middle	0.3402525782585144	2
69	label	high	0.15710502862930298	3
70	label	low	0.4747963547706604	1
70	label	middle	0.2856016159057617	2
70	label	high	0.2396020144224167	3
71	label	high	0.5044692754745483	1
71	label	low	0.2688346207141876	2
71	label	middle	0.22669613361358643	3
72	label	low	0.36062607169151306	1
72	label	middle	0.3285037875175476	2
72	label	high	0.3108701705932617	3
73	label	low	0.5975239276885986	1
73	label	middle	0.2949954569339752	2
73	label	high	0.10748061537742615	3
74	label	low	0.3500119149684906	1
74	label	high	0.3423956036567688	2
74	label	middle	0.3075925409793854	3
75	label	high	0.46927374601364136	1
75	label	middle	0.3255362808704376	2
75	label	low	0.2051900029182434	3
76	label	low	0.43467065691947937	1
76	label	middle	0.30363595485687256	2
76	label	high	0.26169341802597046	3
77	label	low	0.5346369743347168	1
77	label	middle	0.2700420618057251	2
77	label	high	0.19532090425491333	3
78	label	high	0.4851347804069519	1
78	label	low	0.2759384214878082	2
78	label	middle	0.23892676830291748	3
79	label	high	0.4841417968273163	1
79	label	low	0.2785152494907379	2
79	label	middle	0.2373429834842682	3
80	label	low	0.5868005752563477	1
80	label	middle	0.2508885860443115	2
80	label	high	0.1623108834028244	3
81	label	low	0.517435610294342	1
81	label	middle	0.27613553404808044	2
81	label	high	0.2064288854598999	3
82	label	high	0.479995459318161	1
82	label	low	0.2794376313686371	2
82	label	middle	0.24056695401668549	3
83	label	high	0.4271436333656311	1
83	label	middle	0.30455881357192993	2
83	label	low	0.2682975232601166	3
84	label	low	0.5230361223220825	1
84	label	middle	0.28191569447517395	2
84	label	high	0.19504816830158234	3
85	label	high	0.4315178692340851	1
85	label	low	0.33974048495292664	2
85	label	middle	0.22874170541763306	3
86	label	high	0.48596301674842834	1
86	label	middle	0.2914031445980072	2
86	label	low	0.22263382375240326	3
87	label	low	0.45189401507377625	1
87	label	middle	0.29640135169029236	2
87	label	high	0.25170469284057617	3
88	label	low	0.6373968720436096	1
88	label	middle	0.25071603059768677	2
88	label	high	0.11188706755638123	3
89	label	high	0.40667399764060974	1
89	label	middle	0.33606937527656555	2
89	label	low	0.25725653767585754	3
90	label	high	0.4847506880760193	1
90	label	middle	0.2804963290691376	2
90	label	low	0.23475293815135956	3
91	label	low	0.5295303463935852	1
91	label	middle	0.2870693504810333	2
91	label	high	0.18340034782886505	3
92	label	low	0.5118094086647034	1
92	label	middle	0.29420071840286255	2
92	label	high	0.19398987293243408	3
93	label	high	0.48801007866859436	1
93	label	middle	0.2946733832359314	2
93	label	low	0.2173166126012802	3
94	label	high	0.3933524787425995	1
94	label	middle	0.3452911972999573	2
94	label	low	0.26135632395744324	3
95	label	low	0.6460810303688049	1
95	label	middle	0.24336528778076172	2
95	label	high	0.11055371165275574	3
96	label	low	0.4239802956581116	1
96	label	middle	0.28895604610443115	2
96	label	high	0.28706368803977966	3
\.

COPY public.two (mst_key, model_id, compile_params, fit_params) FROM stdin;
1	1	optimizer='Adam(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8
2	1	optimizer='SGD(learning_rate=0.01)',loss='categorical_crossentropy',metrics=['accuracy']	batch_size=8
\.

COPY public.two_summary (model_arch_table, object_table) FROM stdin;
models	\N
\.

SELECT pg_catalog.setval('cerebro.run_log_run_id_seq', 3, true);

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

GRANT ALL ON FUNCTION cerebro.cancel(run_id bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_add(dataset text, pass_no integer, buffer_id integer, shapes json, part bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_close(dataset text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.dataset_open(dataset text, cache_bytes bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.drop_run(run_id bigint) TO cerebro;

GRANT ALL ON FUNCTION cerebro.gpu_count() TO cerebro;

GRANT ALL ON FUNCTION cerebro.gpu_report(source text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.grant_predict(model_table text, role regrole) TO cerebro;

GRANT ALL ON FUNCTION cerebro.help(name text, message text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.is_state(run_id bigint, name text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.job_begin(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.job_finish() TO cerebro;

GRANT ALL ON FUNCTION cerebro.may_see(owner name) TO cerebro;

GRANT ALL ON FUNCTION cerebro.metric_results(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.pack_rows(spec json, data bytea[]) TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_begin(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_rest() TO cerebro;

GRANT ALL ON FUNCTION cerebro.predict_row(id text, inputs bytea[]) TO cerebro;

GRANT ALL ON FUNCTION cerebro.python_version() TO cerebro;

GRANT ALL ON FUNCTION cerebro.resume(run_id bigint, background boolean) TO cerebro;

GRANT ALL ON FUNCTION cerebro.revoke_predict(model_table text, role regrole) TO cerebro;

GRANT ALL ON FUNCTION cerebro.sealed_add(part integer, chunk bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.sealed_begin(spec json, architecture json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.state_add(part integer, chunk bytea) TO cerebro;

GRANT ALL ON FUNCTION cerebro.state_chunks(chunk_bytes integer) TO cerebro;

GRANT ALL ON FUNCTION cerebro.submit(source_table character varying, model_output_table character varying, model_selection_table character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, use_caching boolean, seed bigint, schedule text, workers integer, replay_run bigint, training_metrics boolean, dtype_policy text, backend text, max_attempts integer, max_runtime interval, keep_states boolean) TO cerebro;

GRANT ALL ON FUNCTION cerebro.trainer_report(framework text) TO cerebro;

GRANT ALL ON FUNCTION cerebro.trainer_start(spec json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.trainer_stop() TO cerebro;

GRANT ALL ON FUNCTION cerebro.vacuum_runs(older_than interval) TO cerebro;

GRANT ALL ON FUNCTION cerebro.wait(run_id bigint, timeout interval) TO cerebro;

GRANT ALL ON PROCEDURE cerebro.work(IN asker integer, IN task json) TO cerebro;

GRANT ALL ON FUNCTION cerebro.worker_report() TO cerebro;

GRANT ALL ON FUNCTION cerebro.write_outputs(run_id bigint, name text) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_custom_function(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_custom_function(object_table character varying, id integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_custom_function(object_table character varying, name text) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_keras_model(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.delete_keras_model(keras_model_arch_table character varying, model_id integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.generate_model_configs(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.generate_model_configs(model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_grid character varying, fit_params_grid character varying, search_type character varying, num_configs integer, random_state integer, object_table character varying) TO cerebro;

GRANT ALL ON FUNCTION madlib.gpu_configuration() TO cerebro;

GRANT ALL ON FUNCTION madlib.gpu_configuration(output_table text, source text) TO cerebro;

GRANT ALL ON FUNCTION madlib.hyperband_schedule(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.hyperband_schedule(schedule_table character varying, r integer, eta integer, skip_last integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_custom_function(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_custom_function(object_table character varying, object bytea, name text, description text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_custom_function(object_table character varying, object text, name text, description text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_keras_model(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_keras_model(keras_model_arch_table character varying, model_arch json, model_weights bytea, name text, description text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_model_selection_table(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_model_selection_table(model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_list character varying[], fit_params_list character varying[], object_table character varying) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_top_k_accuracy_function(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.load_top_k_accuracy_function(object_table character varying, k integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_automl(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_automl(source_table character varying, model_output_table character varying, model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_grid character varying, fit_params_grid character varying, automl_method character varying, automl_params character varying, random_state integer, object_table character varying, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, name character varying, description character varying, use_caching boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_evaluate(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_evaluate(model_table character varying, test_table character varying, output_table character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_fit(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_fit(source_table character varying, model character varying, model_arch_table character varying, model_id integer, compile_params character varying, fit_params character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, object_table character varying, seed bigint, workers integer, training_metrics boolean, dtype_policy text, backend text, max_attempts integer, max_runtime interval, keep_states boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_fit_multiple_model(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_fit_multiple_model(source_table character varying, model_output_table character varying, model_selection_table character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, use_caching boolean, seed bigint, schedule text, workers integer, replay_run bigint, training_metrics boolean, dtype_policy text, backend text, max_attempts integer, max_runtime interval, keep_states boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_automl(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_automl(source_table character varying, model_output_table character varying, model_arch_table character varying, model_selection_table character varying, model_id_list integer[], compile_params_grid character varying, fit_params_grid character varying, automl_method character varying, automl_params character varying, random_state integer, object_table character varying, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, name character varying, description character varying, use_caching boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_evaluate(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_evaluate(model_table character varying, test_table character varying, output_table character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_fit(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_fit(source_table character varying, model character varying, model_arch_table character varying, model_id integer, compile_params character varying, fit_params character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, object_table character varying, seed bigint, workers integer, training_metrics boolean, dtype_policy text, backend text, max_attempts integer, max_runtime interval, keep_states boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_fit_multiple_model(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_fit_multiple_model(source_table character varying, model_output_table character varying, model_selection_table character varying, num_iterations integer, use_gpus boolean, validation_table character varying, metrics_compute_frequency integer, warm_start boolean, name character varying, description character varying, use_caching boolean, seed bigint, schedule text, workers integer, replay_run bigint, training_metrics boolean, dtype_policy text, backend text, max_attempts integer, max_runtime interval, keep_states boolean) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict_byom(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_keras_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict(model_table character varying, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, mst_key integer) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict_byom(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type double precision, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type integer, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.madlib_predict_byom(model_arch_table character varying, model_id integer, test_table character varying, id_col character varying, independent_varname character varying, output_table character varying, pred_type character varying, use_gpus boolean, class_values text[], normalizing_const double precision, dependent_count integer, backend text) TO cerebro;

GRANT ALL ON FUNCTION madlib.training_preprocessor_dl(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.training_preprocessor_dl(source_table character varying, output_table character varying, dependent_varname character varying, independent_varname character varying, buffer_size integer, normalizing_const real, num_classes integer[], distribution_rules text, n_segments integer, seed bigint, dependent_type text) TO cerebro;

GRANT ALL ON FUNCTION madlib.validation_preprocessor_dl(message text) TO cerebro;

GRANT ALL ON FUNCTION madlib.validation_preprocessor_dl(source_table character varying, output_table character varying, dependent_varname character varying, independent_varname character varying, training_preprocessor_table character varying, buffer_size integer, distribution_rules text) TO cerebro;

GRANT SELECT(mst_key) ON TABLE public.model TO pg_monitor;

GRANT SELECT(model_arch) ON TABLE public.model TO pg_monitor;

GRANT SELECT(__dist_key__) ON TABLE public.model TO pg_monitor;

REVOKE ALL ON FUNCTION public.model_predict(spec json, mst_key integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.model_predict(spec json, mst_key integer) TO pg_monitor;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.config_log TO cerebro;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE cerebro.run_log TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.visit TO cerebro;

GRANT SELECT ON TABLE cerebro.config TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.evaluation TO cerebro;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE cerebro.form_timing TO cerebro;

GRANT SELECT,INSERT,UPDATE ON TABLE cerebro.metric TO cerebro;

GRANT SELECT ON TABLE cerebro.leaderboard TO cerebro;

GRANT SELECT ON TABLE cerebro.learning_curve TO cerebro;

GRANT SELECT ON TABLE cerebro.orchestrator TO cerebro;

GRANT SELECT ON TABLE cerebro.run TO cerebro;

GRANT SELECT ON TABLE cerebro.progress TO cerebro;

GRANT SELECT,USAGE ON SEQUENCE cerebro.run_log_run_id_seq TO cerebro;

GRANT SELECT ON TABLE cerebro.setting TO cerebro;

GRANT SELECT ON TABLE cerebro.timeline TO cerebro;

GRANT SELECT ON TABLE public.model_info TO pg_monitor;

GRANT SELECT ON TABLE public.model_summary TO pg_monitor;
