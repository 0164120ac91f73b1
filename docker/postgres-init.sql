-- What the first start of the container makes: an ordinary role, and a database in which it can use the extension. The
-- superuser, postgres, has no password: only who is in the container becomes it (docker exec … psql -U postgres).
\set ON_ERROR_STOP on
\getenv password CEREBRO_PASSWORD
SET client_min_messages = warning;
SET password_encryption = 'scram-sha-256';
CREATE ROLE cerebro LOGIN PASSWORD :'password' IN ROLE pg_monitor;
CREATE DATABASE cerebro;
GRANT CREATE ON DATABASE cerebro TO cerebro;
ALTER DATABASE cerebro SET search_path = public, madlib;
\connect cerebro
SET client_min_messages = warning;
CREATE SCHEMA madlib;
CREATE EXTENSION cerebro_db SCHEMA madlib CASCADE;
GRANT USAGE ON SCHEMA madlib TO cerebro;
GRANT ALL ON SCHEMA public TO cerebro;
SELECT cerebro.grant_usage('cerebro') \g /dev/null
SELECT cerebro.set('trainer_python', '/opt/cerebro/bin/python') \g /dev/null
