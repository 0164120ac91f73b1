-- How runs get places for their trainers. Runs divide the places among themselves (scheduling/quota/fair_share.py); these functions see to it
-- that there are never more than quotas allow, and that no role takes more than its share while another has none.
--
-- A run proves that it is the caller's own by its ticket, which row security shows to its owner alone: within these functions
-- nobody knows any more as whom they were called, and who logged in may be a pooler. Nothing is locked before that is checked,
-- and then only the row of the run, so that nobody waits for a transaction of others. Two runs that take places at the same
-- moment may not see each other; so each calls a second time when the first call is committed, and one of them sees both.

CREATE OR REPLACE FUNCTION cerebro_internal.enter_queue(run_id bigint, ticket text, fewest integer, most integer, configs integer, steady boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    holder integer;
BEGIN
    SELECT o.pid INTO holder FROM cerebro.orchestrator o JOIN cerebro.run_log r ON r.run_id = o.run_id AND r.pid = o.pid
    WHERE r.run_id = enter_queue.run_id AND r.ticket = enter_queue.ticket;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT (fewest BETWEEN 1 AND most AND most <= 262143 AND configs BETWEEN 1 AND 10000000 AND (fewest = most OR NOT steady)) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('a run cannot wait for %s to %s places with %s configurations', fewest, most, configs),
            HINT = 'Of places a run needs at least one and can use 262143, of configurations 1 to 10000000; one that is steady takes as many places as it needs.';
    END IF;
    INSERT INTO cerebro.queue_log (run_id, pid, fewest, most, configs, steady)
    VALUES (enter_queue.run_id, holder, enter_queue.fewest, enter_queue.most, enter_queue.configs, enter_queue.steady)
    ON CONFLICT ON CONSTRAINT queue_log_pkey DO UPDATE
    SET arrived_at = pg_catalog.clock_timestamp(), pid = excluded.pid, fewest = excluded.fewest, most = excluded.most, configs = excluded.configs,
        steady = excluded.steady, used = cerebro_internal.used_places(queue_log.used, 0, queue_log.changed_at), places = 0, waits = false,
        seen_at = pg_catalog.clock_timestamp(), changed_at = pg_catalog.clock_timestamp();
END;
$$;
COMMENT ON FUNCTION cerebro_internal.enter_queue IS 'Internal: let an own run, which its ticket proves it to be, wait for places behind all that are there';

-- While a role has no place that could use one, others take no more than an equal share, and the one that has used less goes first:
-- so no run of our own asks for more, and whoever asks by hand gets no more. What runs claim that nobody works for is not counted
-- by the view, nor who says that it waits and could have a place. Record by record: Greenplum joins no view in an UPDATE.
CREATE OR REPLACE FUNCTION cerebro_internal.take_places(run_id bigint, ticket text, wanted integer, had integer) RETURNS integer
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own record;
    mine cerebro.queue%ROWTYPE;
    quota record;
    others record;
    roles record;
    kept integer;
    asks integer;
    taken integer;
    refuses boolean;
BEGIN
    SELECT w.fewest, w.most, w.places INTO own FROM cerebro.queue_log w JOIN cerebro.run_log r ON r.run_id = w.run_id
    WHERE w.run_id = take_places.run_id AND r.ticket = take_places.ticket AND w.pid IS NOT NULL;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    kept := least(greatest(had, 0), own.places);
    asks := least(greatest(wanted, 0), own.most);
    taken := CASE WHEN own.places = 0 AND asks < own.fewest THEN own.fewest ELSE asks END;
    IF EXISTS (SELECT FROM cerebro.quota) THEN
        SELECT q.* INTO mine FROM cerebro.queue q WHERE q.run_id = take_places.run_id;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        own.places := mine.places;
        kept := least(kept, own.places);
    END IF;
    IF mine.run_id IS NOT NULL AND taken > kept THEN
        SELECT max(s.trainers) AS trainers, max(s.configs) AS configs INTO quota FROM cerebro.quota s WHERE s.role IS NULL;
        SELECT coalesce(sum(q.places), 0) AS places, coalesce(sum(q.configs) FILTER (WHERE q.places > 0), 0) AS configs,
               coalesce(sum(q.places) FILTER (WHERE q.role = mine.role), 0) AS places_of_role,
               coalesce(sum(q.configs) FILTER (WHERE q.places > 0 AND q.role = mine.role), 0) AS configs_of_role
        INTO others FROM cerebro.queue q WHERE q.run_id <> take_places.run_id;
        SELECT count(*) AS number, count(*) FILTER (WHERE g.places = 0) AS poor,
               count(*) FILTER (WHERE g.places = 0 AND g.used + 1 < mine.role_used) AS first
        INTO roles
        FROM (SELECT sum(q.places) AS places, max(q.role_used) AS used FROM cerebro.queue q WHERE q.role <> mine.role GROUP BY q.role
              HAVING sum(q.places) > 0
                  OR bool_or(q.most > 0 AND NOT q.rests AND (q.fewest > quota.trainers OR q.fewest > q.role_trainers
                                                             OR q.configs > q.role_configs OR q.configs + others.configs > quota.configs) IS NOT TRUE)) g;
        taken := least(taken, quota.trainers - others.places, mine.role_trainers - others.places_of_role);
        IF roles.poor > 0 AND quota.trainers IS NOT NULL THEN
            taken := least(taken, greatest(own.fewest, ceil(quota.trainers / (roles.number + 1.0)) - others.places_of_role));
            IF kept + others.places_of_role = 0 THEN
                taken := least(taken, quota.trainers - others.places - roles.first);
            END IF;
        END IF;
        IF kept = 0 AND (mine.configs + others.configs > quota.configs OR mine.configs + others.configs_of_role > mine.role_configs) THEN
            taken := 0;
        END IF;
        taken := greatest(taken, kept);
    END IF;
    refuses := asks < own.fewest AND taken >= own.fewest;
    IF asks < own.fewest OR taken < own.fewest THEN
        taken := 0;
    END IF;
    UPDATE cerebro.queue_log q
    SET used = cerebro_internal.used_places(q.used, own.places, q.changed_at), changed_at = pg_catalog.clock_timestamp(),
        places = taken, waits = (taken = 0),
        seen_at = CASE WHEN NOT refuses AND (taken = 0 OR taken > own.places OR coalesce(mine.workers >= taken, true)) THEN pg_catalog.clock_timestamp() ELSE q.seen_at END
    WHERE q.run_id = take_places.run_id;
    RETURN taken;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.take_places IS 'Internal: let an own run, which its ticket proves it to be, have so many places, or as many as are left beside those that it had; how many it has then. 0 says that it waits';

-- The configurations that acts add count from then on. Of a run that has no place only what could never begin is refused: it takes
-- its place with all of them.
CREATE OR REPLACE FUNCTION cerebro_internal.add_to_queue(run_id bigint, ticket text, configs integer, had integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own record;
    mine record;
    others record;
    kept bigint;
    fits boolean;
BEGIN
    SELECT w.configs INTO own FROM cerebro.queue_log w JOIN cerebro.run_log r ON r.run_id = w.run_id
    WHERE w.run_id = add_to_queue.run_id AND r.ticket = add_to_queue.ticket AND w.pid IS NOT NULL;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT q.places, q.role, q.role_configs, s.configs AS all_configs INTO mine
    FROM cerebro.queue q LEFT JOIN cerebro.quota s ON s.role IS NULL WHERE q.run_id = add_to_queue.run_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT coalesce(sum(q.configs), 0) AS configs, coalesce(sum(q.configs) FILTER (WHERE q.role = mine.role), 0) AS configs_of_role
    INTO others FROM cerebro.queue q WHERE q.run_id <> add_to_queue.run_id AND q.places > 0 AND mine.places > 0;
    kept := least(greatest(had, 1), own.configs);
    fits := (kept + greatest(add_to_queue.configs, 0) > 10000000
             OR kept + add_to_queue.configs + others.configs > mine.all_configs
             OR kept + add_to_queue.configs + others.configs_of_role > mine.role_configs) IS NOT TRUE;
    UPDATE cerebro.queue_log q SET configs = CASE WHEN fits THEN kept + greatest(add_to_queue.configs, 0) ELSE kept END WHERE q.run_id = add_to_queue.run_id;
    RETURN fits;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.add_to_queue IS 'Internal: let an own run, which its ticket proves it to be, have so many configurations beside those that it had, or none of them where quotas leave no room for all; whether it has them';

CREATE OR REPLACE FUNCTION cerebro_internal.leave_queue(run_id bigint, ticket text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM cerebro.queue_log w JOIN cerebro.run_log r ON r.run_id = w.run_id
    WHERE w.run_id = leave_queue.run_id AND r.ticket = leave_queue.ticket AND w.pid IS NOT NULL;
    IF FOUND THEN
        UPDATE cerebro.queue_log q
        SET used = cerebro_internal.used_places(q.used, q.places, q.changed_at), changed_at = pg_catalog.clock_timestamp(), places = 0, waits = false, pid = NULL
        WHERE q.run_id = leave_queue.run_id;
    END IF;
END;
$$;
COMMENT ON FUNCTION cerebro_internal.leave_queue IS 'Internal: give back all places of an own run, which its ticket proves it to be, at its end';
