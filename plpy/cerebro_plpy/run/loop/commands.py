"""Users' commands to a live run: each is done or refused between two visits, and logged as such.

A command is data. A user writes a row by their own rights, and the run reads it in a session of its
owner. The effect on a configuration is a decision like those of a search, committed together with
the command's own row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cerebro_plpy.database.call_status import PAUSED, TRAINING
from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.errors import (
    ConfigurationLimit,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    UndefinedObject,
    hidden_run,
)
from cerebro_plpy.run.log.step_log import Command
from cerebro_plpy.run.loop.requested_epochs import check_room, choose_epochs, read_epochs
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.search import enter_search, number_decisions, report_decisions
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.events import CommandReceived
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, has_begun_epoch
from cerebro_plpy.scheduling.search.promotion_rules import Action, Decision
from cerebro_plpy.scheduling.search.search_state import DecisionBatch

REFUSALS = (
    ConfigurationLimit,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    UndefinedObject,
)
POLL_SECONDS = 0.25
"""A run looks for commands this often at most."""


class CommandReader:
    """Reads the commands to one run from its log."""

    def __init__(self) -> None:
        self._read_at = 0.0

    def read(self, run: Run) -> Sequence[CommandReceived]:
        """Return the new commands.

        Raises:
            UndefinedObject: the paused run belongs to somebody else now.
        """
        if time.monotonic() < self._read_at + POLL_SECONDS:
            return ()
        self._read_at = time.monotonic()
        commands = run.log.read_commands()
        # A paused run writes nothing, so nothing else would show that it has another owner.
        if run.state.is_paused and not commands and not run.log.is_owned():
            raise hidden_run(run.log.run_id)
        return [CommandReceived(command) for command in commands]


def on_command_received(run: Run, event: CommandReceived) -> Iterator[Step]:
    """Do or refuse a command."""
    try:
        yield from do_command(run, event.command)
    except REFUSALS as refusal:
        yield Step(log=[run.log.log_command_refused(event.command, refusal.message)])


def do_command(run: Run, command: Command) -> Iterator[Step]:
    """Do a command.

    Raises:
        CerebroError: one of REFUSALS, before any step.
    """
    if command.action == "pause_run":
        if not run.state.is_paused:
            yield pause(run)
        yield Step(log=run.log.log_command_done(command, None))
    elif command.action == "continue_run":
        yield resume(run)
        yield Step(log=run.log.log_command_done(command, None))
    elif command.action in ("clone_config", "add_configs", "drill_down"):
        yield add_configs(run, command)
        yield resume(run)
    elif command.action == "set_epochs" and command.mst_key is None:
        yield set_all_epochs(run, command)
    else:
        yield from do_config_command(run, command)


def pause(run: Run) -> Step:
    """Return the step that pauses the run; its clock stands still."""
    return Step(
        log=[run.log.log_paused(True)],
        changes=[partial(run.state.pause)],
        notes=[partial(run.context.enter_phase, PAUSED)],
    )


def resume(run: Run) -> Step:
    """Return the step that continues a paused run."""
    paused_at = run.state.paused_at
    if paused_at is None:
        return Step()
    seconds = time.monotonic() - paused_at
    return Step(
        log=[run.log.log_paused(False)],
        changes=[partial(run.state.resume, seconds)],
        notes=[
            partial(run.context.exclude_wait, seconds),
            partial(run.context.enter_phase, TRAINING),
        ],
    )


def do_config_command(run: Run, command: Command) -> Iterator[Step]:
    """Do a command to one configuration."""
    state = run.state
    key = command.mst_key
    if key is None or key not in state.configs:
        raise InvalidParameter(f"the run has no configuration {key} that could be trained")
    if key not in state.progress:
        raise InvalidParameter(f"mst_key {key} has failed")
    progress = state.progress[key]
    check_trainable(run, command, key)
    if command.action == "stop_config":
        yield stop_config(run, command, progress)
    elif command.action == "continue_config":
        check_continuable(state, progress)
        yield resume(run)
        yield continue_config(run, command, progress)
    elif command.action == "set_epochs":
        if progress.stopping:
            raise InvalidParameter(
                f"mst_key {key} was stopped; cerebro.continue_config lets it go on before"
            )
        yield set_epochs(run, command, {key: choose_epochs(state, command, progress)})
    else:
        yield prioritize(run, command, progress)


def check_trainable(run: Run, command: Command, key: int) -> None:
    """Check that a configuration is still trained, or may be trained for more epochs."""
    state = run.state
    config = state.configs[key]
    is_extended = command.action == "set_epochs" and read_epochs(command) > config.epochs
    is_written = key in run.reporter.trained
    if is_extended and is_written:
        raise InvalidParameter(f"mst_key {key} is trained, and its output is being written")
    if (config.is_completed and not is_extended) or key in state.stopped or is_written:
        raise InvalidParameter(f"mst_key {key} is not trained any more")
    if is_extended:
        check_room(command, [config])
    if config.released:
        raise InvalidParameter(
            f"the state of mst_key {key} was dropped, for which live_states left no room"
        )
    if command.action in ("stop_config", "continue_config") and key in state.waiting:
        raise InvalidParameter(
            f"mst_key {key} has not begun: it waits for the state that it is a clone of"
        )


def check_continuable(state: RunState, progress: ConfigProgress) -> None:
    """Check that a configuration was stopped, at a place from where it can continue."""
    key = progress.mst_key
    if not (progress.paused or progress.awaits_decision or progress.finished):
        raise InvalidParameter(f"mst_key {key} is being trained")
    has_begun = progress.waiting_segments and has_begun_epoch(state.plan, progress)
    if has_begun and state.configs[key].is_evaluated:
        raise InvalidParameter(
            f"mst_key {key} was evaluated in the midst of an epoch, as that of its end"
        )
    if progress.stopping and ends_mid_epoch(state, progress):
        raise InvalidParameter(f"mst_key {key} was stopped for good in the midst of an epoch")


def ends_mid_epoch(state: RunState, progress: ConfigProgress) -> bool:
    """Return True if the epoch of a configuration that begins no visit stays incomplete."""
    segments = len(state.plan.segments_of(progress.mst_key))
    return not state.plan.is_averaging and state.count_visits(progress) % segments > 0


def stop_config(run: Run, command: Command, progress: ConfigProgress) -> Step:
    """Return the step that lets a user stop a configuration, which can be continued."""
    key = progress.mst_key
    if progress.paused or progress.finished:
        raise InvalidParameter(f"mst_key {key} is stopped already")
    reason = f"stopped by {command.actor}"
    decision = Decision(key, "hold", run.state.max_epoch_of(progress), reason)
    return log_command(
        run,
        command,
        [decision],
        visits=run.state.count_visits(progress),
        changes=[partial(run.state.pause_config, key)],
    )


def continue_config(run: Run, command: Command, progress: ConfigProgress) -> Step:
    """Return the step that lets a configuration train on, whatever its metrics are."""
    key = progress.mst_key
    epochs = run.state.configs[key].epochs
    decision = Decision(key, "continue", epochs, f"continued by {command.actor}")
    return log_command(
        run,
        command,
        [decision],
        visits=run.state.count_visits(progress),
        changes=[partial(run.state.continue_config, key, epochs)],
    )


def prioritize(run: Run, command: Command, progress: ConfigProgress) -> Step:
    """Return the step that lets a configuration go first, even if its rule still delays it."""
    key = progress.mst_key
    if progress.finished:
        raise InvalidParameter(f"mst_key {key} is not trained any more")
    decisions: list[Decision] = []
    changes: list[Effect] = [partial(run.state.prioritize, key)]
    if run.search and not run.search.max_epochs[key] and not progress.paused:
        epoch = run.search.rule.decision_epochs[0]
        decisions.append(Decision(key, "start", epoch, f"to go first, by {command.actor}"))
        changes.append(partial(run.state.set_max_epoch, key, epoch))
    visits = run.state.count_visits(progress)
    return log_command(run, command, decisions, visits=visits, changes=changes)


def set_all_epochs(run: Run, command: Command) -> Step:
    """Return the step that sets the epochs of all configurations that are still trained."""
    if run.search:
        raise InvalidParameter(
            "a search decides for how many epochs its configurations are trained: name one"
        )
    trained = [
        progress
        for progress in run.state.progress.values()
        if not (progress.finished or progress.stopping or progress.mst_key in run.reporter.trained)
    ]
    if not trained:
        raise InvalidParameter("no configuration is trained any more")
    check_room(command, [run.state.configs[progress.mst_key] for progress in trained])
    epochs = {progress.mst_key: choose_epochs(run.state, command, progress) for progress in trained}
    return set_epochs(run, command, epochs)


def set_epochs(run: Run, command: Command, epochs: Mapping[int, int]) -> Step:
    """Return the step that sets the epochs of configurations, beyond those of the run if needed.

    Args:
        epochs: the last epoch by mst_key.
    """
    state = run.state
    last = max(epochs.values())
    reason = f"epochs said by {command.actor}"
    log: list[Statement] = []
    decisions: list[Decision] = []
    changes: list[Effect] = []
    if last > state.plan.epochs:
        log.append(run.log.log_epochs(last))
        evaluate_epochs = run.request.spec.list_evaluations_until(last)
        changes.append(partial(state.grow_plan, last, evaluate_epochs))
        decisions += keep_other_epochs(state, epochs)
    for key, epoch in epochs.items():
        action: Action = "promote" if state.configs[key].is_completed else "continue"
        decisions.append(Decision(key, action, epoch, reason))
        if state.progress[key].paused:
            decisions.append(Decision(key, "hold", epoch, f"{reason}, while it was stopped"))
        changes += [
            partial(state.evaluate_after, epoch),
            partial(state.set_epochs, key, epoch),
            partial(state.extend, key, epoch),
        ]
    completed = [
        run.log.log_config_completed(key)
        for key, epoch in epochs.items()
        if not state.progress[key].finished and state.configs[key].is_completed_after(epoch)
    ]
    step = log_command(run, command, decisions, log=log, changes=changes)
    return step._replace(log=[*step.log, *completed])


def keep_other_epochs(state: RunState, epochs: Mapping[int, int]) -> list[Decision]:
    """Return decisions that let configurations keep their last epoch when the run gets more."""
    last = state.plan.epochs
    return [
        Decision(key, "continue", last, "it keeps its epochs")
        for key, progress in state.progress.items()
        if progress.max_epoch is None
        and not (progress.stopping or progress.paused or key in epochs)
    ]


def add_configs(run: Run, command: Command) -> Step:
    """Return the step that adds configurations.

    The rule decides on them. If it takes no more, they train to the last epoch. A clone goes first,
    as a configuration does that a user has prioritized.
    """
    is_clone = command.action == "clone_config"
    additions = run.sources.clone(command) if is_clone else run.sources.add(command)
    max_epoch = 0
    if run.search is None or not run.search.rule.accepts_new_configs:
        max_epoch = run.request.spec.epochs
    elif is_clone:
        max_epoch = run.search.rule.decision_epochs[0]
    decisions: list[Decision] = []
    if max_epoch:
        decisions = [
            Decision(config.mst_key, "start", max_epoch, f"added by {command.actor}")
            for config in additions.configs
        ]
    changes = [*additions.changes, *enter_search(run, additions.configs, max_epoch)]
    for config in additions.configs:
        changes.append(partial(run.state.note_request, config.mst_key))
        if is_clone:
            changes.append(partial(run.state.prioritize, config.mst_key))
    return log_command(run, command, decisions, log=additions.log, changes=changes)


def log_command(
    run: Run,
    command: Command,
    decisions: Sequence[Decision],
    *,
    visits: int | None = None,
    log: Sequence[Statement] = (),
    changes: Sequence[Effect] = (),
) -> Step:
    """Return the step of a command with all that it decides.

    Args:
        visits: visits of its configuration so far.
        log: statements that precede the command's own.
    """
    rows = number_decisions(run, DecisionBatch(None, tuple(decisions)))
    overrides = []
    if run.search:
        overrides = [
            partial(run.search.override, decision, command.action) for decision in decisions
        ]
    return Step(
        log=[*log, *run.log.log_command_done(command, visits, rows)],
        changes=[*changes, partial(run.state.count_decisions, len(rows)), *overrides],
        notes=report_decisions(run, rows),
    )
