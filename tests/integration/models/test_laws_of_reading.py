"""Laws of a reading: training sees the rows that the caller's own SELECT returns, and divides them
without a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from drawn_settings import TIME_FORMATS
from hypothesis import event, given
from hypothesis import strategies as st
from packed import ONE_HOT, buffers, examples, summary
from readings import create_functions, selected_rows, training_rows, training_sides, under
from trials import trials
from workbench import Workbench

pytestmark = pytest.mark.postgresql(
    "policies and foreign tables of other kinds are those of PostgreSQL"
)

QUICK = (
    "models => '{linear}', configs => 1, epochs => 1, ensemble => 1, seed => 1, workers => 1, "
    "refit => 'none'"
)
Shop = Mapping[str, Sequence[str]]
"""Columns by sources."""
SHOPS = ("shop", '"Shop, too"')
TENANTS = ("", "one", "it's two \\ \ttoo")
SALES = """
    CREATE TABLE public.sales AS
    SELECT n AS id, timestamptz '2024-02-27 20:00+00' + n * interval '7 hours 13 minutes' AS at,
           timestamp '2024-03-09 22:00' + n * interval '1 hour' AS moment,
               n * interval '1 day -3 min 0.5 s' AS span,
           to_char(date '2001-01-01' + n * 41 %% 4000, 'DD/MM/') || lpad((n %% 12 + 1)::text, 2,
               '0') AS bought,
           (ARRAY['IST', 'EST', 'UTC'])[n %% 3 + 1] AS zone, (n * 37 %% 200) / 7.0::float8 AS
               amount,
           n * 37 %% 100 * 1.5 AS price, (ARRAY['EUR', 'GBP', 'USD'])[n %% 3 + 1] AS currency,
           (ARRAY['the <b/>ees', '<a/>', 'running'])[n %% 3 + 1] AS note, nullif(n %% 4, 0) AS x,
           (%s::text[])[n / 7 %% 3 + 1] AS tenant, n %% 2 = 0 AS y
    FROM generate_series(1, 300) n
    WHERE to_char(date '2001-01-01' + n * 41 %% 4000, 'DD')::integer <= 12"""
FUNCTIONS = """
    CREATE FUNCTION public.rate(c text) RETURNS numeric LANGUAGE sql STABLE
        AS 'SELECT r.rate FROM rates r WHERE r.currency = c';
    CREATE FUNCTION public.threshold() RETURNS numeric LANGUAGE plpgsql STABLE
        AS $$ BEGIN RETURN (SELECT avg(r.rate) FROM rates r) * 10; END $$;
    CREATE FUNCTION public.region() RETURNS text LANGUAGE plpgsql STABLE
        AS $$ BEGIN RETURN current_setting(concat('app', '.', 'region'), true); END $$;
    CREATE FUNCTION public.is_none(x integer) RETURNS boolean
        LANGUAGE sql STABLE AS 'SELECT x = NULL';
    CREATE FUNCTION public.is_xml(t text) RETURNS boolean LANGUAGE plpgsql STABLE
        AS $$ BEGIN PERFORM t::xml; RETURN true; EXCEPTION WHEN others THEN RETURN false; END $$"""
SOURCES = """
    CREATE TABLE public.parts (LIKE public.sales) PARTITION BY RANGE (at);
    CREATE TABLE public.parts_1 PARTITION OF public.parts FOR VALUES
        FROM (MINVALUE) TO ('2024-03-01 00:00+00');
    CREATE TABLE public.parts_2 PARTITION OF public.parts FOR VALUES
        FROM ('2024-03-01 00:00+00') TO (MAXVALUE);
    INSERT INTO public.parts TABLE public.sales;
    CREATE VIEW public.dated AS
    SELECT s.id, s.at, s.at::text AS at_text, extract(hour FROM s.at)::integer AS hour,
        s.at::date AS day,
           date_trunc('day', s.at) AS since, s.moment::timestamptz AS zoned,
               s.span::text AS span_text,
           s.bought::date AS bought, to_char(s.at, 'HH24 TZ') AS shown,
               s.amount::text AS amount_text,
           ('2024-01-15 10:00 ' || s.zone)::timestamptz AS stamp,
               to_tsvector(s.note)::text AS words,
           public.is_none(s.x) AS is_none, public.is_xml(s.note) AS is_xml,
           xmlelement(name note, convert_to(s.note, 'UTF8'))::text AS element, s.y
    FROM public.sales s WHERE extract(hour FROM s.at) < 14;
    CREATE VIEW public.priced AS
    SELECT s.id, s.price * public.rate(s.currency) AS price, s.price > public.threshold() AS dear
        FROM public.sales s;
    CREATE VIEW public.nested AS SELECT d.*, p.price, p.dear FROM public.dated d
        JOIN public.priced p USING (id);
    CREATE MATERIALIZED VIEW public.kept AS TABLE public.nested;
    CREATE TABLE public.policed AS TABLE public.sales;
    ALTER TABLE public.policed ENABLE ROW LEVEL SECURITY; ALTER TABLE public.policed FORCE ROW LEVEL
        SECURITY;
    CREATE POLICY tenants ON public.policed USING (tenant = current_setting('app.tenant', true));
    CREATE TABLE public.regional AS TABLE public.sales;
    ALTER TABLE public.regional ENABLE ROW LEVEL SECURITY; ALTER TABLE public.regional FORCE ROW
        LEVEL SECURITY;
    CREATE POLICY regions ON public.regional USING (tenant = public.region()
        OR price < public.threshold());
    CREATE VIEW public.policed_twice AS
    SELECT p.id, p.at::text AS at_text, r.price FROM public.policed p LEFT JOIN public.regional r
        USING (id);
    CREATE VIEW public.shifts AS
    SELECT id, amount, concat(extract(hour FROM at)::integer / 8, ' ',
        public.rate(currency)) AS shift
    FROM public.policed"""
FILE = (
    "CREATE EXTENSION file_fdw",
    "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
    "CREATE FOREIGN TABLE public.far (id integer, bought date, at timestamptz) SERVER files "
    "OPTIONS (program 'printf ''1\\t03/04/05\\t2024-01-01 10:00\\n2\\t11/12/10\\t2024-01-01 10:00 "
    "IST\\n''')",
    "GRANT SELECT ON public.far TO PUBLIC",
)
NAMES = (
    "sales",
    "parts",
    "dated",
    "priced",
    "nested",
    "kept",
    "policed",
    "regional",
    "policed_twice",
    "far",
)
FORMATS = st.fixed_dictionaries(
    TIME_FORMATS,
    optional={
        "timezone_abbreviations": st.sampled_from(("Default", "India", "Australia")),
        "default_text_search_config": st.sampled_from(("pg_catalog.english", "pg_catalog.simple")),
        "transform_null_equals": st.sampled_from(("on", "off")),
        "xmlbinary": st.sampled_from(("base64", "hex")),
        "xmloption": st.sampled_from(("content", "document")),
        "lc_time": st.sampled_from(("C", "C.utf8")),
    },
)
CUSTOM = st.fixed_dictionaries(
    # PostgreSQL does not list a setting that was reset: it is found by a name that is a literal in
    # a definition.
    {"app.region": st.sampled_from(TENANTS)},
    optional={"app.tenant": st.sampled_from(TENANTS)},
)
PATHS = st.lists(
    st.sampled_from((*SHOPS, "public", '"$user"', "pg_catalog", "pg_temp", "nowhere")),
    min_size=1,
    max_size=4,
).map(", ".join)
USUAL_PATHS = st.sampled_from(SHOPS) | PATHS


@pytest.fixture(scope="module")
def shop(bench: Workbench, shared_superuser: Workbench) -> Iterator[Shop]:
    """Columns by sources of all kinds."""
    create_functions(bench)
    for factor, schema in enumerate(SHOPS, 1):
        bench.rows(
            f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.rates (currency text, rate numeric)"
        )
        bench.rows(
            f"INSERT INTO {schema}.rates VALUES ('EUR', 1.1 * {factor}), ('GBP', 1.3), ('USD', "
            f"{factor})"
        )
    bench.rows(SALES, list(TENANTS))
    bench.rows(f"SET search_path = shop; {FUNCTIONS}; {SOURCES}; RESET search_path")
    for statement in FILE:
        shared_superuser.rows(statement)
    listed = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
    yield {name: [column for (column,) in bench.rows(listed, f"public.{name}")] for name in NAMES}


class Drawn(NamedTuple):
    """The settings of a session."""

    formats: Mapping[str, str]
    custom: Mapping[str, str]
    path: str
    row_security: str

    @property
    def settings(self) -> dict[str, str]:
        """Settings by name."""
        return {
            **self.formats,
            **self.custom,
            "search_path": self.path,
            "row_security": self.row_security,
        }


SESSIONS = st.builds(
    Drawn, FORMATS, CUSTOM, USUAL_PATHS, st.sampled_from(("on", "on", "on", "off"))
)


@pytest.mark.parametrize("source", NAMES)
@trials(30)
@given(session=SESSIONS)
def test_training_reads_what_the_caller_selects(
    bench: Workbench, shop: Shop, source: str, session: Drawn
) -> None:
    """The same rows, or the same error."""
    with under(bench, session.settings):
        trained = training_rows(bench, f"public.{source}", shop[source])
        selected = selected_rows(bench, f"public.{source}", shop[source])
    event("an error" if len(selected) == 1 else f"{len(selected)} rows")
    assert trained == selected


QUERY = """
    WITH p AS (SELECT s.*, s.price * r.rate AS euros FROM public.sales s
               JOIN rates r ON r.currency = s.currency)  -- of the path, with 100 %s
    SELECT p.id, p.at::text AS at_text, extract(hour FROM p.at)::integer AS hour, p.euros,
           p.span::text AS span_text, p.bought::date AS bought, p.y, '%% {x}' AS "odd %s",
           p.euros > public.threshold() AS dear, current_user::text AS reader,
           session_user::text AS by, current_setting('app.tenant', true) AS tenant, m.at AS met
    FROM p LEFT JOIN public.policed m USING (id) WHERE extract(hour FROM p.at) < 14"""
QUERY_COLUMNS = (
    "id", "at_text", "hour", "euros", "span_text", "bought", "y", "dear", "reader", "by",
    "tenant", "met",
)  # fmt: skip
QUERIES = {**{name: f"TABLE public.{name};" for name in NAMES}, "joined": QUERY}


@pytest.mark.parametrize("source", QUERIES)
@trials(15)
@given(session=SESSIONS)
def test_training_reads_of_a_query_what_the_caller_selects(
    bench: Workbench, shop: Shop, source: str, session: Drawn
) -> None:
    """The same rows, or the same error; nothing is made, and no lock remains."""
    columns = shop.get(source, QUERY_COLUMNS)
    query = QUERIES[source]
    with under(bench, session.settings):
        trained = training_rows(bench, None, columns, query)
        locked = "SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = %s::regclass"
        assert not bench.rows(locked, "public.sales")
        selected = selected_rows(bench, f"({query.rstrip(';')}) AS q", columns)
    event("an error" if len(selected) == 1 else f"{len(selected)} rows")
    assert trained == selected
    made = "SELECT FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace"
    assert not bench.rows(made)


@trials(20)
@given(identity=SESSIONS, recorded=FORMATS, others=st.lists(FORMATS, min_size=2, max_size=2))
def test_digests_depend_on_the_recorded_formats_alone(
    bench: Workbench,
    shop: Shop,
    identity: Drawn,
    recorded: dict[str, str],
    others: list[dict[str, str]],
) -> None:
    found = []
    for formats in others:
        with under(bench, {**identity.settings, **formats}):
            found.append(training_sides(bench, "public.dated", {"target": "y"}, recorded))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("zone", "tenant", "path"), [("Asia/Kolkata", "one", SHOPS[0]), ("UTC", "", SHOPS[1])]
)
def test_a_run_learns_what_the_caller_selects(
    bench: Workbench, shop: Shop, zone: str, tenant: str, path: str
) -> None:
    """Classes of the packed rows are counted, which are named by zone, tenant and path."""
    settings = {
        "timezone": zone,
        "datestyle": "SQL, DMY",
        "app.tenant": tenant,
        "search_path": path,
    }
    for name, value in settings.items():
        bench.rows("SELECT set_config(%s, %s, false)", name, value)
    try:
        (run_id,) = bench.row(
            f"SELECT run_id FROM cerebro.train('public.shifts', 'shift', %s, {QUICK})", zone
        )
        selected = Counter(shift for (shift,) in bench.rows("SELECT shift FROM public.shifts"))
        reading = bench.value("SELECT reading FROM cerebro.version_log WHERE model = %s", zone)
    finally:
        bench.rows("RESET ALL")
    packed = [f'cerebro_state."r{run_id}_{side}"' for side in ("training", "validation")]
    names = summary(bench, f"cerebro_state.r{run_id}_training", "label_class_values")
    labels = [
        label for table in packed for (label,) in examples(buffers(bench, table, label=ONE_HOT))
    ]
    assert Counter(names[label.argmax()] for label in labels) == selected and len(selected) > 3
    assert {name: reading[name] for name in ("timezone", "datestyle", "kind", "rows")} == {
        "timezone": zone,
        "datestyle": "SQL, DMY",
        "kind": "view",
        "rows": sum(selected.values()),
    }
    assert "app.tenant" in reading["names"]


VOLATILE = {
    "drawn": "SELECT id, x, bin, early, y FROM lots ORDER BY random() LIMIT 200",
    "filtered": "SELECT id, x, bin, early, y FROM lots WHERE random() < 0.5",
    "sampled": "SELECT id, x, bin, early, y FROM lots TABLESAMPLE bernoulli (60)",
    "noisy": "SELECT id, random() AS x, floor(random() * 67)::integer AS bin, random() < 0.5 AS "
    "early, y FROM lots",
    "relabelled": "SELECT id, x, bin, early, substr('abc', ceil(random() * 3)::integer, 1) AS y "
    "FROM lots",
    "numbered": "SELECT floor(random() * 100)::integer AS id, x, bin, early, y FROM lots",
    "copied": "SELECT l.id, x, bin, early, y FROM lots l, generate_series(1, 2 + (random() < "
    "0.5)::integer)",
}
SPLITS = (
    None,
    "random 0.3",
    "random 0.3 of copies",
    "last 0.2 by x",
    "last 0.1 by id",
    "column early",
    "group bin",
)


@pytest.fixture(scope="module")
def lots(bench: Workbench) -> None:
    """Views that are never twice the same."""
    create_functions(bench)
    bench.rows("""
        CREATE TABLE lots AS
        SELECT n AS id, n * 7919 % 1009 AS x, n % 67 AS bin, n % 3 = 0 AS early,
               (ARRAY['a', 'b', 'c', NULL])[n % 4 + 1] AS y FROM generate_series(1, 400) n""")
    for name, query in VOLATILE.items():
        bench.rows(f"CREATE VIEW {name} AS {query}")


@pytest.mark.parametrize("source", VOLATILE)
@trials(20)
@given(
    split=st.sampled_from((*SPLITS, *VOLATILE)),
    target=st.sampled_from(("y", "x")),
    seed=st.integers(1, 99),
)
def test_each_row_of_a_reading_is_on_one_side(
    bench: Workbench, lots: None, source: str, split: str | None, target: str, seed: int
) -> None:
    """Of a source that is never twice the same, too; rows of another table are all held back."""
    held = split if split in VOLATILE else None
    wishes = {
        "target": target,
        "split_seed": seed,
        "split": f"table {held}" if held else split,
        "holdout": held,
    }
    found = training_sides(bench, source, wishes)
    training, validation = found.sides
    assert [len(training), len(validation)] == found.rows
    if held:
        assert [Counter(ids) for ids in found.copies] == [Counter(training), Counter(validation)]
    else:
        (copy,) = found.copies
        assert found.unused == 0 and Counter(copy) == Counter(training) + Counter(validation)
        if source not in ("numbered", "copied"):  # whose ids name no row
            assert not {*training} & {*validation}
