"""What a template is, what it is made for, and how its fields are filled: records without a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from cerebro_plpy.configs.draws import Choices, Draw
from cerebro_plpy.configs.keras_names import near_matches
from cerebro_plpy.configs.literals import finite_number
from cerebro_plpy.configs.space import compile_text, fit_text
from cerebro_plpy.errors import InvalidParameter

Value = Union[int, float, str]
Params = Mapping[str, Value]

AUTO = "auto"
ALIKE = "none"
FARTHEST = 1e6
"""Centred and scaled numbers beyond it, and infinite ones, count as this; its square is far from float32's end."""
LARGEST_CODE = 1 << 24
"""Inputs are packed as float32, which tells whole numbers apart up to here."""
SCALES = 2.0**-60, 2.0**60
"""Deviations of float targets whose squares float32 holds."""
RISING = 0.1
"""Of all steps, those in which the learning rate rises."""
RARITIES = 8
"""Steps of rarity in which a word becomes half as frequent."""
BATCHES = (1024, 64), (8192, 128), (30_000, 256), (100_000, 512)
"""Up to so many rows, so many rows in a batch; 1024 above."""


@dataclass(frozen=True)
class Wide:
    """A column that is an input of its own: what it is of, and the shape that it has in each row.

    One of whole numbers has `levels` of them, as a category has, of which 0 stands for nothing; others have none. How
    rare they are may be known: a number of each but 0, in steps of which RARITIES make one half as frequent.
    """

    kind: str
    shape: tuple[int, ...]
    levels: int = 0
    rarities: bytes = b""

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1 or not (self.levels == 0 or 2 <= self.levels <= LARGEST_CODE):
            raise InvalidParameter(
                f"an input of its own must have elements, and no or 2 to {LARGEST_CODE} levels; received the shape"
                f" {list(self.shape)} and {self.levels} levels"
            )
        if self.rarities and len(self.rarities) != self.levels - 1:
            raise InvalidParameter(
                f"an input of {self.levels} levels must have the rarity of each but 0; received {len(self.rarities)}"
            )

    @property
    def dtype(self) -> str:
        """The type of the network's input."""
        return "int32" if self.levels else "float32"

    @property
    def elements(self) -> int:
        """How many numbers a row has of it."""
        return math.prod(self.shape)


def wide_name(place: int) -> str:
    """What an input of its own is called, where it is packed and in the network; the first has place 1."""
    return f"wide_{place}"


@dataclass(frozen=True)
class Table:
    """What the recipe of a table gives a model: the columns of its inputs.

    `numbers` are centred and scaled in double precision, and not clipped: the graph does that. Behind them, in the
    same input, come `indicators`: columns that are missing or not, and categories that are columns of their own.
    `cardinalities` are those of the categories that come as numbers, in an input of their own; the first number of
    each, 0, stands for missing and unseen ones. `wide` columns come in an input of their own each, behind these.
    `pieces` are of each number the ends of ranges in which about as many training rows lie, as far as they are known.
    """

    numbers: int = 0
    indicators: int = 0
    cardinalities: tuple[int, ...] = ()
    wide: tuple[Wide, ...] = ()
    pieces: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if min(self.numbers, self.indicators) < 0 or not (self.columns or self.cardinalities or self.wide):
            raise InvalidParameter(
                f"a model needs a column; received {self.numbers} numbers, {self.indicators} indicators and"
                f" {len(self.cardinalities)} categories"
            )
        if not all(2 <= count <= LARGEST_CODE for count in self.cardinalities):
            raise InvalidParameter(
                f"cardinalities of categories must be from 2 to {LARGEST_CODE}, received {list(self.cardinalities)}"
            )

    @property
    def columns(self) -> int:
        """The width of the input of numbers and indicators."""
        return self.numbers + self.indicators

    @property
    def levels(self) -> int:
        """Numbers of all categories together."""
        return sum(self.cardinalities)

    @property
    def elements(self) -> int:
        """How many numbers a row has, of all inputs."""
        return self.columns + len(self.cardinalities) + sum(each.elements for each in self.wide)


@dataclass(frozen=True)
class Classes:
    """A head that gives the probability of each class: two classes have two units too, as one-hot targets have.

    `calibrated` where models are compared by what probabilities are, and not by which is the largest alone.
    """

    count: int
    calibrated: bool = False
    loss = "categorical_crossentropy"

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InvalidParameter(f"classes must be at least 2, received {self.count}")

    @property
    def units(self) -> int:
        return self.count


@dataclass(frozen=True)
class Measure:
    """A float target: its mean and standard deviation, and the range that predictions are clamped to."""

    mean: float
    deviation: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not SCALES[0] <= self.deviation <= SCALES[1]:
            raise InvalidParameter(
                f"a target's standard deviation must be from {SCALES[0]:g} to {SCALES[1]:g}, received {self.deviation}",
                hint="Train on the target divided by a constant. One that has one value needs no model.",
            )
        if not (self.low <= self.high and all(abs(n) <= SCALES[1] for n in (self.low, self.high, self.mean))):
            raise InvalidParameter(
                f"a target's range must be one, and it and its mean within {SCALES[1]:g}; received {self.low} to"
                f" {self.high} around {self.mean}"
            )


@dataclass(frozen=True)
class Floats:
    """A head that gives float targets in their own units."""

    targets: tuple[Measure, ...]
    loss = "mean_squared_error"

    def __post_init__(self) -> None:
        if not self.targets:
            raise InvalidParameter("a model needs a target")

    @property
    def units(self) -> int:
        return len(self.targets)


Head = Union[Classes, Floats]


@dataclass(frozen=True)
class Field:
    """A parameter of a template.

    `draw` is what a search draws from where nobody said otherwise; a single choice is not searched. A value may be
    a number within `limits`, or one of `words`. `floats` is the default for float targets, where it differs, and
    `calibrated` where probabilities count; with `settled` nothing else is drawn there.
    """

    name: str
    meaning: str
    default: Value
    draw: Draw
    limits: tuple[float, float] | None = None
    whole: bool = False
    words: tuple[str, ...] = ()
    floats: Value | None = None
    calibrated: Value | None = None
    settled: bool = False

    def draw_for(self, head: Head) -> Draw:
        """What a search draws from where nobody said otherwise."""
        value = self.default_for(head)
        return Choices((value,)) if self.settled and value != self.default else self.draw

    def default_for(self, head: Head) -> Value:
        """The value where nobody said otherwise."""
        other = self.floats if isinstance(head, Floats) else self.calibrated if head.calibrated else None
        return self.default if other is None else other

    def checked(self, value: object) -> Value:
        """The value, if the field may have it; else raises InvalidParameter."""
        if isinstance(value, str) and value in self.words:
            return value
        number = finite_number(value)
        if number is None or not self._holds(number):
            raise InvalidParameter(f"{self.name} is {value!r}, expected {self._expected()}", hint=f"{self.meaning}.")
        return int(number) if self.whole else number

    def _holds(self, number: float) -> bool:
        within = self.limits is not None and self.limits[0] <= number <= self.limits[1]
        return within and (not self.whole or number == int(number))

    def _expected(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        numbers = [f"{kind} from {self.limits[0]:g} to {self.limits[1]:g}"] if self.limits else []
        return " or ".join([*numbers, *map(repr, self.words)])


@dataclass(frozen=True)
class Template:
    """A family of architectures: what it is called, its fields, and the JSON that they come to.

    `architecture` is asked with the value of every field; `optimizer` are the fields, and numbers that do not change,
    by the names of the arguments of AdamW. `starts` are what a search over many rows begins with. One with a `kind` is
    for tables that have an input of its own of that kind.
    """

    name: str
    meaning: str
    fields: tuple[Field, ...]
    architecture: Callable[[Table, Head, Params], str]
    optimizer: Mapping[str, str | float]
    starts: tuple[Params, ...] = ()
    kind: str | None = None

    def params(self, head: Head, rows: int, given: Mapping[str, object]) -> dict[str, Value]:
        """The value of every field for a table of so many training rows; InvalidParameter where one cannot be."""
        known = {field.name: field for field in self.fields}
        for name in given:
            if name not in known:
                raise InvalidParameter(
                    f"template {self.name} has no field {name!r}", hint=near_matches(str(name), known)
                )
        found = {
            name: field.checked(given[name]) if name in given else field.default_for(head)
            for name, field in known.items()
        }
        if found["batch_size"] == AUTO:
            found["batch_size"] = batch_size(rows)
        return found

    def compile_params(self, head: Head, params: Params, metrics: Sequence[str] = (), steps: int | None = None) -> str:
        """The compile parameters of a configuration, as text; always AdamW, so that configurations share a program.

        Over so many steps in all the learning rate rises and falls; without them it is constant.
        """
        numbers = {key: params[told] if isinstance(told, str) else told for key, told in self.optimizer.items()}
        rates = numbers if steps is None else {**numbers, "learning_rate": warmed(numbers["learning_rate"], steps)}
        return compile_text({"optimizer": "AdamW", **rates, "loss": head.loss, "metrics": list(metrics)})

    def fit_params(
        self, params: Params, monitor: str | None = None, patience: int = 0, counts: Sequence[int] = ()
    ) -> str:
        """The fit parameters of a configuration, as text; with a monitor the state of its best epoch is kept.

        `counts` are the training rows of each class.
        """
        stopping = f"EarlyStopping(monitor={monitor!r}, patience={patience}, restore_best_weights=True)"
        watching = {} if monitor is None else {"callbacks": _Call(f"[{stopping}]")}
        weights = {"class_weight": balanced(counts)} if counts and params["class_weight"] == AUTO else {}
        return fit_text({"batch_size": params["batch_size"], "epochs": 1, **weights, **watching})


class _Call(str):
    """A call within parameters, which is no text in quotes."""

    def __repr__(self) -> str:
        return str(self)


def warmed(rate: Value | float, steps: int) -> dict[str, object]:
    """A schedule of learning rates over so many steps: they rise from 0 for a tenth of them, and fall to 0.

    The states of an optimizer that has seen nothing yet make the first steps the wildest.
    """
    rising = max(1, round(steps * RISING))
    numbers = {"initial_learning_rate": 0.0, "warmup_target": rate, "warmup_steps": rising}
    return {"class_name": "CosineDecay", "config": {**numbers, "decay_steps": max(1, steps - rising)}}


def balanced(counts: Sequence[int]) -> dict[int, float]:
    """Weights with which all classes count alike, and all rows together as without, by the rows of each class.

    >>> balanced([30, 10])
    {0: 0.666667, 1: 2.0}
    """
    rows = sum(counts)
    return {place: round(rows / (len(counts) * max(1, count)), 6) for place, count in enumerate(counts)}


def batch_size(rows: int) -> int:
    """Rows in a batch for a table of so many training rows.

    >>> [batch_size(rows) for rows in (5, 1024, 1025, 10_000, 100_000, 100_001)]
    [64, 64, 128, 256, 512, 1024]
    """
    return next((size for most, size in BATCHES if rows <= most), 1024)


FIT_FIELDS = (
    Field(
        "batch_size",
        f"Rows in a batch; {AUTO!r} goes by the rows of the table",
        AUTO,
        Choices((AUTO,)),
        limits=(1, 2**31 - 1),
        whole=True,
        words=(AUTO,),
    ),
    Field(
        "class_weight",
        f"How much the rows of a class count in training; with {AUTO!r} all classes count alike",
        ALIKE,
        Choices((ALIKE,)),
        words=(ALIKE, AUTO),
    ),
)
"""The same fields in every template."""
