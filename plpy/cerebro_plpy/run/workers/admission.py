"""The slots of a run: the number of trainers that quotas allow it, and its wait for them.

A run is in the queue from its first line in the log to its end. Its row contains the slots that it
has and those that it can use. The row counts while the run's own session holds its lock, and its
slots count while workers hold theirs. A run without slots waits and checks from time to time; no
other process has to be active for that.

Runs are not serialized. A run that takes slots commits that first and then checks again: of two
runs that take slots at the same time, at least one sees both, and returns the excess before it
starts a trainer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cerebro_plpy.database.call_status import QUEUED
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import ConfigurationLimit, hidden_run
from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.platform.call_context import OPEN_ERRORS, CallContext
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.quota.fair_share import Demand, Quota, Role, divide_slots

WAIT_SECONDS = 0.5
"""A waiting run sleeps that long, once or several times, before it checks its share again."""
CHECK_SECONDS = 1.0
"""A run with slots checks its share that often."""
SHOW_SECONDS = 20.0
"""A run shows that often that it still waits or uses its slots, which expire after a minute."""
MAX_WAIT_ROUNDS = 6
"""Runs that are further behind check less often, by their position, up to this number of rounds.

Each check delays others for a moment, because locks show which runs are alive.
"""


class SlotRequest(NamedTuple):
    """The slots that a run can use; the fields are parameters of `cerebro_internal.enter_queue`."""

    min_slots: int  # the run cannot work with fewer
    max_slots: int  # the run cannot use more
    configs: int  # number of its configurations
    is_static: bool  # keeps its slots until it ends


class Queue(NamedTuple):
    """All live runs in the order of their arrival."""

    rows: Sequence[Row]  # of cerebro.queue
    demands: Sequence[Demand]  # of the same runs
    roles: Mapping[int, Role]
    server: Quota  # of all roles together

    @property
    def is_limited(self) -> bool:
        """True if any quota is in force."""
        if self.server != Quota():
            return True
        return any(role.is_paused or role.quota != Quota() for role in self.roles.values())

    def find_position(self, run_id: int) -> int | None:
        """Return the position of a run among all, or None if it is not in the queue."""
        return next((index for index, row in enumerate(self.rows) if row["run_id"] == run_id), None)

    def compute_shares(self) -> Sequence[int]:
        """Return the slots of each run."""
        return divide_slots(self.demands, self.roles, self.server)

    def with_demand(self, position: int, max_slots: int) -> Queue:
        """Return the queue with another maximum for one run."""
        demands = [*self.demands]
        demands[position] = demands[position]._replace(max_slots=max_slots)
        return self._replace(demands=demands)

    def with_run(self, request: SlotRequest, quota: Quota) -> Queue:
        """Return the queue with one more run of the current role.

        Args:
            quota: of the role.
        """
        new_role = max(self.roles, default=0) + 1
        role = next((row["role"] for row in self.rows if row["own"]), new_role)
        demand = Demand(
            role, request.min_slots, request.max_slots, request.configs, 0, request.is_static
        )
        roles = {role: Role(quota), **self.roles}
        return self._replace(demands=[*self.demands, demand], roles=roles)


def make_slot_request(context: CallContext, request: FitRequest) -> SlotRequest:
    """Return the slots that the run of a request can use."""
    configs = len(request.configs)
    if request.sampling:
        configs += request.sampling.total_remaining
    if context.is_local:
        return SlotRequest(1, 1, configs, is_static=True)
    segments = context.platform.assign_segments(request.source.segments, request.workers)
    is_static = any(segment is not None for segment in segments)
    min_slots = len(segments) if is_static else 1
    return SlotRequest(min_slots, len(segments), configs, is_static)


def read_queue(db: Database) -> Queue:
    """Return the current queue."""
    db.platform.refresh_activity(db)
    rows = db.peek(sql("queue.entries"))
    demands = [
        Demand(
            row["role"], row["fewest"], row["most"], row["configs"], row["places"], row["steady"]
        )
        for row in rows
    ]
    roles = {
        row["role"]: Role(
            Quota(row["role_trainers"], row["role_configs"]),
            float(row["role_used"] or 0.0),
            row["rests"],
        )
        for row in rows
    }
    return Queue(rows, demands, roles, _make_quota(_read_quotas(db).get(None)))


def _read_quotas(db: Database) -> Mapping[str | None, Row]:
    """Return the quotas of the current role and, with the key None, of all roles together."""
    return {row["role"]: row for row in db.peek(sql("queue.quotas"))}


def has_quota(db: Database) -> bool:
    """Return True if a quota limits the trainers of the current role, or of all roles together."""
    return any(row["trainers"] is not None for row in _read_quotas(db).values())


def _make_quota(row: Row | None) -> Quota:
    if row is None:
        return Quota()
    return Quota(row["trainers"], row["configs"])


def check_quotas(db: Database, request: SlotRequest) -> None:
    """Check that a run can start now or later.

    Raises:
        ConfigurationLimit: a quota does not allow the run at all, or it would have to wait and
            too many runs wait already.
    """
    quotas = _read_quotas(db)
    for role, quota in quotas.items():
        roles = _describe_roles(role)
        if request.configs > (quota["configs"] or request.configs):
            number = count_nouns(request.configs, "configuration")
            raise ConfigurationLimit(
                f"the run would have {number}, but runs of {roles} may "
                f"have {quota['configs']} at a time",
                hint="Train fewer, one part after another; or an administrator can change configs "
                "in cerebro.quota.",
            )
        if request.min_slots > (quota["trainers"] or request.min_slots):
            raise ConfigurationLimit(
                f"the run needs {count_nouns(request.min_slots, 'trainer')}, but {roles} may have "
                f"{quota['trainers']} at work at a time",
                hint="Each segment of this server needs one. An administrator can change trainers "
                "in cerebro.quota.",
            )
    if any(quota["runs_waiting"] is not None for quota in quotas.values()):
        _check_waiting(db, request, quotas)


def _check_waiting(db: Database, request: SlotRequest, quotas: Mapping[str | None, Row]) -> None:
    """Check that the run can start at once, or that not too many runs wait."""
    own_quota = next((quota for role, quota in quotas.items() if role is not None), None)
    queue = read_queue(db).with_run(request, _make_quota(own_quota))
    if queue.compute_shares()[-1] >= request.min_slots:
        return
    waiting = db.peek(sql("queue.waiting"))[0]
    for role, quota in quotas.items():
        count = waiting["of_all" if role is None else "of_role"]
        max_waiting = quota["runs_waiting"]
        if max_waiting is not None and count >= max_waiting:
            raise ConfigurationLimit(
                f"the run would have to wait, and {count_nouns(count, 'run')} of "
                f"{_describe_roles(role)} {match_verb(count, 'does')}, of at most {max_waiting}",
                hint="Call again when some have ended: SELECT * FROM cerebro.queue ORDER BY "
                "position; or an administrator can change runs_waiting in cerebro.quota.",
            )


def _describe_roles(role: str | None) -> str:
    return "all roles together" if role is None else f"role {role!r}"


@contextmanager
def hold_slots(
    db: Database, context: CallContext, log: RunLog, request: SlotRequest
) -> Iterator[RunSlots]:
    """Wait for the slots of a run, and return them at the end of the block.

    After an error, they are returned when the end of the run is logged, or else when the control
    session ends.
    """
    slots = RunSlots(db, context, log, request)
    slots.wait()
    yield slots
    slots.leave()


def choose_wait_rounds(position: int | None) -> int:
    """Return how many times a run sleeps for `WAIT_SECONDS` before it checks its share again.

    >>> [choose_wait_rounds(position) for position in (None, 1, 2, 6, 30)]
    [1, 1, 2, 6, 6]
    """
    return min(position or 1, MAX_WAIT_ROUNDS)


class RunSlots:
    """The slots of one run."""

    def __init__(
        self, db: Database, context: CallContext, log: RunLog, request: SlotRequest
    ) -> None:
        """Enter the queue, without slots."""
        self._db = db
        self._context = context
        self._log = log
        self._request = request
        self._configs = request.configs
        self._last_check = 0.0
        self._last_shown = time.monotonic()
        self._position: int | None = None  # in the queue
        self._is_notified = False  # the caller was told that the run waits
        self.opener = context  # opens and closes workers
        self.is_static = request.is_static
        self.count = 0  # slots that the run has
        self.is_limited = False  # a quota is in force
        context.control.run(sql("queue.enter"), (*self._key, *request))

    @property
    def _key(self) -> tuple[int, str]:
        """The run and the secret by which the server recognizes it."""
        return self._log.run_id, self._log.ticket

    def read_share(self) -> int | None:
        """Return the slots that the run should have, or None shortly after the last check."""
        if time.monotonic() < self.next_check:
            return None
        return self._read_share()[0]

    @property
    def next_check(self) -> float:
        """The time of the next check of a limited run."""
        return self._last_check + CHECK_SECONDS

    def take(self, slots: int) -> int:
        """Take or return slots until the run has that many; return how many it has."""
        granted = self._take(slots, self.count)
        if granted > self.count and self.is_limited:
            granted = self._take(granted, self.count)
        self.count = granted
        return granted

    def _take(self, slots: int, current_slots: int) -> int:
        """Commit a number of slots, if enough are free; return how many the run has."""
        self._last_shown = time.monotonic()
        ((count,),) = self._context.control.run(
            sql("queue.take"), (*self._key, slots, current_slots)
        )
        return int(count or 0)

    def refresh(self) -> None:
        """Prolong the slots from time to time; all of them must have workers."""
        if self.is_limited and time.monotonic() - self._last_shown > SHOW_SECONDS:
            self.count = self._take(self.count, self.count)

    def _show_wait(self) -> None:
        """Prolong the place in the queue from time to time."""
        if time.monotonic() - self._last_shown < SHOW_SECONDS:
            return
        self._check_owner()
        if self._db.in_procedure:  # the control session is disconnected
            self._last_shown = time.monotonic()
            self._db.rows(sql("queue.take"), *self._key, 0, 0)
            self._db.commit()
        else:
            self._take(0, 0)

    def leave(self) -> None:
        """Leave the queue, at the end of the run."""
        self._context.control.run(sql("queue.leave"), self._key)

    def reserve_configs(self, count: int) -> None:
        """Count configurations that are to be added to the run.

        Raises:
            ConfigurationLimit: quotas do not allow them.
        """
        values = (*self._key, count, self._configs)
        for _ in range(2):  # the second time sees runs that have added some at the same time
            ((is_allowed,),) = self._context.control.run(sql("queue.add"), values)
            if not is_allowed:
                raise ConfigurationLimit(
                    f"quotas leave no room for {count_nouns(count, 'more configuration')}: see "
                    "configs of cerebro.quota"
                )
        self._configs += count

    def wait(self) -> float:
        """Wait until the run has slots, as its log shows; return the seconds of waiting."""
        start = time.monotonic()
        status = self._db.status
        phase = status.phase
        is_queued = False
        while not self._take_share():
            if not is_queued:
                is_queued = True
                status.enter(QUEUED)
                self._take(0, 0)  # first, so that a run that is shown as queued has a position
                self._log.write_queued(True)
                self._notify()
            self._show_wait()
            self._context.disconnect_control()
            for _ in range(choose_wait_rounds(self._position)):
                self._context.check()
                time.sleep(WAIT_SECONDS)
        if is_queued:
            self._log.write_queued(False)
        seconds = time.monotonic() - start
        status.enter(phase)
        status.exclude(seconds)
        self._context.queued_seconds += seconds
        return seconds

    def _take_share(self) -> bool:
        """Take the share of the run; return False if it is too small."""
        share, self._position = self._read_share()
        if share < self._request.min_slots:
            return False
        try:
            return self.take(share) > 0
        except OPEN_ERRORS:  # not even the control session can be opened now
            self._check_owner()
            return False

    def _notify(self) -> None:
        """Notify the caller once, not each time that it is another role's turn."""
        _, self._position = self._read_share()
        if not self._is_notified and self._position is not None:
            self._db.notice(
                f"run {self._log.run_id} is queued, at position {self._position}: it goes on by "
                "itself when quotas leave it a place; see cerebro.queue"
            )
        self._is_notified = True

    def _read_share(self) -> tuple[int, int | None]:
        """Return the slots that the run should have, and its position if it is queued."""
        self._last_check = time.monotonic()
        queue = read_queue(self._db)
        self.is_limited = queue.is_limited
        position = queue.find_position(self._log.run_id)
        if position is None:
            self._check_owner()
            return self.count, None
        row = queue.rows[position]
        if row["status"] == "queued":  # even if its row has expired for others
            queue = queue.with_demand(position, self._request.max_slots)
        return queue.compute_shares()[position], row["position"]

    def _check_owner(self) -> None:
        """Check that the role of the run still has its name: else the run would wait forever.

        Raises:
            UndefinedObject: it does not.
        """
        if self._db.in_procedure:  # the control session is disconnected, and may stay so
            is_owned = bool(self._db.peek(sql("run.own"), self._log.run_id))
        else:
            is_owned = self._log.is_owned()
        if not is_owned:
            raise hidden_run(self._log.run_id)
