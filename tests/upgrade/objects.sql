-- One line for everything that the extension made, and for what an upgrade could get wrong in it: the catalog
-- says it, not the script. "public" stands for the schema named in CREATE EXTENSION, see test_upgrade.py.

WITH member AS (
    SELECT d.classid, d.objid
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
    WHERE e.extname = 'cerebro_db' AND d.deptype = 'e'
    -- From PostgreSQL 17 on, what comes with each relation and type is said to be the extension's, too.
    AND NOT (d.classid = 'pg_type'::regclass
             AND EXISTS (SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
                         WHERE t.oid = d.objid AND (t.typcategory = 'A' OR c.relkind <> 'c')))
), relation AS (
    SELECT c.*, c.oid::regclass::text AS label
    FROM pg_class c JOIN member m ON (m.classid, m.objid) IN (('pg_class'::regclass, c.oid), ('pg_type'::regclass, c.reltype))
)
SELECT regexp_replace(line, '\s+', ' ', 'g') FROM (
    SELECT pg_describe_object(classid, objid, 0) AS line FROM member WHERE classid <> 'pg_proc'::regclass
  UNION ALL
    SELECT format('function %s returns %s %s, arguments (%s), may be executed by %s', p.oid::regprocedure,
                  pg_get_function_result(p.oid), p.provolatile::text || p.proparallel::text || CASE WHEN p.prosecdef THEN ' definer' ELSE '' END,
                  pg_get_function_arguments(p.oid), p.proacl)
    FROM pg_proc p JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid WHERE p.prokind <> 'a'
  UNION ALL
    SELECT format('digest of function %s %s', p.oid::regprocedure,
                  md5(concat(p.prosrc, p.proconfig, p.proisstrict, (SELECT l.lanname FROM pg_language l WHERE l.oid = p.prolang), p.prosupport, p.procost, p.prorows)))
    FROM pg_proc p JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid WHERE p.prokind <> 'a'
  UNION ALL
    SELECT format('%s column %s %s %s%s%s default %s%s', label, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
                  CASE WHEN a.attnotnull THEN ' not null' ELSE '' END,
                  CASE WHEN a.attidentity <> '' THEN ' identity ' || a.attidentity::text ELSE '' END,
                  coalesce(pg_get_expr(b.adbin, b.adrelid), '-'),
                  ', access ' || a.attacl::text)
    FROM relation JOIN pg_attribute a ON a.attrelid = relation.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef b ON b.adrelid = a.attrelid AND b.adnum = a.attnum
    WHERE relkind <> 'S'
  UNION ALL
    SELECT format('%s constraint %s %s', label, conname, pg_get_constraintdef(c.oid))
    FROM relation JOIN pg_constraint c ON c.conrelid = relation.oid AND c.contype <> 'n'
  UNION ALL
    SELECT format('%s index %s', label, pg_get_indexdef(i.indexrelid))
    FROM relation JOIN pg_index i ON i.indrelid = relation.oid
  UNION ALL
    SELECT format('%s policy %s %s %s using %s check %s', label, polname, polcmd, polpermissive,
                  pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
    FROM relation JOIN pg_policy p ON p.polrelid = relation.oid
  UNION ALL
    SELECT format('%s trigger %s', label, pg_get_triggerdef(t.oid))
    FROM relation JOIN pg_trigger t ON t.tgrelid = relation.oid AND NOT t.tgisinternal
  UNION ALL
    SELECT format('%s kind %s, row security %s, options %s, access %s, dumped %s', label, relkind, relrowsecurity, reloptions, relacl,
                  coalesce((SELECT 'where ' || quote_literal(extcondition[array_position(extconfig, relation.oid)])
                            FROM pg_extension WHERE extname = 'cerebro_db' AND relation.oid = ANY (extconfig)), 'no'))
    FROM relation
  UNION ALL
    SELECT format('schema %s access %s', nspname, nspacl) FROM pg_namespace n JOIN member m ON m.objid = n.oid AND m.classid = 'pg_namespace'::regclass
  UNION ALL
    SELECT format('%s counts as %s from %s by %s', label, seqtypid::regtype, seqstart, seqincrement) FROM relation JOIN pg_sequence s ON s.seqrelid = relation.oid
  UNION ALL
    SELECT format('digest of comment on %s %s', pg_describe_object(d.classoid, d.objoid, d.objsubid), md5(d.description))
    FROM pg_description d JOIN member m ON (m.classid, m.objid) = (d.classoid, d.objoid)
                               OR m.classid = 'pg_type'::regclass AND d.classoid = 'pg_class'::regclass
                                  AND d.objoid = (SELECT t.typrelid FROM pg_type t WHERE t.oid = m.objid)
  UNION ALL
    SELECT format('digest of storage of %s %s', label, md5(string_agg(concat_ws(' ', a.attname, a.attstorage, (SELECT l.collname FROM pg_collation l WHERE l.oid = a.attcollation), a.attgenerated), ',' ORDER BY a.attnum)))
    FROM relation JOIN pg_attribute a ON a.attrelid = relation.oid AND a.attnum > 0 AND NOT a.attisdropped GROUP BY label
  UNION ALL
    SELECT format('digest of view %s %s', label, md5(pg_get_viewdef(relation.oid))) FROM relation WHERE relkind = 'v'
) lines
