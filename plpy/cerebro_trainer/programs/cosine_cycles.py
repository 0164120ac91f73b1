"""A learning rate that has fallen whenever somebody compares: Keras' schedules know one end, or
restart at their top.

It is the cosine with warm restarts of SGDR (Loshchilov and Hutter, ICLR 2017), as
`CosineDecayRestarts` has it, but that each cycle begins with a rise, as RealMLP's does (Holzmueller
et al., NeurIPS 2024), and that the last one, whatever the others are, ends with the last step.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import keras

RISING = 0.1
"""Of a cycle, the part in which the rate rises."""


class CosineCycles(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Rises from 0 to `warmup_target` and falls to 0 again, in cycles.

    The first one ends after `first_decay_steps`, the others so many times (`t_mul`) later than the
    one before, and the last of so many `cycles` after `decay_steps`, which is all that a single one
    needs. Who trains on after that goes through others, each as long as the last. ValueError where
    cycles do not end one after the other.
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
            told = f"{name} has cycles {cycles} and first_decay_steps {first_decay_steps}"
            raise ValueError(
                f"{told}; expected a whole number, and for more than one the steps of the first"
            )
        first, number = first_decay_steps or 0.0, int(cycles)
        ends = [0.0, *(first * t_mul**each for each in range(number - 1)), decay_steps]
        if not all(one < other for one, other in pairwise(ends)):
            raise ValueError(
                f"the cycles of {name} end after steps {ends[1:]}; expected each later than the "
                "one before"
            )
        self.warmup_target, self.decay_steps = warmup_target, decay_steps
        self.first_decay_steps, self.t_mul, self.cycles, self.name = (
            first_decay_steps,
            t_mul,
            number,
            name,
        )

    def __call__(self, step: Any) -> Any:
        """The rate at a step, a scalar; steps and ends are compared as float32."""
        ops = keras.ops
        at, last = ops.cast(step, "float32"), ops.cast(self.decay_steps, "float32")
        ends = [*self._inner_ends(), last]
        begins = ops.stack([ops.zeros_like(last), *ends[:-1]])
        length = last - begins[-1]
        begin = ops.max(ops.where(begins <= at, begins, 0.0))
        end = ops.min(ops.where(ops.stack(ends) > at, ops.stack(ends), last))
        again = last + length * ops.floor((at - last) / length)
        begin, end = ops.where(at < last, begin, again), ops.where(at < last, end, again + length)
        return ops.cast(self.warmup_target, "float32") * _share((at - begin) / (end - begin))

    def _inner_ends(self) -> list[Any]:
        if self.cycles == 1:
            return []
        first = keras.ops.cast(self.first_decay_steps, "float32")
        return [first * self.t_mul**number for number in range(self.cycles - 1)]

    def get_config(self) -> dict[str, Any]:
        """What makes another one."""
        names = ("warmup_target", "decay_steps", "first_decay_steps", "t_mul", "cycles", "name")
        return {name: getattr(self, name) for name in names}


def _share(part: Any) -> Any:
    """How much of the highest rate there is after such a part of a cycle."""
    ops = keras.ops
    falling = 0.5 * (1.0 + ops.cos(math.pi * (part - RISING) / (1.0 - RISING)))
    return ops.where(part < RISING, part / RISING, falling)
