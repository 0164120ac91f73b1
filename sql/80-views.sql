-- What other sessions read while a run goes on. Each view shows the runs whose owner's role the reader
-- has; a view that left this to row security would show everyone's rows, as its owner is a superuser.

CREATE OR REPLACE FUNCTION cerebro_internal.may_see(owner name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = owner AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
                                                    OR r.rolname = current_user AND r.rolsuper)$$;
COMMENT ON FUNCTION cerebro_internal.may_see IS 'Whether the current user has the role that owns a run, or is a superuser, who sees those of roles that are no more too';

-- Who holds the advisory lock on a number of 64 bits, 1667590770 in its upper half with those of the run's flipped, says
-- "the orchestrator of the run is alive". To flip bits a second time gives the number of the run, and no two share a key.
CREATE OR REPLACE VIEW cerebro.orchestrator AS
SELECT DISTINCT ((l.classid::bigint << 32) | l.objid::bigint) # (1667590770::bigint << 32) AS run_id, l.pid
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND d.datname = current_database();
COMMENT ON VIEW cerebro.orchestrator IS 'Internal: backends that say that they work for a run';

-- Row security hides a run of another owner, and a run whose owner was renamed has another owner: a run that cannot be seen
-- may be in the log all the same.
CREATE OR REPLACE VIEW cerebro.logged_run AS
SELECT r.run_id FROM cerebro.run_log r;
COMMENT ON VIEW cerebro.logged_run IS 'Internal: the numbers of the runs in the log, of every owner; before tables of a run are dropped because the log does not contain it, ask this view';

-- Each session that a call opens holds such a lock, in share mode, with 0 or the run that it works for in the lower half; the
-- last 16 bits of the upper half are drawn, for anybody may take any lock and could keep a worker from one that all know.
CREATE OR REPLACE VIEW cerebro.worker AS
SELECT DISTINCT l.objid::bigint AS run_id, l.pid
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.classid::bigint >> 16 = 25446 AND l.objid::bigint > 0 AND d.datname = current_database();
COMMENT ON VIEW cerebro.worker IS 'Internal: backends that say that they are workers of a run, by the last 32 bits of its number';

CREATE OR REPLACE VIEW cerebro.run WITH (security_barrier) AS
SELECT r.run_id, r.name, r.owner,
       CASE WHEN r.status NOT IN ('running', 'queued', 'paused') THEN r.status WHEN o.pid IS NOT NULL THEN r.status ELSE 'interrupted' END AS status,
       r.spec, r.started_at, r.ended_at, r.error, r.epochs, r.segments, r.pid, r.software,
       CASE WHEN o.pid IS NOT NULL AND r.status IN ('running', 'completed') THEN r.phase END AS phase, r.deadline, r.hint
FROM cerebro.run_log r LEFT JOIN cerebro.orchestrator o ON o.run_id = r.run_id AND o.pid = r.pid
WHERE cerebro_internal.may_see(r.owner);
COMMENT ON VIEW cerebro.run IS 'Runs that the reader may see; a run whose orchestrator is gone is interrupted. phase is what a live run does, such as training; a completed run may still explain its model. deadline is when its budget ends; hint says what can be done about error';

-- By roles, and not by runs, of which there are many more: what others have logged costs the reader nothing.
CREATE OR REPLACE VIEW cerebro.visible_run WITH (security_barrier) AS
SELECT r.run_id FROM cerebro.run_log r
WHERE r.owner = ANY (ARRAY(SELECT o.rolname FROM pg_catalog.pg_roles o WHERE pg_catalog.pg_has_role(o.oid, 'MEMBER')))
   OR (SELECT o.rolsuper FROM pg_catalog.pg_roles o WHERE o.rolname = current_user);
COMMENT ON VIEW cerebro.visible_run IS 'Internal: the numbers of runs that the reader may see, as cerebro_internal.may_see says';

-- Made anew by each script: it needs this function.
DROP POLICY IF EXISTS concerned ON cerebro.quota;
CREATE POLICY concerned ON cerebro.quota FOR SELECT USING (role IS NULL OR cerebro_internal.may_see(role));

-- What limits the processor time of a day: to count it otherwise, change this view. It reads nothing that roles write, and no role
-- counts for more than all processors could do since its oldest call began.
CREATE OR REPLACE VIEW cerebro.processor_time AS
SELECT u.owner, least(sum(u.seconds), max(u.cores) * extract(epoch FROM clock_timestamp() - min(u.began_at))::double precision) AS seconds
FROM cerebro.used_time u WHERE u.counted_at > clock_timestamp() - interval '24 hours' GROUP BY u.owner;
COMMENT ON VIEW cerebro.processor_time IS 'Internal: processor seconds of trainers and backends, as cerebro.cost has them, that the runs of each role have used within 24 hours, to the hour; also of runs that were removed';

CREATE OR REPLACE FUNCTION cerebro_internal.used_places(used double precision, places integer, since timestamptz) RETURNS double precision
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT used * h.left_over + places * (1 - h.left_over) * 300 / ln(2)
FROM (SELECT power(0.5, least(greatest(extract(epoch FROM clock_timestamp() - since)::double precision, 0) / 300, 100)) AS left_over) h$$;
COMMENT ON FUNCTION cerebro_internal.used_places IS 'Internal: seconds that a run had places, of which what was five minutes ago counts half, where so many were used until then and it has so many places since';

-- Each run divides the places by what stands here (scheduling/quota/fair_share.py), so all see the same of all; of others no more than that.
-- What counts is what functions of the extension have written, and locks: a backend is at work for one run, which it holds the lock
-- of, whatever the owner has written into the log. Places for which there is no worker, and who has not asked for any, count for a
-- minute; so nobody waits for a run that does nothing.
CREATE OR REPLACE VIEW cerebro.queue WITH (security_barrier) AS
WITH present AS (
    SELECT DISTINCT ON (q.pid) q.run_id
    FROM cerebro.queue_log q JOIN cerebro.orchestrator o ON o.run_id = q.run_id AND o.pid = q.pid
    ORDER BY q.pid, q.arrived_at DESC, q.run_id DESC
), counted AS (
    SELECT q.run_id, coalesce(w.number, 0)::integer AS workers, q.seen_at > clock_timestamp() - interval '60 seconds' AS seen
    FROM present p JOIN cerebro.queue_log q USING (run_id)
    LEFT JOIN (SELECT run_id, count(*) AS number FROM cerebro.worker GROUP BY run_id) w ON w.run_id = q.run_id & 4294967295
), alive AS (
    SELECT q.run_id, r.owner, CASE WHEN r.status = 'paused' THEN r.status WHEN q.waits THEN 'queued' ELSE 'running' END AS status,
           q.arrived_at, q.fewest, CASE WHEN r.status = 'paused' OR NOT c.seen AND least(q.places, c.workers) = 0 THEN 0 ELSE q.most END AS most,
           q.configs, q.steady, CASE WHEN c.seen THEN q.places ELSE least(q.places, c.workers) END AS places, q.used, q.changed_at, c.workers
    FROM counted c JOIN cerebro.queue_log q USING (run_id) JOIN cerebro.run_log r USING (run_id)
), used AS (
    SELECT r.owner, sum(cerebro_internal.used_places(q.used, coalesce(a.places, 0), q.changed_at)) AS seconds
    FROM cerebro.queue_log q JOIN cerebro.run_log r USING (run_id) LEFT JOIN alive a ON a.run_id = q.run_id
    WHERE a.run_id IS NOT NULL OR q.changed_at > clock_timestamp() - interval '2 hours' GROUP BY r.owner
), limited AS (
    SELECT o.owner, u.seconds AS used, q.trainers, q.configs,
           coalesce(p.seconds >= extract(epoch FROM q.cpu_a_day), false) OR coalesce(t.seconds >= extract(epoch FROM s.cpu_a_day), false) AS rests
    FROM (SELECT DISTINCT a.owner FROM alive a) o
    LEFT JOIN used u ON u.owner = o.owner
    LEFT JOIN cerebro.quota q ON q.role = o.owner
    LEFT JOIN cerebro.quota s ON s.role IS NULL
    LEFT JOIN (SELECT c.owner, sum(c.seconds) AS seconds FROM cerebro.processor_time c
               WHERE EXISTS (SELECT FROM cerebro.quota n WHERE n.cpu_a_day IS NOT NULL AND n.role IS NOT NULL)
               GROUP BY c.owner) p ON p.owner = o.owner
    LEFT JOIN (SELECT sum(c.seconds) AS seconds FROM cerebro.processor_time c
               WHERE EXISTS (SELECT FROM cerebro.quota n WHERE n.cpu_a_day IS NOT NULL AND n.role IS NULL)) t ON true
), numbered AS (
    SELECT a.*, l.used AS role_used, l.trainers, l.configs AS role_configs, l.rests,
           dense_rank() OVER (ORDER BY a.owner) AS role,
           row_number() OVER (PARTITION BY a.owner, a.status ORDER BY a.arrived_at, a.run_id) AS turn
    FROM alive a JOIN limited l USING (owner)
)
SELECT n.run_id, CASE WHEN cerebro_internal.may_see(n.owner) THEN n.owner END AS owner, n.status,
       CASE WHEN n.status = 'queued' THEN row_number() OVER (PARTITION BY n.status ORDER BY n.turn, n.role_used, n.arrived_at, n.run_id) END AS position,
       n.arrived_at, n.places, n.fewest, n.most, n.configs, n.steady, n.role, n.role_used, n.trainers AS role_trainers, n.role_configs, n.rests, n.workers
FROM numbered n;
COMMENT ON VIEW cerebro.queue IS 'All runs under way, with the number of places at which each has a trainer at work, and queued runs with their positions, by turns of their roles. Owners of others'' runs are hidden';

-- What was under way in an interrupted run is not: nobody may have been able to say so in the log.
-- Here and below nothing is correlated: Greenplum forgets the conditions of a subquery in a comparison that reads a view
-- with a correlated part.
--
-- Of a run that is new statistics know nothing: the planner takes all that it has for one row, and would go through its visits
-- once for each configuration. A FULL JOIN cannot be done so. A condition on run_id reaches both sides where each is one relation;
-- and what leaves configurations alone is hidden in coalesce(), or else it would be a LEFT JOIN. What is summed are rows of runs that
-- the reader may see.
CREATE OR REPLACE VIEW cerebro.config WITH (security_barrier) AS
SELECT run_id, mst_key, c.params,
       CASE WHEN r.status = 'interrupted' AND c.status IN ('waiting', 'running', 'paused') THEN 'stopped' ELSE c.status END AS status,
       c.reason, coalesce(f.visits, 0) / nullif(cardinality(coalesce(c.segments, r.segments)), 0) AS epochs,
       c.state_tables, c.model_id, c.compile_params, c.fit_params, c.architecture, c.backend, c.best_epoch, c.template,
       c.source, c.cloned_from, c.warm_started_from, CASE WHEN c.status IN ('paused', 'stopped') THEN f.decision[2] END AS ended_by,
       c.group_value
FROM cerebro.config_log c
FULL JOIN (
    SELECT e.run_id, e.mst_key, sum(e.visits)::integer AS visits, max(e.decision) AS decision
    FROM (SELECT t.run_id, t.mst_key, count(*) AS visits, NULL::text[] AS decision FROM cerebro.visit t
          WHERE t.status = 'completed' AND t.kind = 'train' AND t.run_id IN (SELECT s.run_id FROM cerebro.visible_run s) GROUP BY t.run_id, t.mst_key
          UNION ALL
          SELECT l.run_id, l.mst_key, 0, ARRAY[lpad(l.decision_no::text, 10, '0'), l.rule] FROM cerebro.decision_log l
          WHERE l.run_id IN (SELECT s.run_id FROM cerebro.visible_run s)) e
    GROUP BY e.run_id, e.mst_key) f USING (run_id, mst_key)
JOIN cerebro.run r USING (run_id)
WHERE coalesce(c.status IS NOT NULL, false);
COMMENT ON VIEW cerebro.config IS 'Training configurations of runs that the reader may see; epochs counts completed ones, best_epoch is the epoch of the model if it is not the last';

-- The newest value is the greatest of arrays that begin with what makes it so: nothing is sorted.
CREATE OR REPLACE VIEW cerebro.newest_value AS
SELECT s.run_id, s.mst_key, (max(s.newest) FILTER (WHERE s.ranks))[2] AS value,
       (max(s.newest) FILTER (WHERE s.searches AND s.dataset = 'validation'))[2] AS validation,
       (max(s.newest) FILTER (WHERE s.searches AND s.dataset = 'training'))[2] AS training,
       (max(s.newest) FILTER (WHERE s.is_final))[2] AS final,
       (max(s.newest) FILTER (WHERE s.is_loss))[2] AS loss
FROM (
    SELECT run_id, mst_key, m.dataset, m.name = r.final_metric AS is_final, m.name = 'loss' AND m.dataset = r.rank_dataset AS is_loss,
           m.name = r.rank_metric AS searches, m.name = r.rank_metric AND m.dataset = r.rank_dataset AS ranks,
           ARRAY[m.epoch, m.value] AS newest
    FROM (SELECT n.run_id, n.mst_key, n.dataset, n.name, n.epoch, n.value FROM cerebro.metric n
          WHERE n.run_id IN (SELECT v.run_id FROM cerebro.visible_run v)) m
    FULL JOIN (SELECT c.run_id, c.mst_key, c.best_epoch FROM cerebro.config_log c
               WHERE c.run_id IN (SELECT v.run_id FROM cerebro.visible_run v)) k USING (run_id, mst_key)
    JOIN cerebro.run_log r USING (run_id)
    WHERE coalesce((m.name = r.rank_metric OR m.name = r.final_metric OR m.name = 'loss') AND (k.best_epoch IS NULL OR m.epoch <= k.best_epoch), false)) s
GROUP BY s.run_id, s.mst_key;
COMMENT ON VIEW cerebro.newest_value IS 'Internal: the metric that ranks configurations of the runs that the reader may see, as it is after the best epoch where that is kept, else after the newest one; of rows that are not evaluated each time, the newest up to it; and the metric that is computed at the end; and the loss, which decides between equal values';

-- A metric is better when larger, unless it is a loss or an error. What is read of one run depends on no other: a condition on
-- run_id reaches each part. A completed run is ranked by the metric that was computed at its end, if there is one.
CREATE OR REPLACE VIEW cerebro.leaderboard WITH (security_barrier) AS
SELECT run_id,
       rank() OVER (PARTITION BY run_id, c.group_value
                    ORDER BY c.status = 'failed', o.value IS NULL OR o.value = 'NaN', CASE WHEN o.descending THEN -o.value ELSE o.value END,
                             l.loss, l.state_bytes, mst_key) AS rank,
       mst_key, c.params, c.epochs, c.status, b.rank_dataset AS dataset, o.metric, o.value, l.training_time, c.reason,
       c.template, o.validation, o.training, extract(epoch FROM l.training_time)::double precision AS seconds, c.group_value
FROM cerebro.config c
FULL JOIN (
    SELECT e.run_id, e.mst_key, max(e.value) AS value, max(e.validation) AS validation, max(e.training) AS training,
           max(e.final) AS final, max(e.loss) AS loss, max(e.training_time) AS training_time, max(e.state_bytes) AS state_bytes
    FROM (SELECT n.run_id, n.mst_key, n.value, n.validation, n.training, n.final, n.loss, NULL::interval AS training_time, NULL::bigint AS state_bytes
          FROM cerebro.newest_value n
          UNION ALL
          SELECT v.run_id, v.mst_key, NULL, NULL, NULL, NULL, NULL, sum(least(v.ended_at - v.started_at, interval '1000 days')), max(v.state_bytes)
          FROM cerebro.visit v
          WHERE v.status = 'completed' AND v.run_id IN (SELECT s.run_id FROM cerebro.visible_run s) GROUP BY v.run_id, v.mst_key) e
    GROUP BY e.run_id, e.mst_key) l USING (run_id, mst_key)
JOIN cerebro.run_log b USING (run_id)
CROSS JOIN LATERAL (
    SELECT b.rank_metric AS metric, b.rank_descending AS descending, l.value, l.validation, l.training
    WHERE b.final_metric IS NULL OR b.status <> 'completed'
    UNION ALL
    SELECT b.final_metric, b.final_descending, l.final, l.final, NULL WHERE b.final_metric IS NOT NULL AND b.status = 'completed') o
WHERE coalesce(c.status IS NOT NULL, false);
COMMENT ON VIEW cerebro.leaderboard IS 'Configurations of a run, best first, by the newest value of the metric that ranks it: that of the validation set where there is one, else of the training set; a metric that is computed at the end of the run ranks it from then on; failed ones last. Equal values are ranked by the loss, then by the size of the state, then by mst_key. Of each group of rows, if there are any, they are ranked apart';

CREATE OR REPLACE VIEW cerebro.progress WITH (security_barrier) AS
WITH config AS (
    SELECT run_id, mst_key, c.status, cardinality(coalesce(c.segments, r.segments)) AS segments,
           coalesce(f.decision[2]::bigint, r.epochs) * cardinality(coalesce(c.segments, r.segments)) AS total,
           c.status = 'failed' OR c.status = 'stopped' AND c.reason IS NOT NULL AS ended,
           coalesce(f.done, 0) AS done, f.epoch, f.first_start, f.last_end
    FROM cerebro.config_log c
    FULL JOIN (
        SELECT e.run_id, e.mst_key, sum(e.done)::bigint AS done, max(e.epoch) AS epoch, min(e.first_start) AS first_start,
               max(e.last_end) AS last_end, max(e.decision) AS decision
        FROM (SELECT t.run_id, t.mst_key, count(*) FILTER (WHERE t.status = 'completed' AND t.kind = 'train') AS done, max(t.epoch) AS epoch,
                     min(t.started_at) AS first_start, max(t.ended_at) AS last_end, NULL::text[] AS decision
              FROM cerebro.visit t WHERE t.run_id IN (SELECT s.run_id FROM cerebro.visible_run s) GROUP BY t.run_id, t.mst_key
              UNION ALL
              -- Who goes on unless something speaks against it is expected to come to the end.
              SELECT l.run_id, l.mst_key, 0, NULL, NULL, NULL,
                     ARRAY[lpad(l.decision_no::text, 10, '0'),
                           CASE WHEN l.act_id IS NULL AND l.action IN ('start', 'continue')
                                     AND l.rule IN ('grid', 'random', 'tpe', 'cmaes', 'median', 'patience') THEN NULL
                                ELSE l.last_epoch::text END]
              FROM cerebro.decision_log l WHERE l.run_id IN (SELECT s.run_id FROM cerebro.visible_run s)) e
        GROUP BY e.run_id, e.mst_key) f USING (run_id, mst_key)
    JOIN cerebro.run_log r USING (run_id)
    WHERE coalesce(c.status IS NOT NULL, false)
), configs AS (
    SELECT k.run_id, count(*) FILTER (WHERE k.status = 'running') AS running,
           count(*) FILTER (WHERE k.status = 'failed') AS failed,
           sum(k.done)::bigint AS done,
           sum(CASE WHEN k.ended OR k.status = 'paused' THEN k.done ELSE k.total END)::bigint AS total,
           max(k.epoch)::integer AS epoch,
           min(k.first_start) AS first_start, max(k.last_end) AS last_end
    FROM config k GROUP BY k.run_id
)
SELECT r.run_id, r.name, r.owner, r.status,
       least(r.epochs, coalesce(c.epoch, 1)) AS epoch,
       r.epochs,
       coalesce(c.done, 0) AS visits_done,
       coalesce(c.total, 0) AS visits_total,
       CASE WHEN r.status = 'running' THEN coalesce(c.running, 0) ELSE 0 END AS configs_running,
       coalesce(c.failed, 0) AS configs_failed,
       b.mst_key AS best_mst_key,
       b.value AS best_value,
       t.elapsed, t.eta, q.position AS queue_position, r.phase,
       CASE WHEN r.status = 'completed' THEN 1
            WHEN t.eta IS NULL THEN coalesce(c.done, 0) / nullif(c.total, 0)::double precision
            ELSE extract(epoch FROM t.elapsed) / nullif(extract(epoch FROM t.elapsed + t.eta), 0) END::double precision AS share
FROM cerebro.run r LEFT JOIN configs c USING (run_id)
-- Not in WITH: what asks who holds locks would be computed there for all runs.
LEFT JOIN (
    SELECT DISTINCT ON (l.run_id) l.run_id, l.mst_key, l.value FROM cerebro.leaderboard l
    WHERE l.rank = 1 AND l.status <> 'failed' AND l.value IS NOT NULL AND l.group_value IS NULL ORDER BY l.run_id, l.mst_key) b
    USING (run_id)
LEFT JOIN cerebro.queue q ON q.run_id = r.run_id AND r.status = 'queued'
CROSS JOIN LATERAL (
    SELECT coalesce(r.ended_at, CASE WHEN r.status IN ('running', 'queued', 'paused') THEN clock_timestamp() ELSE c.last_end END, r.started_at) - r.started_at AS elapsed,
           -- The least of NULL and a time is the time: before the first visit the budget alone is known.
           CASE WHEN r.status = 'running'
                THEN least(CASE WHEN c.done > 0
                                THEN pg_catalog.make_interval(secs => least(extract(epoch FROM clock_timestamp() - c.first_start)::double precision
                                                                            * greatest(c.total - c.done, 0) / c.done, 1e10)) END,
                           CASE WHEN r.deadline IS NOT NULL THEN greatest(r.deadline - clock_timestamp(), interval '0') END) END AS eta) t
UNION ALL
-- A run is logged once its rows are packed. Until then the label of the session that packs them tells what it does: nothing is left
-- of a call that is refused. A run that is logged while this statement reads has its usual label already.
SELECT n.run_id, NULL, n.owner, 'running', NULL, NULL, 0, 0, 0, 0, NULL, NULL, interval '0', NULL, NULL, n.phase, 0
FROM (SELECT a.usename AS owner, pg_catalog.substring(a.application_name, '^cerebro_db run ([0-9]{1,18}) (?:looking at the table|packing|control)(?:: .*)?$')::bigint AS run_id,
             pg_catalog.substring(a.application_name, '^cerebro_db run [0-9]{1,18} (looking at the table|packing)(?:: .*)?$') AS phase
      FROM pg_catalog.pg_stat_activity a WHERE a.datname = current_database()) n
LEFT JOIN cerebro.run_log g ON g.run_id = n.run_id
WHERE n.run_id IS NOT NULL AND g.run_id IS NULL AND cerebro_internal.may_see(n.owner);
COMMENT ON VIEW cerebro.progress IS 'The progress of each run. epoch is the latest that a configuration has begun. eta assumes the pace so far, and ends with the budget; a search knows its decisions so far. share is the part of the time that has passed, from 0 to 1. phase is the current work; a run that looks at its table or packs is not in cerebro.run yet. queue_position is the position of a queued run: 1 is next';

CREATE OR REPLACE VIEW cerebro.timeline WITH (security_barrier) AS
SELECT v.run_id, v.segment_id, v.mst_key, v.epoch, v.started_at, v.ended_at, v.kind,
       CASE WHEN r.status = 'interrupted' AND v.status = 'running' THEN 'failed' ELSE v.status END AS status, v.worker_pid
FROM cerebro.visit v JOIN cerebro.run r USING (run_id)
UNION ALL
SELECT e.run_id, e.segment_id, e.mst_key, e.epoch, e.started_at, e.ended_at, 'evaluate',
       CASE WHEN r.status = 'interrupted' AND e.status = 'running' THEN 'failed' ELSE e.status END, NULL
FROM cerebro.evaluation e JOIN cerebro.run r USING (run_id);
COMMENT ON VIEW cerebro.timeline IS 'The work on each segment by time: training visits, with the server process of their worker, and evaluations';

CREATE OR REPLACE VIEW cerebro.learning_curve WITH (security_barrier) AS
SELECT m.run_id, m.mst_key, m.epoch, m.dataset, m.name, m.value, m.time
FROM cerebro.metric m JOIN cerebro.run_log r USING (run_id) WHERE cerebro_internal.may_see(r.owner);
COMMENT ON VIEW cerebro.learning_curve IS 'Metrics by epoch, one value a row';

-- What lies in a table lies there until the next state takes its place, or the table is dropped; of older versions, which did
-- not log that, until the run ended. Prices and watts that are no numbers count as not set.
CREATE OR REPLACE VIEW cerebro.cost WITH (security_barrier) AS
SELECT k.run_id, k.name, k.owner, k.mst_key, k.status, k.trainer_seconds, k.backend_seconds, k.gpu_seconds, k.stored_byte_seconds,
       k.moved_bytes, k.peak_memory_bytes,
       CASE WHEN p.core_hour IS NOT NULL OR p.gpu_hour IS NOT NULL OR p.gb_month IS NOT NULL
            THEN (k.trainer_seconds + k.backend_seconds) / 3600 * coalesce(p.core_hour, 0) + k.gpu_seconds / 3600 * coalesce(p.gpu_hour, 0)
                 + k.stored_byte_seconds / (1e9 * 30 * 86400) * coalesce(p.gb_month, 0) END AS money,
       CASE WHEN p.core_watts IS NOT NULL OR p.gpu_watts IS NOT NULL
            THEN ((k.trainer_seconds + k.backend_seconds) * coalesce(p.core_watts, 0) + k.gpu_seconds * coalesce(p.gpu_watts, 0)) / 3.6e6 END AS kwh,
       k.unmeasured
FROM (
    SELECT run_id, r.name, r.owner, mst_key,
           CASE WHEN r.status = 'interrupted' AND c.status IN ('waiting', 'running', 'paused') THEN 'stopped' ELSE c.status END AS status,
           CASE WHEN v.begun THEN v.trainer_seconds ELSE 0 END AS trainer_seconds,
           CASE WHEN v.begun THEN v.backend_seconds ELSE 0 END AS backend_seconds,
           CASE WHEN v.begun THEN v.gpu_seconds ELSE 0 END AS gpu_seconds,
           coalesce(v.byte_seconds, 0) AS stored_byte_seconds, coalesce(v.bytes, 0) + coalesce(v.read_bytes, 0) AS moved_bytes,
           v.peak_memory_bytes, coalesce(v.unmeasured, 0) AS unmeasured
    FROM cerebro.config_log c
    FULL JOIN (
        SELECT e.run_id, e.mst_key, bool_or(e.begun) AS begun, max(e.trainer_seconds) AS trainer_seconds, max(e.backend_seconds) AS backend_seconds,
               max(e.gpu_seconds) AS gpu_seconds, max(e.read_bytes) AS read_bytes, max(e.peak_memory_bytes) AS peak_memory_bytes,
               max(e.unmeasured) AS unmeasured, max(e.bytes) AS bytes, max(e.byte_seconds) AS byte_seconds
        FROM (SELECT u.run_id, u.mst_key, true AS begun, sum(u.trainer_seconds) AS trainer_seconds, sum(u.backend_seconds) AS backend_seconds,
                     sum(u.gpu_seconds) AS gpu_seconds, least(sum(u.read_bytes), 1e18)::bigint AS read_bytes, max(u.peak_memory_bytes) AS peak_memory_bytes,
                     count(*) FILTER (WHERE u.trainer_seconds IS NULL AND u.status <> 'running') AS unmeasured,
                     NULL::bigint AS bytes, NULL::double precision AS byte_seconds
              FROM (SELECT t.run_id, t.mst_key, t.status, t.trainer_seconds, t.backend_seconds, t.gpu_seconds, t.read_bytes, t.peak_memory_bytes
                    FROM cerebro.visit t
                    UNION ALL
                    SELECT a.run_id, a.mst_key, a.status, a.trainer_seconds, a.backend_seconds, a.gpu_seconds, a.read_bytes, a.peak_memory_bytes
                    FROM cerebro.evaluation a) u
              WHERE u.run_id IN (SELECT s.run_id FROM cerebro.visible_run s)
              GROUP BY u.run_id, u.mst_key
              UNION ALL
              SELECT l.run_id, l.mst_key, NULL, NULL, NULL, NULL, NULL, NULL, NULL, least(sum(l.bytes), 1e18)::bigint,
                     sum(l.bytes * greatest(0, extract(epoch FROM l.until - l.since)))::double precision
              FROM (SELECT run_id, mst_key, n.state_bytes AS bytes, coalesce(n.stored_at, n.ended_at) AS since,
                           coalesce(lead(coalesce(n.stored_at, n.ended_at)) OVER (PARTITION BY run_id, mst_key, n.state_table ORDER BY n.visit_no, n.attempt),
                                    n.dropped_at,
                                    CASE WHEN n.state_table = ANY (g.state_tables) THEN pg_catalog.clock_timestamp() ELSE o.ended_at END,
                                    n.ended_at) AS until
                    FROM cerebro.visit n FULL JOIN cerebro.config_log g USING (run_id, mst_key) JOIN cerebro.run_log o USING (run_id)
                    WHERE coalesce(n.state_bytes IS NOT NULL AND n.state_table IS NOT NULL, false) AND run_id IN (SELECT s.run_id FROM cerebro.visible_run s)) l
              GROUP BY l.run_id, l.mst_key) e
        GROUP BY e.run_id, e.mst_key) v USING (run_id, mst_key)
    JOIN cerebro.run r USING (run_id)
    WHERE coalesce(c.status IS NOT NULL, false)
    UNION ALL
    SELECT r.run_id, r.name, r.owner, NULL::integer, r.status, b.trainer_seconds, b.backend_seconds, b.gpu_seconds, 0,
           b.read_bytes, b.peak_memory_bytes, CASE WHEN b.trainer_seconds IS NULL THEN 1 ELSE 0 END
    FROM cerebro.run r JOIN cerebro.run_log b USING (run_id)) k
CROSS JOIN (
    SELECT max(n.number) FILTER (WHERE n.name = 'price_per_core_hour') AS core_hour, max(n.number) FILTER (WHERE n.name = 'price_per_gpu_hour') AS gpu_hour,
           max(n.number) FILTER (WHERE n.name = 'price_per_gb_month') AS gb_month, max(n.number) FILTER (WHERE n.name = 'watts_per_core') AS core_watts,
           max(n.number) FILTER (WHERE n.name = 'watts_per_gpu') AS gpu_watts
    FROM (SELECT t.name, CASE WHEN t.value ~ '^[0-9]{1,15}([.][0-9]{1,15})?$' THEN t.value::double precision END AS number FROM cerebro.setting t) n) p;
COMMENT ON VIEW cerebro.cost IS 'The cost of runs that the reader may see, by configuration. A row with mst_key NULL has the work of the run itself, such as starting trainers. money and kwh need prices and watts, which an administrator sets. unmeasured counts visits, evaluations and runs without a measurement, which no sum includes';

CREATE OR REPLACE VIEW cerebro.decision WITH (security_barrier) AS
SELECT d.run_id, d.decision_no, d.time, d.mst_key, d.action, d.epoch, d.visits, d.last_epoch, d.cause, d.rule, d.reason, d.act_id
FROM cerebro.decision_log d JOIN cerebro.run_log r USING (run_id) WHERE cerebro_internal.may_see(r.owner);
COMMENT ON VIEW cerebro.decision IS 'Decisions about the configurations of a run, by a search or by a person, with the result, the rule and the reason; and changes of the strategy of a run';

-- An act may be committed when its run has just ended; one that goes on again takes it up.
CREATE OR REPLACE VIEW cerebro.act WITH (security_barrier) AS
SELECT a.act_id, a.run_id, a.time, a.actor, a.action, a.mst_key, a.change,
       CASE WHEN a.status = 'scheduled' AND r.status = 'completed' THEN 'refused' ELSE a.status END AS status,
       CASE WHEN a.status = 'scheduled' AND r.status = 'completed' THEN 'it came too late: the run had nothing left to do' ELSE a.reason END AS reason,
       a.visits, a.done_at
FROM cerebro.act_log a JOIN cerebro.run_log r USING (run_id) WHERE cerebro_internal.may_see(r.owner);
COMMENT ON VIEW cerebro.act IS 'Commands of people to runs that the reader may see, with their outcome';

-- For row security, by which a role sees its own runs alone, not those of roles that it is a member of. It runs as its caller, who
-- reads that view: so nobody can ask it of others.
CREATE OR REPLACE FUNCTION cerebro_internal.may_act(run_id bigint) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
$$SELECT EXISTS (SELECT FROM cerebro.visible_run r WHERE r.run_id = may_act.run_id)$$;
COMMENT ON FUNCTION cerebro_internal.may_act IS 'Internal: whether the current user is a member of the role that owns a run';

-- Made anew by each script: they need this function.
DROP POLICY IF EXISTS seen ON cerebro.act_log;
DROP POLICY IF EXISTS added ON cerebro.act_log;
DROP POLICY IF EXISTS done ON cerebro.act_log;
CREATE POLICY seen ON cerebro.act_log FOR SELECT USING (cerebro_internal.may_act(run_id));
CREATE POLICY added ON cerebro.act_log FOR INSERT WITH CHECK (actor = current_user AND cerebro_internal.may_act(run_id));
CREATE POLICY done ON cerebro.act_log FOR UPDATE USING (EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = act_log.run_id AND r.owner = current_user));

CREATE OR REPLACE VIEW cerebro.model_grant WITH (security_barrier) AS
SELECT g.model, g.owner, g.version, g.outline, pg_catalog.concat_ws('/', g.version, g.xmin, g.ctid) AS mark
FROM cerebro.grant_log g JOIN cerebro.model_log m ON m.owner = g.owner AND m.model = g.model
JOIN pg_catalog.pg_class c ON c.relnamespace = 'cerebro_state'::regnamespace AND c.relkind = 'r' AND c.relname = g.gate::name
JOIN pg_catalog.pg_roles r ON r.oid = c.relowner AND r.rolname = g.owner
WHERE NOT m.dropped AND g.owner <> current_user AND pg_catalog.has_table_privilege(c.oid, 'SELECT');
COMMENT ON VIEW cerebro.model_grant IS 'Models of others that the reader may predict with, and what may be known of each; mark changes with the model';

CREATE OR REPLACE VIEW cerebro.model WITH (security_barrier) AS
SELECT m.model, m.owner, m.deployed AS version, v.task, v.target, v.source, v.metric, v.value, m.deployed_at,
       v.template, v.training_rows, v.validation_rows, m.split, coalesce(n.versions, 0) AS versions
FROM cerebro.model_log m
LEFT JOIN cerebro.version_log v ON v.owner = m.owner AND v.model = m.model AND v.version = m.deployed
LEFT JOIN (SELECT c.owner, c.model, count(*) AS versions FROM cerebro.version_log c GROUP BY c.owner, c.model) n
    ON n.owner = m.owner AND n.model = m.model
WHERE cerebro_internal.may_see(m.owner) AND NOT m.dropped
UNION ALL
SELECT g.model, g.owner, g.version, g.outline ->> 'task', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM cerebro.model_grant g WHERE NOT cerebro_internal.may_see(g.owner);
COMMENT ON VIEW cerebro.model IS 'Models by name that the reader may see, each with the version that predicts; of a model that another role has granted, its task only';

CREATE OR REPLACE VIEW cerebro.model_version WITH (security_barrier) AS
SELECT v.model, v.owner, v.version, v.version = m.deployed AS deployed, v.created_at, v.run_id, v.mst_key, v.template, v.params,
       v.task, v.target, v.source, v.metric, v.value, v.training_rows, v.validation_rows, v.margin, v.seed, v.state_bytes, v.backend,
       v.software, v.fingerprint, v.group_by, coalesce((v.calibration ->> 'temperature')::float8, 1) AS temperature,
       CASE WHEN v.calibration ? 'threshold' THEN pg_catalog.jsonb_build_object(v.classes[2], v.calibration -> 'threshold') END AS threshold,
       v.calibration -> 'costs' AS costs
FROM cerebro.version_log v JOIN cerebro.model_log m ON m.owner = v.owner AND m.model = v.model
WHERE cerebro_internal.may_see(v.owner) AND NOT m.dropped;
COMMENT ON VIEW cerebro.model_version IS 'All versions of models that the reader may see, with the data, the settings and the result of their training';

CREATE OR REPLACE VIEW cerebro.model_group WITH (security_barrier) AS
SELECT g.model, g.owner, g.version, g.version = m.deployed AS deployed, v.group_by, g.group_value, g.run_id, g.mst_key, g.template, g.params,
       v.metric, g.value, g.training_rows, g.margin, g.state_bytes, g.backend, coalesce((g.calibration ->> 'temperature')::float8, 1) AS temperature,
       CASE WHEN g.calibration ? 'threshold' THEN pg_catalog.jsonb_build_object(v.classes[2], g.calibration -> 'threshold') END AS threshold
FROM cerebro.group_log g JOIN cerebro.version_log v ON v.owner = g.owner AND v.model = g.model AND v.version = g.version
     JOIN cerebro.model_log m ON m.owner = g.owner AND m.model = g.model
WHERE cerebro_internal.may_see(g.owner) AND NOT m.dropped;
COMMENT ON VIEW cerebro.model_group IS 'The models of groups of rows in each version: each predicts the rows with its value of the column group_by';

-- Versions without rows in member_log have one network, in their own row.
CREATE OR REPLACE VIEW cerebro.model_member WITH (security_barrier) AS
SELECT k.model, k.owner, k.version, k.version = m.deployed AS deployed, nullif(k.group_value, '') AS group_value, k.position, k.share,
       k.run_id, k.mst_key, k.template, k.params, k.backend, k.state_bytes, k.architecture, k.refit_run_id
FROM (SELECT b.model, b.owner, b.version, b.group_value, b.position, b.share, b.run_id, b.mst_key, b.template, b.params, b.backend,
             b.state_bytes, b.architecture, b.refit_run_id
      FROM cerebro.member_log b
      UNION ALL
      SELECT v.model, v.owner, v.version, '', 1, 1, v.run_id, v.mst_key, v.template, v.params, v.backend, v.state_bytes, v.architecture,
             NULL
      FROM cerebro.version_log v WHERE v.architecture IS NOT NULL
      UNION ALL
      SELECT g.model, g.owner, g.version, g.group_value, 1, 1, g.run_id, g.mst_key, g.template, g.params, g.backend, g.state_bytes,
             g.architecture, NULL
      FROM cerebro.group_log g WHERE g.architecture IS NOT NULL) k
JOIN cerebro.model_log m ON m.owner = k.owner AND m.model = k.model
WHERE cerebro_internal.may_see(k.owner) AND NOT m.dropped;
COMMENT ON VIEW cerebro.model_member IS 'The members of each version and of its models of groups: their predictions, multiplied by their shares, add up to that of the version';

CREATE OR REPLACE VIEW cerebro.feature WITH (security_barrier) AS
SELECT v.model, v.owner, v.version, f.n AS place, f.feature ->> 'column' AS column_name, f.feature ->> 'kind' AS kind,
       f.feature ->> 'reason' AS reason, CASE WHEN pg_catalog.jsonb_typeof(f.feature) = 'object' THEN f.feature - 'column' - 'kind' - 'reason' - 'rarity' END AS constants,
       v.importance[f.n] AS importance, v.importance_error[f.n] AS importance_error
FROM cerebro.version_log v JOIN cerebro.model_log m ON m.owner = v.owner AND m.model = v.model
     CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(
         CASE WHEN pg_catalog.jsonb_typeof(v.recipe -> 'features') = 'array' THEN v.recipe -> 'features' ELSE '[]' END)
         WITH ORDINALITY AS f (feature, n)
WHERE cerebro_internal.may_see(v.owner) AND NOT m.dropped;
COMMENT ON VIEW cerebro.feature IS 'Each column as a version learned it before training: its encoding with constants, or the reason why it is left out; and the loss of quality without it';

CREATE OR REPLACE VIEW cerebro.template AS
SELECT t.template, t.description, t.field, t.meaning, t.usual, t.usual_regression, t.range FROM cerebro_internal.template_fields() t;
COMMENT ON VIEW cerebro.template IS 'Templates of networks, a row for each field: its usual value, that of regression if it differs, and the range or choices of its draws';
