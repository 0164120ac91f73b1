-- From 0.2.0 to 0.3.0: what of the tables cannot be created or replaced.

-- A setting that is gone; a row of it would be refused.
DELETE FROM cerebro.setting WHERE name = 'function_path';
COMMENT ON COLUMN cerebro.setting.name IS 'trainer_python, worker_conninfo, trainer_idle_seconds, trainer_memory_mb, cache_mb, compilation_cache, gpus';

-- It knows by other means that it is wanted; 0.1.0 had no such procedure.
DROP PROCEDURE IF EXISTS cerebro.work(integer, json);
