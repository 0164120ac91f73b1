"""What people ask of a live run: each act is taken up at a border of visits, is done or refused,
and is logged as such.

An act is data. Whoever asks writes a row, by their own rights; the run reads it in a session of its
owner. What an act does to a configuration is a decision like those of a search, committed with the
act's own row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import NamedTuple

from cerebro_plpy.errors import (
    ConfigurationLimit,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    UndefinedObject,
    hidden_run,
)
from cerebro_plpy.limits import EPOCHS
from cerebro_plpy.run.log.run_log import Command
from cerebro_plpy.run.loop.budget import Budget
from cerebro_plpy.run.loop.search import Search
from cerebro_plpy.run.loop.stopping import Endings
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, has_begun_epoch

REFUSALS = (
    ConfigurationLimit,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    UndefinedObject,
)
LISTEN_SECONDS = 0.25
"""So often an orchestrator looks for acts, where visits are shorter."""


class Bounds(NamedTuple):
    """What of a run ends by the clock, which stands still while it is paused; and whose output is
    `written` already.
    """

    budget: Budget
    endings: Endings
    written: Collection[int]


class Steering:
    """The acts of one run."""

    def __init__(self, roster: Roster, search: Search, bounds: Bounds) -> None:
        self._log, self._positions, self._training = roster.log, roster.positions, roster.training
        self._search, self._bounds = search, bounds
        self._heard_at = 0.0
        self._paused_at: float | None = None
        self.first: list[int] = []
        """Configurations that go before all others, the one that was asked for last at the head."""

    @property
    def paused(self) -> bool:
        """Whether no visit may begin."""
        return self._paused_at is not None

    def listen(self) -> None:
        """Take up what was asked since the last time."""
        if time.monotonic() < self._heard_at + LISTEN_SECONDS:
            return
        self._heard_at = time.monotonic()
        acts = self._log.read_commands()
        if (
            self.paused and not acts and not self._log.is_owned()
        ):  # else nothing would tell: a paused run writes nothing
            raise hidden_run(self._log.run_id)
        for act in acts:
            try:
                self._do(act)
            except REFUSALS as refusal:
                self._log.log_command_refused(act, refusal.message)

    def wait(self) -> None:
        """There is nothing to do until somebody acts: the clock stands still."""
        if self._paused_at is None:
            self._pause()

    def _do(self, act: Command) -> None:
        if act.action == "pause_run":
            if not self.paused:
                self._pause()
            self._log.log_command_done(act, None)
        elif act.action == "continue_run":
            self._go_on()
            self._log.log_command_done(act, None)
        elif act.action in ("clone_config", "add_configs", "drill_down"):
            self._search.admit(act)
            self._go_on()  # what is refused changes nothing
        elif act.action == "set_epochs" and act.mst_key is None:
            self._set_all_epochs(act)
        else:
            self._do_to_config(act, self._progress(act))

    def _progress(self, act: Command) -> ConfigProgress:
        key = act.mst_key
        if key is None or key not in self._training:
            raise InvalidParameter(f"the run has no configuration {key} that could be trained")
        if key not in self._positions.progress:
            raise InvalidParameter(f"mst_key {key} has failed")
        return self._positions.progress[key]

    def _do_to_config(self, act: Command, progress: ConfigProgress) -> None:
        key, training = progress.mst_key, self._training[progress.mst_key]
        beyond = act.action == "set_epochs" and self._asked(act) > training.epochs
        if beyond and key in self._bounds.written:
            raise InvalidParameter(f"mst_key {key} is trained, and its output is being written")
        if (
            (training.completed() and not beyond)
            or key in self._bounds.endings.stopped
            or key in self._bounds.written
        ):
            raise InvalidParameter(f"mst_key {key} is not trained any more")
        if training.released:
            raise InvalidParameter(
                f"the state of mst_key {key} was dropped, for which live_states left no room"
            )
        if act.action in ("stop_config", "continue_config") and self._search.awaits(key):
            raise InvalidParameter(
                f"mst_key {key} has not begun: it waits for the state that it is a clone of"
            )
        if act.action == "stop_config":
            if progress.paused or progress.finished:
                raise InvalidParameter(f"mst_key {key} is stopped already")
            self._search.hold(act, progress)
        elif act.action == "continue_config":
            if not (progress.paused or progress.awaits_decision or progress.finished):
                raise InvalidParameter(f"mst_key {key} is being trained")
            begun = progress.waiting_segments and has_begun_epoch(self._positions.plan, progress)
            if begun and training.evaluated:
                raise InvalidParameter(
                    f"mst_key {key} was evaluated in the midst of an epoch, as that of its end"
                )
            if progress.stopping and self._within_epoch(progress):
                raise InvalidParameter(
                    f"mst_key {key} was stopped for good in the midst of an epoch"
                )
            self._go_on()
            self._search.revive(act, progress, training.epochs)
        elif act.action == "set_epochs":
            if progress.stopping:
                raise InvalidParameter(
                    f"mst_key {key} was stopped; cerebro.continue_config lets it go on before"
                )
            self._search.set_epochs(act, {key: self._epochs(act, progress)})
        else:
            if progress.finished:
                raise InvalidParameter(f"mst_key {key} is not trained any more")
            self.first = [key, *(other for other in self.first if other != key)]
            self._search.begin_first(act, progress)

    def _within_epoch(self, progress: ConfigProgress) -> bool:
        """Whether the epoch stays incomplete of a configuration that begins no further visit."""
        plan = self._positions.plan
        return (
            not plan.is_averaging
            and self._search.visits(progress) % len(plan.segments_of(progress.mst_key)) > 0
        )

    def _set_all_epochs(self, act: Command) -> None:
        if self._search.searches:
            raise InvalidParameter(
                "a search decides for how many epochs its configurations are trained: name one"
            )
        progress = self._positions.progress.values()
        written = self._bounds.written
        going_on = [
            each
            for each in progress
            if not (each.finished or each.stopping or each.mst_key in written)
        ]
        if not going_on:
            raise InvalidParameter("no configuration is trained any more")
        self._search.set_epochs(act, {each.mst_key: self._epochs(act, each) for each in going_on})

    def _epochs(self, act: Command, progress: ConfigProgress) -> int:
        """As many epochs as are asked for, or those that a configuration has begun already."""
        asked, plan = self._asked(act), self._positions.plan
        begun = (
            progress.kind == "evaluate"
            or progress.running_segments
            or has_begun_epoch(plan, progress)
        )
        ahead = math.ceil(
            progress.later_visits / len(plan.segments_of(progress.mst_key))
        )  # of a tour that is under way
        return max(asked, progress.epoch + ahead if begun else progress.epoch - 1)

    def _asked(self, act: Command) -> int:
        asked = act.change.get("epochs")
        if type(asked) is not int or not 1 <= asked <= EPOCHS.maximum:
            raise InvalidParameter(f"epochs is {asked!r:.80}; expected 1 to {EPOCHS.maximum}")
        return asked

    def put_off(self, seconds: float) -> None:
        """The run has waited so long: what ends by the clock ends so much later."""
        self._bounds.budget.put_off(seconds)
        self._bounds.endings.put_off(seconds)

    def _pause(self) -> None:
        self._paused_at = time.monotonic()
        self._log.log_paused(True)

    def _go_on(self) -> None:
        if self._paused_at is None:
            return
        seconds = time.monotonic() - self._paused_at
        self._paused_at = None
        self.put_off(seconds)
        self._log.log_paused(False)
