-- Two schemas of fixed name. The functions that users call go to the schema named in CREATE EXTENSION.

CREATE SCHEMA cerebro;
COMMENT ON SCHEMA cerebro IS 'cerebro_db: runs, their configurations, visits and metrics, and the functions that run on segments';

CREATE SCHEMA cerebro_state;
COMMENT ON SCHEMA cerebro_state IS 'cerebro_db: two tables per configuration of a run, holding its state in chunks';
