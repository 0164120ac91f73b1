"""A cyclic learning rate that is at its minimum whenever a search compares configs.

Schedules of Keras have a single end, or restart at their top. This one is the cosine with warm
restarts of SGDR (Loshchilov and Hutter, ICLR 2017), as in `CosineDecayRestarts`, with two changes.
Each cycle begins with a rise, as in RealMLP (Holzmueller et al., NeurIPS 2024). The last cycle
ends with the last step, whatever the others are.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import keras

RISE = 0.1
"""Part of a cycle in which the rate rises."""


class CosineCycles(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A rate that rises from 0 to `warmup_target` and falls to 0 again, in cycles.

    After `decay_steps`, further cycles follow, each as long as the last one.

    Args:
        warmup_target: largest rate.
        decay_steps: end of the last cycle; a single cycle needs no other number.
        first_decay_steps: end of the first cycle.
        t_mul: ratio of the ends of consecutive cycles, but for the last one.
        cycles: number of cycles until `decay_steps`.

    Raises:
        ValueError: a cycle does not end after the one before.
    """

    def __init__(
        self,
        warmup_target: float,
        decay_steps: float,
        first_decay_steps: float | None = None,
        t_mul: float = 3.0,
        cycles: int = 1,
        name: str = "CosineCycles",
    ) -> None:
        super().__init__()
        if cycles != int(cycles) or cycles < 1 or (cycles > 1 and first_decay_steps is None):
            raise ValueError(
                f"{name} has cycles {cycles} and first_decay_steps {first_decay_steps}; expected "
                "a whole number, and for more than one the steps of the first"
            )
        count = int(cycles)
        first_end = first_decay_steps or 0.0
        inner_ends = [first_end * t_mul**number for number in range(count - 1)]
        ends = [0.0, *inner_ends, decay_steps]
        if not all(end < next_end for end, next_end in pairwise(ends)):
            raise ValueError(
                f"the cycles of {name} end after steps {ends[1:]}; expected each later than the "
                "one before"
            )
        self.warmup_target = warmup_target
        self.decay_steps = decay_steps
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.cycles = count
        self.name = name

    def __call__(self, step: Any) -> Any:
        """Return the rate at a step, a scalar; steps and ends are compared as float32."""
        ops = keras.ops
        position = ops.cast(step, "float32")
        last_end = ops.cast(self.decay_steps, "float32")
        ends = [*self._compute_inner_ends(), last_end]
        starts = ops.stack([ops.zeros_like(last_end), *ends[:-1]])
        last_length = last_end - starts[-1]
        begin = ops.max(ops.where(starts <= position, starts, 0.0))
        end = ops.min(ops.where(ops.stack(ends) > position, ops.stack(ends), last_end))
        extra_begin = last_end + last_length * ops.floor((position - last_end) / last_length)
        begin = ops.where(position < last_end, begin, extra_begin)
        end = ops.where(position < last_end, end, extra_begin + last_length)
        peak = ops.cast(self.warmup_target, "float32")
        return peak * _scale_rate((position - begin) / (end - begin))

    def _compute_inner_ends(self) -> list[Any]:
        if self.cycles == 1:
            return []
        first_end = keras.ops.cast(self.first_decay_steps, "float32")
        return [first_end * self.t_mul**number for number in range(self.cycles - 1)]

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal schedule."""
        names = ("warmup_target", "decay_steps", "first_decay_steps", "t_mul", "cycles", "name")
        return {name: getattr(self, name) for name in names}


def _scale_rate(fraction: Any) -> Any:
    """Return the rate relative to its maximum, after this fraction of a cycle."""
    ops = keras.ops
    falling = 0.5 * (1.0 + ops.cos(math.pi * (fraction - RISE) / (1.0 - RISE)))
    return ops.where(fraction < RISE, fraction / RISE, falling)
