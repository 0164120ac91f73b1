"""What a call needs of the server that it runs in, where servers differ: one protocol, with an
adapter for each.

The adapter is chosen once, where a call enters, and handed on with the caller's session: nobody
below has to know which one it is. What an adapter is asked stands here in words of the database
alone, so that whoever packs, trains or writes tables can ask it; what training adds is in
`platform.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Union

from cerebro_plpy.database.reading import Reading
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import dataclass

Row = dict[str, Any]
# What distribution_rules may be, beside the name of a table.
ALL, GPUS = "all_segments", "gpu_segments"
RULES = (ALL, GPUS)
KEY = "__dist_key__"  # the column of a packed table that says to which segment a row belongs


class Caller(Protocol):
    """Of the caller's own session what an adapter uses: see `caller.Database`."""

    def rows(self, statement: str, *values: object) -> list[Row]: ...

    def row(self, statement: str, *values: object) -> Row: ...

    def value(self, statement: str, *values: object) -> Any: ...

    def glance(self, statement: str, *values: object) -> list[Row]: ...

    def guarded_rows(self, statement: str, *values: object) -> list[Row]: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def reading(self) -> Reading: ...

    def configured(self, **values: str) -> AbstractContextManager[None]: ...

    def check_interrupts(self) -> None: ...

    def notice(self, message: str) -> None: ...


class Reader(Protocol):
    """Of any other session what an adapter uses: see `dispatch.Session`."""

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class Table(Protocol):
    """A table that exists: see `catalog.Relation`."""

    @property
    def spelling(self) -> str: ...

    @property
    def oid(self) -> int: ...

    @property
    def quoted(self) -> str: ...


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
    """The keys of the segments that a packed table is spread over, one of each, and the database
    and content ids of these segments where they are not all."""

    keys: tuple[int, ...]
    dbids: tuple[int, ...] | None = None
    contents: tuple[int, ...] | None = None

    def described(self) -> tuple[str | list[int], str | list[int]]:
        """For the summary: as MADlib does, all segments by name, others by database and content
        ids.
        """
        if self.dbids is None or self.contents is None:
            return ALL, ALL
        return sorted(self.dbids), sorted(self.contents)

    def first(self, count: int) -> Distribution:
        """Only the first of these segments: a packed table may have fewer rows than there are
        segments.
        """
        if count >= len(self.keys):
            return self
        return Distribution(
            self.keys[:count],
            self.dbids and self.dbids[:count],
            self.contents and self.contents[:count],
        )


class Packers(Protocol):
    """Packers that are ready for the rows of one table, wherever these are to be packed."""

    rows: str  # what the rows are read from, as it stands in FROM

    def begin(self, done: str, total: int | None = None) -> None:
        """Let those who look know how many rows are `done`, such as "counted", of a total; where
        that is possible.
        """
        ...

    def about_image(self, key: int, column: str, sent: str, spec: str) -> Any:
        """What the packer of that segment says of the first image: `column` has it, `sent` is how
        it is sent.
        """
        ...

    def fill(self, parts: Mapping[str, str], seed: int | None, arrays: str) -> None:
        """Pack all rows into the table; `parts` of the statement are those of
        `packing.fill.insertion`.
        """
        ...


class Platform(Protocol):
    """A database server as a call meets it.

    Laws:
    1. An adapter holds nothing: the same one serves every call and every session of a process.
    2. What it raises of its own, and every message that names it, is raised for it alone; what it
       does not need to do, it does not do.
    3. `check_interrupts` raises where the caller's statement is to end, and leaves its transaction
       as it was.
    4. A session that rests ends by itself, unless it is woken in time; a session that was woken
       serves like a new one.
    5. `waiting` finds every wait for the caller or for a table that lasts, from whatever session,
       and never waits itself.
    6. The posts of workers, one after another, serve every segment that has rows to be trained on.
    7. Rows of a table that `ordered_rows` makes lie the same way always, but for those of one
       number. Buffers are as even as can be, whatever lies where: each row is in one of them, and a
       segment has those of its key alone. The same seed over the same rows gives the same buffers.
    8. A state that was written into a table that `state_table` makes is read by `state_rows` whole,
       alone and in order; without the segment, where the table has no other.
    """

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    @property
    def clauses(self) -> Mapping[str, str]:
        """What statements have in them for this platform alone, by the identifiers in which it
        stands there.
        """
        ...

    @property
    def works_beside(self) -> bool:
        """Whether the caller's session can write while its workers work: they can have no end that
        its transaction must not see."""
        ...

    @property
    def logs_with_tables(self) -> bool:
        """Whether the transaction that makes the output tables of a run may also change its row in
        the log.
        """
        ...

    @property
    def stores_features(self) -> bool:
        """Whether a statement that writes a table can ask a worker's trainer for what it writes."""
        ...

    # Sessions

    @property
    def alive_by_lock(self) -> bool:
        """Whether a lock of the caller's own session says that its run is alive, and not the
        session that writes its log."""
        ...

    def session_options(self, db: Caller) -> Mapping[str, str]:
        """The settings of a worker session: it may train for hours, and keeps its trainer in
        between.
        """
        ...

    def rest(self, session: Reader, seconds: int, at: str | None) -> None:
        """Let a session wait for the next call, and be ended if none comes in that time.

        So does its trainer, to whose process `at` sends a statement, None where it has none; if the
        session ends before, that goes to the next one of the same role.
        """
        ...

    def wake(self, session: Reader, label: str) -> None:
        """Let it work again, under a label for those who look."""
        ...

    def message(self, text: str) -> str:
        """The message of an error without what the server adds to it."""
        ...

    def lost(self, sqlstate: str, message: str) -> CerebroError | None:
        """The error where a part of the server was lost, and the session can go on; `message` is
        the server's own.
        """
        ...

    def settle(self, session: Reader) -> None:
        """Return when all parts of the server serve that session again; it repeats what a lost part
        keeps from it.
        """
        ...

    def check_interrupts(self, db: Caller) -> None:
        """Raise where the caller's statement was cancelled, or its session is to end."""
        ...

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Within, no cancel takes effect amid a statement that it could harm; `check_interrupts`
        sees it.
        """
        ...

    def check_process(self, module: str | None = None) -> None:
        """Raise where the statement that calls keeps this process from asking the database
        anything; nothing is asked.

        With a module also where it cannot read tables.
        """
        ...

    def refuse_held(self, held: Sequence[str], why: str) -> None:
        """Raise where tables that only the caller's session can use cannot be trained on at all."""
        ...

    def waiting(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """What keeps these processes waiting: one that waits itself, in the end, for the caller's,
        one that has a table of schema cerebro, and one that has another table; none where they wait
        for neither.

        `watch` gives a session of its own to ask from, None while that is at work.
        """
        ...

    def look_anew(self, db: Caller) -> None:
        """Let the caller's transaction see the other sessions as they are now."""
        ...

    # Predictions for roles that may not read a model

    def check_groups(self, module: str) -> None:
        """Raise where buffers cannot be made to hold one group of rows each."""
        ...

    def check_grants(self, module: str) -> None:
        """Raise where nobody can be granted them."""
        ...

    def granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """The function of that name that grants them with a model table, if there is one: see
        `grant.found`.
        """
        ...

    def grant_hint(self, model: str) -> str:
        """How an owner grants them, as a part of a sentence; empty where nobody can."""
        ...

    # Segments, their machines and their workers

    def at(self, segment_id: int | None) -> str:
        """What sends a statement to the process that serves the worker of that post."""
        ...

    def posts(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """Of each worker the segment that it alone can serve, or None for one that can serve
        any.
        """
        ...

    def most_workers(self, segments: int) -> int:
        """How many workers train at a time, where the caller does not say and there are so many
        segments.
        """
        ...

    def widths(self, workers: int) -> Mapping[int, int]:
        """The threads of each trainer by the number of workers, for all numbers from 1 to this one;
        none where there are as many as segments."""
        ...

    def machines(self, db: Caller) -> int:
        """Return the number of machines that trainers work on."""
        ...

    def hosts(self, session: Reader, posts: Mapping[int, int | None]) -> Mapping[int, str]:
        """The machine of each worker's trainer, by the worker's number, as `posts` are."""
        ...

    def gpus(
        self, db: Caller, source: str, here: Callable[[], Iterable[str]]
    ) -> Iterable[tuple[str, str]]:
        """Host and description of each GPU that `source` lists; `here` asks this very machine."""
        ...

    # Packed tables

    def distribution(
        self, db: Caller, module: str, rules: Rules, wanted: int | None
    ) -> Distribution:
        """The segments that the rules name for a new packed table, or so many of them."""
        ...

    def distribution_along(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """The segments of a training table, for the table that follows it; a NOTICE where rules
        name others.
        """
        ...

    def ordered_rows(self, output: str, rows: Mapping[str, str]) -> str:
        """What makes a temporary table `output` of rows that lie in the order of a number that each
        of them has.

        `rows` are parts of the statement: the `columns` that are made of each row `t` of a `source`
        for which `side` is true, and the number, `order`. It goes with the transaction.
        """
        ...

    def packers(
        self, db: Caller, gd: dict[str, Any], source: Table, columns: Sequence[str]
    ) -> AbstractContextManager[Packers]:
        """Packers for these columns of a table; they end with the context, after an error with the
        transaction.
        """
        ...

    def packer_ready(self, running: bool, rows: bool, start: Callable[[], object]) -> bool:
        """Whether this process can pack, and if need be starts a packer; `rows` is whether it has
        any to pack.
        """
        ...

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Refuse a packed table whose rows do not lie where their segments are served."""
        ...

    def check_keys(
        self, session: Reader, module: str, table: Table, segments: Sequence[int]
    ) -> None:
        """Refuse a packed table with keys of which nobody knows where their segments are."""
        ...

    # States

    def state_table(self, name: str) -> str:
        """What makes a table for states anew; `name` is quoted."""
        ...

    def state_rows(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """What reads the chunks of the state that a visit to that segment has left in a table, in
        order.

        Of the only state in the table, where no segment is named. What states share of it may lie
        in the table `base`.
        """
        ...

    def state_between(self, table: str, segment_id: int | None) -> str | None:
        """What reads of such a state what lies from one block of its table on, but before another,
        both as values.

        None where it can only be read as a whole.
        """
        ...

    def state_copy(self, table: str, segment_id: int | None, base: str | None, copy: str) -> str:
        """What copies that state into another table for states, where it can be read in the same
        way; with what lies in its `base`, if one is named."""
        ...

    def state_of_rows(self, rows: str, table: str) -> str:
        """What copies the chunks of a state, each a part and a chunk, from a query into a table for
        states.
        """
        ...
