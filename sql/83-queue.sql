-- How runs come to places for their trainers. Which they are to have, they divide among themselves; that there are never more
-- than quotas allow, is seen to here, one after another.

CREATE OR REPLACE FUNCTION cerebro.enter_queue(run_id bigint, fewest integer, most integer, configs integer, steady boolean) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
INSERT INTO cerebro.queue_log (run_id, fewest, most, configs, steady)
SELECT r.run_id, enter_queue.fewest, enter_queue.most, enter_queue.configs, enter_queue.steady
FROM cerebro.run_log r JOIN pg_catalog.pg_roles o ON o.rolname = r.owner
WHERE r.run_id = enter_queue.run_id AND pg_catalog.pg_has_role(session_user, o.oid, 'MEMBER')
ON CONFLICT ON CONSTRAINT queue_log_pkey DO UPDATE
SET arrived_at = pg_catalog.clock_timestamp(), fewest = excluded.fewest, most = excluded.most, configs = excluded.configs, steady = excluded.steady,
    used = cerebro.used_places(queue_log.used, 0, queue_log.changed_at), places = 0, changed_at = pg_catalog.clock_timestamp();
$$;
COMMENT ON FUNCTION cerebro.enter_queue(bigint, integer, integer, integer, boolean) IS 'Internal: let an own run wait for places, behind all that are there';

-- Where others are alive with what they have, as many as are left, or those that it has already; or none, if it could not work
-- with so few. Statement by statement: SQL would lock the table for its UPDATE before it locks it against others.
CREATE OR REPLACE FUNCTION cerebro.take_places(run_id bigint, wanted integer) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    got integer;
BEGIN
    LOCK TABLE cerebro.queue_log IN SHARE ROW EXCLUSIVE MODE;
    UPDATE cerebro.queue_log q
    SET used = cerebro.used_places(q.used, q.places, q.changed_at), changed_at = pg_catalog.clock_timestamp(),
        places = CASE WHEN t.places < q.fewest THEN 0 ELSE t.places END
    FROM (
        SELECT o.run_id, CASE WHEN take_places.wanted <= o.places THEN greatest(take_places.wanted, 0)
                              WHEN o.places = 0 AND (o.configs + n.configs > s.configs OR o.configs + n.configs_of_role > l.configs) THEN 0
                              ELSE greatest(o.places, least(take_places.wanted, s.trainers - n.places, l.trainers - n.places_of_role)) END AS places
        FROM (SELECT w.run_id, w.places, w.configs, r.owner FROM cerebro.queue_log w JOIN cerebro.run_log r USING (run_id)
              JOIN pg_catalog.pg_roles u ON u.rolname = r.owner
              WHERE w.run_id = take_places.run_id AND pg_catalog.pg_has_role(session_user, u.oid, 'MEMBER')) o
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(a.places), 0) AS places, coalesce(sum(a.configs) FILTER (WHERE a.places > 0), 0) AS configs,
                   coalesce(sum(a.places) FILTER (WHERE r.owner = o.owner), 0) AS places_of_role,
                   coalesce(sum(a.configs) FILTER (WHERE a.places > 0 AND r.owner = o.owner), 0) AS configs_of_role
            FROM cerebro.queue a JOIN cerebro.run_log r USING (run_id) WHERE a.run_id <> o.run_id) n
        LEFT JOIN cerebro.quota s ON s.role IS NULL
        LEFT JOIN cerebro.quota l ON l.role = o.owner) t
    WHERE q.run_id = t.run_id
    RETURNING q.places INTO got;
    RETURN got;
END;
$$;
COMMENT ON FUNCTION cerebro.take_places(bigint, integer) IS 'Internal: let an own run have so many places, or as many of them as are left; how many it has then';

-- The configurations that acts add count from then on. Of a run that has no place only what could never begin is refused: it takes
-- its place with all of them.
CREATE OR REPLACE FUNCTION cerebro.add_to_queue(run_id bigint, configs integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE cerebro.queue_log IN SHARE ROW EXCLUSIVE MODE;
    UPDATE cerebro.queue_log q SET configs = o.configs + greatest(add_to_queue.configs, 0)
    FROM (SELECT w.run_id, w.places, w.configs, r.owner FROM cerebro.queue_log w JOIN cerebro.run_log r USING (run_id)
          JOIN pg_catalog.pg_roles u ON u.rolname = r.owner
          WHERE w.run_id = add_to_queue.run_id AND pg_catalog.pg_has_role(session_user, u.oid, 'MEMBER')) o
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(a.configs), 0) AS configs, coalesce(sum(a.configs) FILTER (WHERE r.owner = o.owner), 0) AS configs_of_role
        FROM cerebro.queue a JOIN cerebro.run_log r USING (run_id) WHERE a.run_id <> o.run_id AND a.places > 0 AND o.places > 0) n
    LEFT JOIN cerebro.quota s ON s.role IS NULL
    LEFT JOIN cerebro.quota l ON l.role = o.owner
    WHERE q.run_id = o.run_id AND (o.configs + add_to_queue.configs + n.configs > s.configs
                                   OR o.configs + add_to_queue.configs + n.configs_of_role > l.configs) IS NOT TRUE;
    RETURN FOUND;
END;
$$;
COMMENT ON FUNCTION cerebro.add_to_queue(bigint, integer) IS 'Internal: let an own run have so many more configurations, or none of them where quotas leave no room for all; whether it has them';
