"""Key bindings: pure functions from a key and the state of the keyboard to a command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from cerebro_db.console.keyboard import CLOSED, DOWN, ENTER, ERASE, ESCAPE, UP

HELP = "arrows choose  s stop  c continue  + clone  p pause run  x x cancel run  q quit"
CLONE_PROMPT = "change as JSON (Enter clones, Esc does not): "
CANCEL_WARNING = "x again cancels the run; what it has completed stays"
STEPS = {UP: -1, "k": -1, DOWN: 1, "j": 1}
"""Move of the selection, in lines, by key."""


class Action(StrEnum):
    """Action that a key triggers."""

    STOP = "stop"
    CONTINUE = "continue"
    CLONE = "clone"
    PAUSE_RUN = "pause the run"
    CONTINUE_RUN = "continue the run"
    CANCEL_RUN = "cancel the run"
    QUIT = "quit"


CONFIG_ACTIONS = {"s": Action.STOP, "c": Action.CONTINUE}
"""Actions that concern the selected config, by key."""


@dataclass(frozen=True)
class Command:
    """An action with its arguments."""

    action: Action
    mst_key: int | None = None
    change: Mapping[str, Any] | None = None  # parameters of a clone


@dataclass(frozen=True)
class KeyState:
    """State of the keyboard after a key."""

    selected: int | None = None  # mst_key of the selected config
    change_text: str | None = None  # partly typed change of a clone
    is_cancel_pending: bool = False  # x was the last key
    note: str = ""  # message for the user
    command: Command | None = None  # command of the last key


def select_existing(state: KeyState, configs: Sequence[int]) -> KeyState:
    """Return the state with the first config selected if the selected one does not exist."""
    if state.selected in configs:
        return state
    return replace(state, selected=next(iter(configs), None))


def press_key(state: KeyState, key: str, configs: Sequence[int], is_paused: bool) -> KeyState:
    """Return the state after a key.

    Args:
        configs: mst_keys from top to bottom.
        is_paused: True if the run is paused.
    """
    was_cancel_pending = state.is_cancel_pending
    state = replace(select_existing(state, configs), command=None)
    if key == CLOSED:
        return replace(state, command=Command(Action.QUIT))
    if state.change_text is not None:
        return _edit_change(state, state.change_text, key)
    state = replace(state, is_cancel_pending=False, note="")
    if key in STEPS:
        return replace(state, selected=_move_selection(configs, state.selected, STEPS[key]))
    if key == "x" and was_cancel_pending:
        return replace(state, command=Command(Action.CANCEL_RUN))
    if key == "x":
        return replace(state, is_cancel_pending=True, note=CANCEL_WARNING)
    if key == "+" and state.selected is not None:
        return replace(state, change_text="")
    return replace(state, command=_choose_command(key, state.selected, is_paused))


def _choose_command(key: str, selected: int | None, is_paused: bool) -> Command | None:
    if key == "q":
        return Command(Action.QUIT)
    if key == "p":
        return Command(Action.CONTINUE_RUN if is_paused else Action.PAUSE_RUN)
    if key in CONFIG_ACTIONS and selected is not None:
        return Command(CONFIG_ACTIONS[key], selected)
    return None


def _move_selection(configs: Sequence[int], selected: int | None, step: int) -> int | None:
    if selected is None:
        return None
    return configs[min(max(configs.index(selected) + step, 0), len(configs) - 1)]


def _edit_change(state: KeyState, text: str, key: str) -> KeyState:
    """Handle a key while the change of a clone is typed."""
    if key == ESCAPE:
        return replace(state, change_text=None, note="no clone")
    if key == ERASE:
        return replace(state, change_text=text[:-1])
    if key == ENTER:
        return _clone(replace(state, change_text=None), text)
    if len(key) == 1:
        return replace(state, change_text=text + key)
    return state


def _clone(state: KeyState, text: str) -> KeyState:
    try:
        change = json.loads(text or "{}")
    except ValueError as error:
        return replace(state, note=f"{text!r} is not JSON: {error}")
    if not isinstance(change, dict):
        return replace(state, note=f'{text!r} is no object; write it as {{"lr": 0.01}}')
    return replace(state, note="", command=Command(Action.CLONE, state.selected, change))
