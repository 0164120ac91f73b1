-- Three schemas of fixed name. The functions that users call go to the schema named in CREATE EXTENSION.

CREATE SCHEMA cerebro;
COMMENT ON SCHEMA cerebro IS 'cerebro_db: functions and views for models, runs and their configurations, and the tables of their log';

CREATE SCHEMA cerebro_state;
COMMENT ON SCHEMA cerebro_state IS 'cerebro_db: states of runs, weights of models, packed rows and cached activations; tables of roles, which calls create and drop';

CREATE SCHEMA cerebro_internal;
COMMENT ON SCHEMA cerebro_internal IS 'cerebro_db: functions that the extension itself calls';
-- A name in it is of no use without EXECUTE, which cerebro.grant_usage grants.
GRANT USAGE ON SCHEMA cerebro_internal TO PUBLIC;
