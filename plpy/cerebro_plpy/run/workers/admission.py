"""The places of a run: what it may have at work of what quotas allow, and its wait until that is
something.

A run stands in the queue from its first line in the log to its end. Its row there contains what it
has and wants. The row counts while the orchestrator holds its lock, and its places count while
workers hold theirs. A run without places waits and asks now and then; no other process has to be at
work for that.

Nothing serialises the runs. A run that takes places commits that first, then asks once more: of two
runs that take places at the same time, one at least sees both, and gives back what is too much
before it starts a trainer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import ConfigurationLimit, hidden_run
from cerebro_plpy.platform.call_context import OPEN_ERRORS, CallContext
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.quota.fair_share import Demand, Quota, Role, divide_slots

WAIT_SECONDS = 0.5
LOOK_SECONDS = 1.0
"""So often a run looks whether it is to have more or fewer places: while it is the next, and while
it has some.
"""
SHOW_SECONDS = 20.0
"""So often a run shows that it still waits, or works in its places: what nobody shows is not
counted after a minute.
"""
MOST_WAITS = 6
"""Those behind look more seldom, by their position, up to so many times: whoever looks holds up
others for a moment, because which runs are alive is told by locks."""


class SlotRequest(NamedTuple):
    """How many places are the least that a run can work with, and the most that it can use; of how
    many configurations it is; and whether it is `steady`, and cannot give places back before its
    end."""

    min_slots: int
    max_slots: int
    configs: int
    is_static: bool


class Queue(NamedTuple):
    """All runs that are alive, in the order of their arrival, what their roles may have, and what
    all may together.
    """

    rows: Sequence[Row]
    entries: Sequence[Demand]
    roles: Mapping[int, Role]
    server: Quota

    @property
    def is_limited(self) -> bool:
        """Whether any quota is in force."""
        return self.server != Quota() or any(
            role.is_paused or role.quota != Quota() for role in self.roles.values()
        )

    def find_position(self, run_id: int) -> int | None:
        """Where a run stands among all."""
        return next((index for index, row in enumerate(self.rows) if row["run_id"] == run_id), None)

    def compute_shares(self) -> Sequence[int]:
        """The places of each."""
        return divide_slots(self.entries, self.roles, self.server)

    def with_demand(self, index: int, most: int) -> Queue:
        """The same where that run can use so many places."""
        entries = [*self.entries]
        entries[index] = entries[index]._replace(max_slots=most)
        return self._replace(entries=entries)

    def with_run(self, wish: SlotRequest, limit: Quota) -> Queue:
        """The same with one more run of the caller's role, which has that limit."""
        own = next((row["role"] for row in self.rows if row["own"]), max(self.roles, default=0) + 1)
        entry = Demand(own, wish.min_slots, wish.max_slots, wish.configs, 0, wish.is_static)
        return self._replace(entries=[*self.entries, entry], roles={own: Role(limit), **self.roles})


class WorkerOpener(Protocol):
    """Of a workplace what hires and dismisses workers."""

    def add_worker(self, number: int, framework: str) -> Worker: ...

    def reopen(self, worker: Worker) -> bool: ...

    def close_workers(self, workers: Sequence[Worker]) -> None: ...


def make_slot_request(workplace: CallContext, request: FitRequest) -> SlotRequest:
    """What a request wants."""
    drawing = request.search.sampling if request.search else None
    configs = len(request.configs) + (drawing.total_remaining if drawing else 0)
    if workplace.is_local:
        return SlotRequest(1, 1, configs, is_static=True)
    posts = workplace.platform.assign_segments(request.source.segments, request.workers)
    steady = any(post is not None for post in posts)
    return SlotRequest(len(posts) if steady else 1, len(posts), configs, steady)


def read_queue(db: Database) -> Queue:
    """The queue as it is now."""
    db.platform.refresh_activity(db)
    rows = db.peek(sql("queue.entries"))
    asked = [
        (row["role"], row["fewest"], row["most"], row["configs"], row["places"], row["steady"])
        for row in rows
    ]
    limits = {row["role"]: Quota(row["role_trainers"], row["role_configs"]) for row in rows}
    roles = {
        row["role"]: Role(limits[row["role"]], float(row["role_used"] or 0.0), row["rests"])
        for row in rows
    }
    return Queue(rows, [Demand(*each) for each in asked], roles, _limit(_quotas(db).get(None)))


def _quotas(db: Database) -> Mapping[str | None, Row]:
    return {row["role"]: row for row in db.peek(sql("queue.quotas"))}


def _limit(quota: Row | None) -> Quota:
    return Quota(quota["trainers"], quota["configs"]) if quota else Quota()


def check_quotas(db: Database, wish: SlotRequest) -> None:
    """Refuse a run that no quota would ever let begin, or for which there is no place in the
    queue.
    """
    quotas = _quotas(db)
    for role, quota in quotas.items():
        whose = "all roles together" if role is None else f"role {role!r}"
        if wish.configs > (quota["configs"] or wish.configs):
            raise ConfigurationLimit(
                f"the run would have {wish.configs} configurations, but runs of {whose} may have "
                f"{quota['configs']} at a time",
                hint="Train fewer, one part after another; or an administrator can change configs "
                "in cerebro.quota.",
            )
        if wish.min_slots > (quota["trainers"] or wish.min_slots):
            raise ConfigurationLimit(
                f"the run needs {wish.min_slots} trainers, but {whose} may have "
                f"{quota['trainers']} at work at a time",
                hint="Each segment of this server needs one. An administrator can change trainers "
                "in cerebro.quota.",
            )
    if any(quota["runs_waiting"] is not None for quota in quotas.values()):
        _refuse_to_wait(db, wish, quotas)


def _refuse_to_wait(db: Database, wish: SlotRequest, quotas: Mapping[str | None, Row]) -> None:
    own = next((quota for role, quota in quotas.items() if role is not None), None)
    if read_queue(db).with_run(wish, _limit(own)).compute_shares()[-1] >= wish.min_slots:
        return
    waiting = db.peek(sql("queue.waiting"))[0]
    for role, quota in quotas.items():
        count, most = waiting["of_all" if role is None else "of_role"], quota["runs_waiting"]
        if most is not None and count >= most:
            whose = "all roles together" if role is None else f"role {role!r}"
            raise ConfigurationLimit(
                f"the run would have to wait, and {count} runs of {whose} do, of at most {most}",
                hint="Call again when some have ended: SELECT * FROM cerebro.queue ORDER BY "
                "position; or an administrator can change runs_waiting in cerebro.quota.",
            )


@contextmanager
def hold_slots(
    db: Database, workplace: CallContext, log: RunLog, wish: SlotRequest
) -> Iterator[RunSlots]:
    """The places of a run, at least as many as it can work with, when it is its turn; it gives them
    back at the end.

    Where it ends early it does so when it says why, and else they are gone with its control
    session.
    """
    places = RunSlots(db, workplace, log, wish)
    places.wait()
    yield places
    places.leave()


def choose_wait_rounds(position: int | None) -> int:
    """After how many times of `WAIT_SECONDS` a run looks again that has a position in the queue.

    >>> [choose_wait_rounds(position) for position in (None, 1, 2, 6, 30)]
    [1, 1, 2, 6, 6]
    """
    return min(position or 1, MOST_WAITS)


class RunSlots:
    """Those of one run."""

    def __init__(
        self, db: Database, workplace: CallContext, log: RunLog, wish: SlotRequest
    ) -> None:
        self._db, self._workplace, self._log = db, workplace, log
        self.opener: WorkerOpener = workplace
        self.is_static = wish.is_static
        self.count = 0
        self.is_limited = False
        self._least, self._looked, self._told = wish.min_slots, 0.0, False
        self._most = wish.max_slots
        self._configs = wish.configs
        self._shown = time.monotonic()
        self._position: int | None = None
        workplace.control.run(sql("queue.enter"), (*self._own, *wish))

    @property
    def _own(self) -> tuple[int, str]:
        """What tells the server that the run is the caller's own."""
        return self._log.run_id, self._log.ticket

    def read_share(self) -> int | None:
        """How many places the run is to have; None where it has looked a moment ago."""
        if time.monotonic() < self.next_check:
            return None
        return self._share()[0]

    @property
    def next_check(self) -> float:
        """When the run looks again, if it is limited."""
        return self._looked + LOOK_SECONDS

    def take(self, wanted: int) -> int:
        """Take or give back places; how many the run has then."""
        held = self.count
        taken = self._ask(wanted, held)
        if taken > held and self.is_limited:
            taken = self._ask(taken, held)
        self.count = taken
        return taken

    def _ask(self, wanted: int, held: int) -> int:
        """Commit a number of places, as far as they are free beside those that the run had; return
        how many it has.
        """
        self._shown = time.monotonic()
        rows = self._workplace.control.run(sql("queue.take"), (*self._own, wanted, held))
        return int(rows[0][0] or 0)

    def refresh(self) -> None:
        """Let others count the places for a while longer, if all have workers."""
        if self.is_limited and time.monotonic() - self._shown > SHOW_SECONDS:
            self.count = self._ask(self.count, self.count)

    def _show_wait(self) -> None:
        if time.monotonic() - self._shown < SHOW_SECONDS:
            return
        self._refuse_if_hidden()
        if self._db.in_procedure:  # its control session is away
            self._shown = time.monotonic()
            self._db.rows(sql("queue.take"), *self._own, 0, 0)
            self._db.commit()
        else:
            self._ask(0, 0)

    def leave(self) -> None:
        """Leave the queue, at the end of the run."""
        self._workplace.control.run(sql("queue.leave"), self._own)

    def reserve_configs(self, configs: int) -> None:
        """So many configurations more are to join; ConfigurationLimit where quotas leave no room
        for them.
        """
        values = (*self._own, configs, self._configs)
        if not all(self._workplace.control.run(sql("queue.add"), values)[0][0] for _ in range(2)):
            raise ConfigurationLimit(
                f"quotas leave no room for {configs} more configurations: see configs of "
                "cerebro.quota"
            )
        self._configs += configs

    def wait(self) -> float:
        """Wait until the run has places; for how many seconds that was. Its log says that it is
        queued meanwhile.
        """
        began, waits = time.monotonic(), False
        while not self._taken():
            if not waits:
                waits = True
                self._ask(
                    0, 0
                )  # first, so that whoever sees that the run is queued sees its position, too
                self._log.write_queued(True)
                self._tell()
            self._show_wait()
            self._workplace.disconnect_control()
            for _ in range(choose_wait_rounds(self._position)):
                self._workplace.check()
                time.sleep(WAIT_SECONDS)
        if waits:
            self._log.write_queued(False)
        seconds = time.monotonic() - began
        self._workplace.queued_seconds += seconds
        return seconds

    def _taken(self) -> bool:
        places, self._position = self._share()
        if places < self._least:
            return False
        try:
            return self.take(places) > 0
        except OPEN_ERRORS:  # there is no room even for who writes the log: later there is
            self._refuse_if_hidden()
            return False

    def _tell(self) -> None:
        """Tell the caller once, and not whenever it is another role's turn."""
        _, self._position = self._share()
        if not self._told and self._position is not None:
            self._db.notice(
                f"run {self._log.run_id} is queued, at position {self._position}: it goes on by "
                "itself when quotas leave it a place; see cerebro.queue"
            )
        self._told = True

    def _share(self) -> tuple[int, int | None]:
        """How many places the run is to have, and its position where it is queued."""
        self._looked, queue = time.monotonic(), read_queue(self._db)
        index, self.is_limited = queue.find_position(self._log.run_id), queue.is_limited
        if index is None:
            self._refuse_if_hidden()
            return self.count, None
        if queue.rows[index]["status"] == "queued":  # also where others do not count it any more
            queue = queue.with_demand(index, self._most)
        return queue.compute_shares()[index], queue.rows[index]["position"]

    def _refuse_if_hidden(self) -> None:
        """Raise an error if the role of the run has another name by now: the run could wait
        forever.
        """
        if self._db.in_procedure and self._db.peek(sql("run.own"), self._log.run_id):
            return  # its control session is away, and may not come back
        if self._db.in_procedure or not self._log.is_owned():
            raise hidden_run(self._log.run_id)
