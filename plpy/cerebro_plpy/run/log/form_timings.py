"""Timings of execution modes of programs, from the machines of this run and from earlier runs.

A trainer chooses its mode itself, and measures those without a timing. Its timings are passed on to
other trainers and to later runs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sized
from typing import Any, NamedTuple

from cerebro_plpy.trainer_client.process.host_resources import machine_prefix

SHARDED = "sharded"
"""The mode of programs that do not fit into the memory of their trainer."""
LANES = {"fused_4": 4, "fused_8": 8, "fused_16": 16, "fused_32": 32}
"""Modes that train several states at once, with their numbers of states, in ascending order.

Their timings do not show how fast one state trains.
"""
MAX_CORE_LANES = 8
"""More states gain nothing on a core, where their arithmetic then takes longer than its overhead.

On a GPU it does not.
"""
REGULARIZERS = ("L1", "L2", "L1L2")


class TimingKey(NamedTuple):
    """The circumstances for which a timing is valid."""

    machine: str
    program: str  # digest
    batch_size: int
    threads: int


FormTimings = dict[str, dict[str, Any]]
"""Timings by mode: seconds_per_row, which is None if the mode fails, and compile_seconds."""


class Timings:
    """Timings by their circumstances and mode."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        """Create timings from rows of the log.

        Args:
            rows: machine, program, batch size, threads, mode, seconds per row (None if it fails)
                and seconds of compilation.
        """
        self._timings: dict[TimingKey, FormTimings] = {}
        for *key, form, seconds_per_row, compile_seconds in rows:
            timing = {"seconds_per_row": seconds_per_row, "compile_seconds": compile_seconds}
            self.add(TimingKey(*key), {form: timing})

    def get(self, key: TimingKey) -> FormTimings:
        """Return the timings of a program, by mode."""
        return self._timings.get(key, {})

    def find_machine(self, framework: str) -> str:
        """Return the name of this machine in timings of a framework's trainers.

        The name includes versions of software; the last one is taken.
        """
        prefix = machine_prefix(framework)
        machines = (key.machine for key in self._timings)
        return max((name for name in machines if name.startswith(prefix)), default=prefix)

    def collect_speeds(
        self, machine: str, program: str, batch_size: int
    ) -> dict[int, dict[str, float]]:
        """Return the seconds per row by number of threads and mode, for modes that train one state.

        Args:
            machine: beginning of the machine's name.
        """
        speeds: dict[int, dict[str, float]] = {}
        for key, timings in self._timings.items():
            is_same_program = (key.program, key.batch_size) == (program, batch_size)
            if is_same_program and key.machine.startswith(machine):
                speeds.setdefault(key.threads, {}).update(_list_single_seconds(timings))
        return speeds

    def add(self, key: TimingKey, timings: Mapping[str, Any]) -> None:
        """Add the timings that a trainer measured."""
        self._timings.setdefault(key, {}).update(timings)


def hash_program(program: Mapping[str, Any]) -> str:
    """Return a digest that is the same if only learning rates or regularization differ.

    >>> def adam(rate): return {"optimizer": {"class_name": "Adam",
    ...     "config": {"learning_rate": rate}}}
    >>> hash_program(adam(0.1)) == hash_program(adam(0.2))
    True
    >>> hash_program(adam(0.1)) == hash_program({})
    False
    """
    text = json.dumps(_remove_variables(program), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def make_compilation_key(program: str, batch_size: int) -> str:
    """Return the name of compiled code: a program, by its digest, for batches of one size."""
    return f"{program}/{batch_size}"


def choose_max_lanes(gpus: Sized) -> int:
    """Return the number of states that a trainer with these GPUs trains at once, at most."""
    if gpus:
        return max(LANES.values())
    return MAX_CORE_LANES


def choose_fused_form(states: int) -> str:
    """Return the mode with the fewest lanes for a number of states.

    >>> choose_fused_form(2), choose_fused_form(5)
    ('fused_4', 'fused_8')
    """
    return next(form for form, lanes in LANES.items() if states <= lanes)


def compute_fusion_saving(timings: FormTimings, states: int) -> float:
    """Return the seconds saved per row and state if states are trained at once.

    >>> timings = {"scan": {"seconds_per_row": 3.0}, "fused_8": {"seconds_per_row": 2.0}}
    >>> round(compute_fusion_saving(timings, 6), 2)
    0.33
    """
    form = choose_fused_form(states)
    seconds = timings.get(form, {}).get("seconds_per_row")
    if seconds is None:
        seconds = math.inf
    return find_single_seconds(timings) - seconds * LANES[form] / states


def find_single_seconds(timings: FormTimings) -> float:
    """Return the seconds per row of the fastest mode for one state, or 0 without timings."""
    return min(map(float, _list_single_seconds(timings).values()), default=0.0)


def choose_fusion_size(timings: FormTimings, max_states: int) -> int:
    """Return the number of states that should be trained at once."""
    sizes = {max_states, *(lanes for lanes in LANES.values() if lanes < max_states)}
    return max(sizes, key=lambda size: size * compute_fusion_saving(timings, size))


def _list_single_seconds(timings: FormTimings) -> dict[str, float]:
    """Return the seconds per row of the working modes for one state."""
    return {
        form: timing["seconds_per_row"]
        for form, timing in timings.items()
        if form not in LANES and timing["seconds_per_row"] is not None
    }


def _remove_variables(node: Any) -> Any:
    """Remove learning rates and the numbers of regularizers."""
    if isinstance(node, list):
        return [_remove_variables(part) for part in node]
    if not isinstance(node, Mapping):
        return node
    if node.get("class_name") in REGULARIZERS:
        return {"class_name": node["class_name"]}
    parts = {key: _remove_variables(part) for key, part in node.items()}
    if "learning_rate" in parts:
        parts["learning_rate"] = None
    return parts
