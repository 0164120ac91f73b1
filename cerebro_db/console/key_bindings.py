"""What keys mean: from what was pressed before and is pressed now to what is asked of the run.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from cerebro_db.console.keyboard import CLOSED, DOWN, ENTER, ERASE, ESCAPE, UP

HELP = "arrows choose  s stop  c continue  + clone  p pause run  x x cancel run  q quit"
ASKED = "change as JSON (Enter clones, Esc does not): "
SURE = "x again cancels the run; what it has completed stays"


class Action(StrEnum):
    """What a key asks for."""

    STOP = "stop"
    CONTINUE = "continue"
    CLONE = "clone"
    PAUSE_RUN = "pause the run"
    CONTINUE_RUN = "continue the run"
    CANCEL_RUN = "cancel the run"
    QUIT = "quit"


@dataclass(frozen=True)
class Act:
    """An action, and the config that it is about."""

    action: Action
    mst_key: int | None = None
    change: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Pad:
    """What keys have come to: the chosen config, the line that is being typed, whether x was
    pressed once.

    `act` is what the last key asks for, and `note` a word on it.
    """

    chosen: int | None = None
    typed: str | None = None
    sure: bool = False
    note: str = ""
    act: Act | None = None


def settled(pad: Pad, configs: Sequence[int]) -> Pad:
    """The pad with a config that there is: the one that was chosen, else the first."""
    return pad if pad.chosen in configs else replace(pad, chosen=next(iter(configs), None))


def press(pad: Pad, key: str, configs: Sequence[int], paused: bool) -> Pad:
    """The pad after a key, where these are the configs from top to bottom, and the run is paused or
    not.
    """
    now = replace(settled(pad, configs), act=None)
    chosen = now.chosen
    if key == CLOSED:
        return replace(now, act=Act(Action.QUIT))
    if now.typed is not None:
        return _type(now, key)
    now = replace(now, sure=False, note="")
    if key in (UP, "k", DOWN, "j"):
        return replace(now, chosen=_beside(configs, chosen, -1 if key in (UP, "k") else 1))
    if key == "x":
        return (
            replace(now, act=Act(Action.CANCEL_RUN))
            if pad.sure
            else replace(now, sure=True, note=SURE)
        )
    if key == "+" and chosen is not None:
        return replace(now, typed="")
    return replace(now, act=_act(key, chosen, paused))


def _act(key: str, chosen: int | None, paused: bool) -> Act | None:
    if key == "q":
        return Act(Action.QUIT)
    if key == "p":
        return Act(Action.CONTINUE_RUN if paused else Action.PAUSE_RUN)
    action = {"s": Action.STOP, "c": Action.CONTINUE}.get(key)
    return None if action is None or chosen is None else Act(action, chosen)


def _beside(configs: Sequence[int], chosen: int | None, step: int) -> int | None:
    if chosen is None:
        return None
    return configs[min(max(configs.index(chosen) + step, 0), len(configs) - 1)]


def _type(pad: Pad, key: str) -> Pad:
    """A key while the change of a clone is typed."""
    typed = pad.typed or ""
    if key == ESCAPE:
        return replace(pad, typed=None, note="no clone")
    if key == ERASE:
        return replace(pad, typed=typed[:-1])
    if key == ENTER:
        return _cloned(replace(pad, typed=None), typed)
    return replace(pad, typed=typed + key) if len(key) == 1 else pad


def _cloned(pad: Pad, typed: str) -> Pad:
    try:
        change = json.loads(typed or "{}")
    except ValueError as error:
        return replace(pad, note=f"{typed!r} is not JSON: {error}")
    if not isinstance(change, dict):
        return replace(pad, note=f'{typed!r} is no object; write it as {{"learning_rate": 0.01}}')
    return replace(pad, note="", act=Act(Action.CLONE, pad.chosen, change))
