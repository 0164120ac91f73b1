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
