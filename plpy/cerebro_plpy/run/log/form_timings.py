"""What is known about the speed of a program's forms, on the machines of this run and from earlier
runs.

A trainer decides which form it uses; it measures what nobody has measured yet. What one found, the
others and later runs are told.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sized
from typing import Any, NamedTuple

from cerebro_plpy.trainer_client.process.host_resources import machine_prefix

SHARDED = "sharded"
"""The form of programs that do not fit into the memory of their trainer."""
LANES = {"fused_4": 4, "fused_8": 8, "fused_16": 16, "fused_32": 32}
"""Forms that train several states at once, and how many, in order; they tell nothing of how fast
one trains.
"""
MAX_CORE_LANES = 8
"""More states gain nothing there: their arithmetic then takes longer than what is around it. On a
GPU it does not.
"""
REGULARIZERS = ("L1", "L2", "L1L2")


class TimingKey(NamedTuple):
    """What a timing is valid for: a machine, a program, a batch size, a number of threads."""

    machine: str
    program: str
    batch_size: int
    threads: int


FormTimings = dict[str, dict[str, Any]]  # form to seconds_per_row and compile_seconds


class Timings:
    """Timings by situation and form."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        """`rows`: machine, program, batch size, threads, form, seconds per row (None: it fails), of
        compilation.
        """
        self._known: dict[TimingKey, FormTimings] = {}
        for machine, program, batch_size, threads, form, per_row, compiling in rows:
            found = {"seconds_per_row": per_row, "compile_seconds": compiling}
            self.add(TimingKey(machine, program, batch_size, threads), {form: found})

    def get(self, situation: TimingKey) -> FormTimings:
        """What is known, by form."""
        return self._known.get(situation, {})

    def find_machine(self, framework: str) -> str:
        """How trainers of a framework that timed anything call this machine, those of the last
        version by its name.
        """
        here = machine_prefix(framework)
        return max(
            (each.machine for each in self._known if each.machine.startswith(here)), default=here
        )

    def collect_speeds(
        self, machine: str, program: str, batch_size: int
    ) -> dict[int, dict[str, float]]:
        """Seconds for a row by number of threads and form, on machines whose description begins
        so.
        """
        found: dict[int, dict[str, float]] = {}
        for situation, forms in self._known.items():
            if situation.machine.startswith(machine) and situation[1:3] == (program, batch_size):
                seconds = {
                    f: timing["seconds_per_row"] for f, timing in forms.items() if f not in LANES
                }
                found.setdefault(situation.threads, {}).update(
                    {f: s for f, s in seconds.items() if s is not None}
                )
        return found

    def add(self, situation: TimingKey, found: Mapping[str, Any]) -> None:
        """Remember what a trainer measured."""
        self._known.setdefault(situation, {}).update(found)


def hash_program(program: Mapping[str, Any]) -> str:
    """A name for a program that configs share when they differ in learning rate or regularization
    only.

    >>> def adam(rate): return {"optimizer": {"class_name": "Adam",
    ...     "config": {"learning_rate": rate}}}
    >>> hash_program(adam(0.1)) == hash_program(adam(0.2))
    True
    >>> hash_program(adam(0.1)) == hash_program({})
    False
    """
    text = json.dumps(_without_numbers(program), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def make_compilation_key(program: str, batch_size: int) -> str:
    """The name of what is compiled: a program, by its digest, for batches of one size."""
    return f"{program}/{batch_size}"


def choose_max_lanes(gpus: Sized) -> int:
    """How many states a trainer trains side by side, where it has these GPUs or none."""
    return max(LANES.values()) if gpus else MAX_CORE_LANES


def choose_fused_form(states: int) -> str:
    """The form with the fewest lanes for so many states.

    >>> choose_fused_form(2), choose_fused_form(5)
    ('fused_4', 'fused_8')
    """
    return next(form for form, lanes in LANES.items() if states <= lanes)


def compute_fusion_saving(known: FormTimings, states: int) -> float:
    """Seconds that so many states save of each row where they are trained side by side, by the
    timings of forms.

    >>> timings = {"scan": {"seconds_per_row": 3.0}, "fused_8": {"seconds_per_row": 2.0}}
    >>> round(compute_fusion_saving(timings, 6), 2)
    0.33
    """
    form = choose_fused_form(states)
    found = known.get(form, {}).get("seconds_per_row")
    return (
        find_single_seconds(known) - (math.inf if found is None else found) * LANES[form] / states
    )


def find_single_seconds(known: FormTimings) -> float:
    """Seconds of a row in the fastest form for one state; 0 where none was timed."""
    timed = (each["seconds_per_row"] for name, each in known.items() if name not in LANES)
    return min((float(seconds) for seconds in timed if seconds is not None), default=0.0)


def choose_fusion_size(known: FormTimings, most: int) -> int:
    """How many states to train side by side, so many at most, by the timings of forms."""
    sizes = {most, *(lanes for lanes in LANES.values() if lanes < most)}
    return max(sizes, key=lambda size: size * compute_fusion_saving(known, size))


def _without_numbers(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_numbers(part) for part in node]
    if not isinstance(node, Mapping):
        return node
    if node.get("class_name") in REGULARIZERS:
        return {"class_name": node["class_name"]}
    return {
        key: None if key == "learning_rate" else _without_numbers(part)
        for key, part in node.items()
    }
