"""The scale of a target: it maps numbers to labels near 0, and outputs of networks to numbers.

A network computes in single precision. Numbers that are far from 0 and near to one another differ
in few of its bits or in none, so their common part never enters a network.
"""

from __future__ import annotations

from cerebro_plpy.configs.templates.layers.model_io import Measure
from cerebro_plpy.preprocessing.values.checks import Json, check_record, is_finite, wrong
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.records import asdict, dataclass

FARTHEST_NUMBER = 1e200
"""Numbers of other rows are clipped here, so that differences of them are numbers."""
FARTHEST_LABEL = 1e30
"""Labels of other rows are clipped here, so that float32 can hold them."""


@dataclass(frozen=True)
class TargetScale:
    """The statistics of a target over the training rows.

    The mean is stored as a distance from the smallest number. So the labels of numbers and of the
    same numbers plus a constant have the same bits.
    """

    low: float  # predictions lie between low and high
    high: float
    offset: float  # the mean less the smallest number
    deviation: float

    @property
    def measure(self) -> Measure:
        """The distribution of the labels."""
        return Measure(0.0, 1.0, self.label(self.low), self.label(self.high))

    def label(self, number: float) -> float:
        """Return the label of a number, in the steps of `label_sql`.

        >>> scale = TargetScale(low=10.0, high=40.0, offset=10.0, deviation=5.0)
        >>> [scale.label(number) for number in (10.0, 20.0, 40.0)]
        [-2.0, 0.0, 4.0]
        """
        return (number - self.low - self.offset) / self.deviation

    def label_sql(self, number: Expression) -> Expression:
        """Return the label of a number that is not NULL."""
        bounded = (
            f"least(greatest({number.text}, %s::{DOUBLE}), %s::{DOUBLE})"
            f" - %s::{DOUBLE} - %s::{DOUBLE}"
        )
        text = f"least(greatest(({bounded}) / %s::{DOUBLE}, %s::{DOUBLE}), %s::{DOUBLE})"
        bounds = (-FARTHEST_NUMBER, FARTHEST_NUMBER)
        scale = (self.low, self.offset, self.deviation)
        values = (*number.values, *bounds, *scale, -FARTHEST_LABEL, FARTHEST_LABEL)
        return Expression(text, values)

    def number(self, label: float) -> float:
        """Return the number that a label stands for.

        >>> scale = TargetScale(low=10.0, high=40.0, offset=10.0, deviation=5.0)
        >>> [scale.number(label) for label in (-2.0, 0.0, 4.0)]
        [10.0, 20.0, 40.0]
        """
        return self.low + (self.offset + self.deviation * label)

    def prediction(self, output: float) -> float:
        """Return the number that an output of a network predicts."""
        return min(max(self.number(output), self.low), self.high)

    def to_json(self) -> Json:
        """Return the scale as `from_json` reads it, and as trainers do."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> TargetScale:
        """Read a stored scale; raises DataCorrupted if the value is not one."""
        names = ("low", "high", "offset", "deviation")
        entry = check_record(value, "target_scale", *names)
        if not all(is_finite(entry[name]) for name in names):
            raise wrong("target_scale", value, f"numbers with {', '.join(names)}")
        scale = cls(*(float(entry[name]) for name in names))
        if not (scale.low < scale.high and scale.offset >= 0 and scale.deviation > 0):
            raise wrong("target_scale", value, "low below high, and a deviation above 0")
        return scale
