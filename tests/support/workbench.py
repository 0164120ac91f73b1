"""A database session with data, architectures and configurations to train, as a user would have
them.

Sessions that a fit opened wait with their trainers for the next call of the same session, so the
tests of a module that share a workbench load the framework only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import psycopg2
import psycopg2.extensions
from models import CLASSES

ROWS = 96
POINTS = f"""
CREATE TABLE points AS
SELECT id, ARRAY[a, b, c, d]::real[] AS x,
       CASE WHEN a > 0.4 THEN 'high' WHEN a < -0.4 THEN 'low' ELSE 'middle' END AS label,
       a + b > 0 AS positive, (a + b > 0)::integer::real AS flag,
       (0.5 * a - 0.25 * b)::real AS amount, ARRAY[0.5 * a, c - d]::real[] AS pair
FROM generate_series(1, {ROWS}) id,
     LATERAL (SELECT sin(id * 1.7) AS a, sin(id * 0.9 + 1) AS b, cos(id * 2.3) AS c,
         cos(id * 0.31) AS d) v
"""
COMPILE = "optimizer='{optimizer}',loss='{loss}',metrics={metrics}"
Row = tuple[Any, ...]
T = TypeVar("T")


def compile_text(
    optimizer: str = "SGD(learning_rate=0.05)",
    loss: str = "categorical_crossentropy",
    metrics: Sequence[str] = ("accuracy",),
) -> str:
    """Compile parameters in MADlib's words."""
    return COMPILE.format(optimizer=optimizer, loss=loss, metrics=list(metrics))


def several(count: int) -> list[str]:
    """That many compile parameters that share one program."""
    return [compile_text(f"SGD(learning_rate={0.01 * n})") for n in range(1, count + 1)]


class Workbench:
    """One session of the ordinary role, in which every statement commits.

    A fit that says nothing else has so many workers (`fit_workers`) on PostgreSQL; None leaves that
    to the server.
    """

    def __init__(self, url: str, fit_workers: int | None = None) -> None:
        self.url, self.fit_workers = url, fit_workers
        self.connection = psycopg2.connect(url)
        self.connection.autocommit = True
        self.greenplum = "Greenplum" in self.value("SELECT version()")

    def rows(self, query: str, *values: object) -> list[Row]:
        """All rows of a statement; [] where it returns none."""
        with self.connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return [] if cursor.description is None else list(cursor.fetchall())

    def row(self, query: str, *values: object) -> Row:
        """The only row of a statement."""
        (found,) = self.rows(query, *values)
        return found

    def value(self, query: str, *values: object) -> Any:
        """The only column of the only row."""
        (found,) = self.row(query, *values)
        return found

    def data(self) -> None:
        """Make the table of points and an architecture table whose model 1 tells the three labels
        apart.
        """
        self.rows(POINTS)
        self.model(CLASSES)

    def model(self, architecture: str) -> int:
        """Load an architecture; its model_id."""
        self.rows("SELECT load_keras_model('models', %s::json)", architecture)
        return int(self.value("SELECT max(model_id) FROM models"))

    def pack(
        self,
        output: str,
        segments: int,
        *,
        source: str = "points",
        target: str = "label",
        inputs: str = "x",
        buffer: int = 8,
        kind: str | None = None,
    ) -> str:
        """Pack a table for training; its name."""
        self.rows(
            "SELECT training_preprocessor_dl(%s, %s, %s, %s, %s, n_segments => %s, seed => 7, "
            "dependent_type => %s)",
            source,
            output,
            target,
            inputs,
            buffer,
            segments,
            kind,
        )
        return output

    def configure(
        self,
        name: str,
        compiles: Sequence[str],
        fits: Sequence[str] = ("batch_size=8",),
        model: int = 1,
    ) -> str:
        """Make a model selection table of all combinations; its name."""
        self.rows(
            "SELECT load_model_selection_table('models', %s, %s, %s, %s)",
            name,
            [model],
            list(compiles),
            list(fits),
        )
        return name

    def fit(self, source: str, output: str, configs: str, iterations: int, **named: object) -> int:
        """Train; the id of the run."""
        if self.fit_workers and not self.greenplum:
            named.setdefault("workers", self.fit_workers)
        text = "".join(f", {name} => %s" for name in named)
        self.rows(
            f"SELECT madlib_fit_multiple_model(%s, %s, %s, %s{text})",
            source,
            output,
            configs,
            iterations,
            *named.values(),
        )
        return self.newest_run()

    def newest_run(self) -> int:
        """The run that began last, but for those that are the last part of another one; 0 where
        there is none yet.
        """
        query = (
            "SELECT coalesce(max(run_id), 0) FROM cerebro.run_log "
            "WHERE spec -> 'train' ->> 'refit_of' IS NULL"
        )
        return int(self.value(query))

    def last_run_id(self) -> int:
        """Return the largest id of a run; runs that begin later have larger ones."""
        return int(self.value("SELECT coalesce(max(run_id), 0) FROM cerebro.run_log"))

    @contextmanager
    def fitting(
        self, source: str, output: str, configs: str, iterations: int, **named: object
    ) -> Iterator[Future[int]]:
        """Train meanwhile: see `calling`."""
        with self.calling(lambda: self.fit(source, output, configs, iterations, **named)) as fitted:
            yield fitted

    @contextmanager
    def calling(self, call: Callable[[], T]) -> Iterator[Future[T]]:
        """Make a call of this session in another thread, and leave this one to other sessions.

        Where the block fails the call is cancelled, for some have no other end; if it has failed
        itself, that is why.
        """
        with ThreadPoolExecutor(1) as pool:
            called = pool.submit(call)
            try:
                yield called
            except BaseException:
                with suppress(psycopg2.Error):
                    self.connection.cancel()
                if called.done():
                    called.result()
                raise

    def states(self, model: str) -> str:
        """The quoted name of the table with the states of a model table."""
        query = """
            SELECT c.oid::regclass
            FROM pg_constraint k JOIN pg_depend d ON d.objid = k.oid JOIN pg_class c
                ON c.oid = d.refobjid
            WHERE k.conrelid = (%s || '_summary')::regclass AND k.conname = 'cerebro_states'
              AND d.classid = 'pg_constraint'::regclass
                  AND c.relnamespace = 'cerebro_state'::regnamespace"""
        return str(self.value(query, model))

    def weights(self, table: str) -> dict[int, bytes]:
        """The weights of a model table by mst_key."""
        return {
            key: bytes(value)
            for key, value in self.rows(f"SELECT mst_key, model_weights FROM {table}")
        }

    def exists(self, *names: str) -> bool:
        """Whether any of these tables exists."""
        return bool(
            self.value("SELECT bool_or(to_regclass(n) IS NOT NULL) FROM unnest(%s) n", list(names))
        )

    def columns(self, table: str) -> str:
        """Names and types of a table's columns, in order."""
        return str(
            self.value(
                "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER "
                "BY attnum) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND "
                "NOT attisdropped",
                table,
            )
        )

    def workers(self) -> set[int]:
        """Backends of all worker sessions in this database; on Greenplum with those that serve them
        on segments.
        """
        where = "application_name LIKE 'cerebro\\_db%' AND datname = current_database()"
        if not self.greenplum:
            return {pid for (pid,) in self.rows(f"SELECT pid FROM pg_stat_activity WHERE {where}")}
        found = self.rows(f"SELECT sess_id FROM pg_stat_activity WHERE {where}")
        query = "SELECT pid FROM gp_stat_activity WHERE sess_id = ANY (%s)"
        return {pid for (pid,) in self.rows(query, [number for (number,) in found])}

    def serving(self, session: int) -> set[int]:
        """The backends that serve a session: its own, and on Greenplum those on segments."""
        if not self.greenplum:
            return {session}
        found = self.rows("SELECT sess_id FROM pg_stat_activity WHERE pid = %s", session)
        query = "SELECT pid FROM gp_stat_activity WHERE sess_id = ANY (%s)"
        return {pid for (pid,) in self.rows(query, [number for (number,) in found])}

    def pid(self) -> int:
        """The backend of this session."""
        return int(self.connection.info.backend_pid)

    def messages(self) -> list[str]:
        """What the server has said since the last question."""
        said = list(self.connection.notices)
        self.connection.notices.clear()
        return said

    def another(self) -> Workbench:
        """Another session of the same user in the same database."""
        return Workbench(self.url)

    def close(self) -> None:
        """End the session, and with it everything that it started."""
        self.connection.close()


@contextmanager
def opened(url: str) -> Iterator[Workbench]:
    """A session that ends with the block."""
    session = Workbench(url)
    try:
        yield session
    finally:
        session.close()


def drop_database(administrator: Workbench, name: str) -> None:
    """Drop a database and end the sessions in it."""
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> "
        "pg_backend_pid()"
    )
    administrator.rows(ended, name)
    administrator.rows(f"DROP DATABASE {name}")


def superuser(bench: Workbench) -> Workbench:
    """A session of the superuser in the same database."""
    return Workbench(bench.url.replace("//cerebro@", "//postgres@", 1))


@contextmanager
def setting(bench: Workbench, name: str, value: str | None) -> Iterator[None]:
    """An administrator's setting, in force within the block; then it is as before."""
    with closing(superuser(bench)) as administrator:
        before = administrator.rows(
            "DELETE FROM cerebro.setting WHERE name = %s RETURNING name, value", name
        )
        administrator.rows("INSERT INTO cerebro.setting VALUES (%s, %s)", name, value)
        try:
            yield
        finally:
            administrator.rows("DELETE FROM cerebro.setting WHERE name = %s", name)
            for row in before:
                administrator.rows("INSERT INTO cerebro.setting VALUES (%s, %s)", *row)
