"""The interface between a call and the database server that it runs in, where servers differ.

Each kind of server has an adapter. The adapter is chosen once, where a call enters, and passed on
with the caller's session; lower rooms do not depend on its kind. This module describes it in terms
of the database only, for packing, training and writing tables; `platform.visit_protocol` adds
training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Union

from cerebro_plpy.database.reading import Reading, SettingValues
from cerebro_plpy.database.sql.named_query import NamedQuery
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import dataclass

Row = dict[str, Any]
Globals = dict[str, Any]
"""Data of a database session, which PL/Python calls GD."""
Check = Callable[[], None]
"""Called while the caller waits; may raise to end the wait."""
SqlParts = Mapping[str, str]
"""Parts of a statement, by their placeholders."""
ALL = "all_segments"
GPUS = "gpu_segments"
RULES = (ALL, GPUS)  # values of distribution_rules other than the name of a table
KEY = "__dist_key__"  # the column of a packed table that contains the segment of a row


class Caller(Protocol):
    """The part of the caller's own session that an adapter uses: see `spi.Database`."""

    def rows(self, statement: str, *values: object) -> list[Row]: ...

    def row(self, statement: str, *values: object) -> Row: ...

    def value(self, statement: str, *values: object) -> Any: ...

    def peek(self, statement: str, *values: object) -> list[Row]: ...

    def guarded_rows(self, statement: str, *values: object) -> list[Row]: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def reading(self) -> Reading: ...

    def configured(self, **values: str) -> AbstractContextManager[None]: ...

    def check_interrupts(self) -> None: ...

    def notice(self, message: str) -> None: ...


class Reader(Protocol):
    """The part of any other session that an adapter uses: see `async_dispatcher.Session`."""

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


def read_value(reader: Reader, statement: str, values: Sequence[object] = ()) -> Any:
    """Return the first column of the first row of a statement."""
    return reader.run(statement, values)[0][0]


class Table(Protocol):
    """An existing table: see `catalog.Relation`."""

    @property
    def spelling(self) -> str: ...

    @property
    def oid(self) -> int: ...

    @property
    def quoted(self) -> str: ...

    @property
    def query(self) -> NamedQuery | None: ...


Rules = Union[str, Table, None]


class Wait(NamedTuple):
    """A process that sessions of a call wait for."""

    pid: int
    query: str | None
    table: str | None  # the table that it has locked; None if it waits itself for the caller
    is_log: bool  # False if the table is not of schema cerebro, such as the source of the call
    role: str | None
    state: str | None


@dataclass(frozen=True)
class Distribution:
    """The segments that a packed table is spread over."""

    keys: tuple[int, ...]  # one per segment
    dbids: tuple[int, ...] | None = None  # of these segments; None for all segments
    contents: tuple[int, ...] | None = None  # content ids of these segments; None for all

    def describe(self) -> tuple[str | list[int], str | list[int]]:
        """Return the database and content ids for the summary table.

        As in MADlib, all segments together have a name instead.
        """
        if self.dbids is None or self.contents is None:
            return ALL, ALL
        return sorted(self.dbids), sorted(self.contents)

    def take_first(self, count: int) -> Distribution:
        """Return only the first segments: a packed table may have fewer rows than segments."""
        if count >= len(self.keys):
            return self
        return Distribution(
            self.keys[:count],
            self.dbids and self.dbids[:count],
            self.contents and self.contents[:count],
        )


class Packers(Protocol):
    """Packers that are ready to pack the rows of one table, on whichever machine."""

    from_item: str  # the rows to pack, as an item of FROM

    def begin(self, activity: str, total: int | None = None) -> None:
        """Show that an activity begins, such as "counted", and the total number of its rows."""

    def inspect_image(self, key: int, column: str, encoding: str, spec: str) -> Any:
        """Return what a segment's packer finds about the first image in a column.

        Args:
            key: key of the segment.
            encoding: SQL expression that sends the image.
        """

    def fill(self, parts: SqlParts, seed: int | None, arrays: str) -> None:
        """Pack all rows into the table.

        Args:
            parts: parts of the statement, see `packing.fill_buffers.build_insert`.
        """


class Platform(Protocol):
    """A kind of database server; methods that return do nothing on a server without segments.

    Laws:
    1. An adapter has no state: one adapter serves all calls and sessions of a process.
    2. Errors and messages about one kind of server are raised only by its adapter. An adapter does
       no work that its server does not need.
    3. `check_interrupts` raises if the caller's statement is to end, and does not change its
       transaction.
    4. A parked session ends by itself unless it is woken in time. A woken session serves like a
       new one.
    5. `find_waits` finds every lasting wait for the caller or for a table, in any session, and
       never waits itself.
    6. The workers that `assign_segments` describes together serve every segment with training rows.
    7. Rows of a table from `ordered_rows_sql` always have the same order, except rows with equal
       numbers. Buffers are as even as possible, wherever rows are stored. Each row is in one
       buffer, and a segment has only the buffers with its key. The same seed and rows result in
       the same buffers.
    8. A state written into a table from `state_table_sql` is read by `state_rows_sql` completely,
       in order, and without other states. The segment may be omitted if the table has only one
       state.
    """

    @property
    def name(self) -> str:
        """The name that users know."""

    @property
    def clauses(self) -> SqlParts:
        """Clauses that statements need only on this platform, by their placeholders."""

    @property
    def writes_during_run(self) -> bool:
        """True if the caller's session can write while its workers work.

        Otherwise workers may end in a way that the caller's transaction must not see.
        """

    @property
    def logs_with_output(self) -> bool:
        """True if the transaction that creates a run's output tables may change its log row."""

    @property
    def binds_workers(self) -> bool:
        """True if each worker serves one segment only."""

    @property
    def stores_features(self) -> bool:
        """True if a statement that writes a table can get the rows from a worker's trainer."""

    # Sessions

    @property
    def caller_holds_run_lock(self) -> bool:
        """True if the caller's own session holds the lock that shows that its run is alive.

        Otherwise the session that writes the log holds it.
        """

    def session_options(self, db: Caller) -> SettingValues:
        """Return the settings of a worker session, which may train for hours."""

    def park(self, session: Reader, seconds: int) -> None:
        """Let a session, whose trainer waits already, wait for the next call.

        The session ends if no call wakes it in these seconds. If it ends before, the trainer goes
        to the next session of the same role.
        """

    def wake(self, session: Reader, label: str) -> None:
        """Let a parked session work again; `label` is its application_name."""

    def clean_message(self, text: str) -> str:
        """Return the message of an error without additions of the server."""

    def translate_loss(self, sqlstate: str, message: str) -> CerebroError | None:
        """Return our error if a part of the server was lost and the session can continue.

        Args:
            message: the server's own message.
        """
        return None

    def wait_for_segments(self, session: Reader) -> None:
        """Wait until all parts of the server serve a session again.

        The session repeats statements that a lost part prevents.
        """
        return

    def check_interrupts(self, db: Caller) -> None:
        """Raise if the caller's statement was cancelled, or if its session is to end."""

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Hold back cancels that could harm a statement; `check_interrupts` still sees them."""

    def check_process(self, module: str | None = None) -> None:
        """Raise if the current statement prevents this process from using the database.

        The check itself uses no statement. With a module, also raise if tables cannot be read.
        """
        return

    def refuse_private_tables(self, names: Sequence[str], reason: str) -> None:
        """Raise if tables that only the caller's session can use cannot be trained on at all."""
        return

    def find_waits(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """Return the processes that block these processes.

        They are: one that itself waits, perhaps indirectly, for the caller's process; one that has
        locked a table of schema cerebro; and one that has locked another table.

        Args:
            watch: returns a separate session for the query; None while that is busy.
        """

    def refresh_activity(self, db: Caller) -> None:
        """Let the caller's transaction see the current state of other sessions."""
        return

    # Predictions for roles that may not read a model

    def check_groups(self, module: str) -> None:
        """Raise if buffers cannot be restricted to rows of one group."""
        return

    def check_grants(self, module: str) -> None:
        """Raise if predictions cannot be granted."""
        return

    def read_granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """Return the function of this name that grants predictions with a model table.

        The result has at most one row: see statement grant.found.
        """

    def grant_hint(self, model: str) -> str:
        """Return how an owner grants predictions, as a part of a sentence; '' if impossible."""

    # Segments, their machines and their workers

    def dispatch_clause(self, segment_id: int | None) -> str:
        """Return the clause that sends a statement to the process of a segment's worker."""

    def assign_segments(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """Return for each worker the only segment that it serves, or None if it serves any."""

    def default_workers(self, segments: int) -> int:
        """Return the number of workers to train with if the caller does not choose it."""

    def trainer_threads(self, workers: int) -> Mapping[int, int]:
        """Return the threads of each trainer by the number of workers, from 1 to `workers`.

        Empty if there is always one worker per segment.
        """

    def count_machines(self, db: Caller) -> int:
        """Return the number of machines that trainers work on."""

    def read_hosts(self, session: Reader, segments: Mapping[int, int | None]) -> Mapping[int, str]:
        """Return the machine of each worker's trainer, by the worker's number.

        Args:
            segments: the segment that `assign_segments` gave to each worker, by its number.
        """

    def list_gpus(
        self, db: Caller, source: str, list_local: Callable[[], Iterable[str]]
    ) -> Iterable[tuple[str, str]]:
        """Return host and description of each GPU that `source` lists.

        Args:
            list_local: lists the GPUs of this machine.
        """

    # Packed tables

    def choose_distribution(
        self, db: Caller, module: str, rules: Rules, segments: int | None
    ) -> Distribution:
        """Return the segments for a new packed table: those of the rules, or only the first."""

    def follow_distribution(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """Return the segments of a training table, for its validation table.

        A NOTICE reports rules that name other segments.
        """

    def ordered_rows_sql(self, output: str, rows: SqlParts) -> str:
        """Return the statement that creates a temporary table of rows ordered by a number.

        The table is dropped at the end of the transaction.

        Args:
            output: name of the table.
            rows: parts of the statement: the `columns` made of each row `t` of a `source` for
                which `side` is true, and the number, `order`.
        """

    def open_packers(
        self, db: Caller, gd: Globals, source: Table, columns: Sequence[str]
    ) -> AbstractContextManager[Packers]:
        """Return packers for these columns of a table.

        They end with the context; after an error they end with the transaction.
        """

    def ensure_packer(self, is_running: bool, has_rows: bool, start: Callable[[], object]) -> bool:
        """Return True if this process can pack; start a packer if necessary.

        Args:
            has_rows: the process has rows to pack.
        """

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Refuse a packed table whose rows are not stored where their segments are served."""
        return

    def check_keys(
        self, session: Reader, module: str, table: Table, segments: Sequence[int]
    ) -> None:
        """Refuse a packed table with keys of unknown segments."""
        return

    # States

    def state_table_sql(self, name: str) -> str:
        """Return the statement that creates or empties a table for states; `name` is quoted."""

    def state_rows_sql(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """Return the query for the chunks, in order, of a state in a table.

        Args:
            segment_id: segment whose visit has stored the state; None if the table has only one.
            base: table with the chunks that several states share.
        """

    def state_range_sql(self, table: str, segment_id: int | None) -> str | None:
        """Return the query for the chunks of a state between two blocks of its table.

        The query takes the first block and the block after the last as values. None if a state can
        only be read completely.
        """

    def copy_state_sql(
        self, table: str, segment_id: int | None, base: str | None, copy: str
    ) -> str:
        """Return the statement that copies a state into another table for states.

        The copy includes the chunks in `base`, and is read in the same way.
        """

    def state_from_rows_sql(self, rows: str, table: str) -> str:
        """Return the statement that copies the chunks of a state from a query into a table.

        Args:
            rows: query for parts and chunks.
        """
