"""What a template is, and how its fields are filled: records without a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Union

from cerebro_plpy.configs.params.keras_names import CYCLES, near_matches
from cerebro_plpy.configs.params.literals import finite_number
from cerebro_plpy.configs.search_space.distributions import Choices, Draw
from cerebro_plpy.configs.search_space.space import compile_text, fit_text
from cerebro_plpy.configs.templates.layers.model_io import Floats, Head, Table
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

Value = Union[int, float, str]
Params = Mapping[str, Value]

AUTO = "auto"
ALIKE = "none"
BATCHES = (1024, 64), (8192, 128), (30_000, 256), (100_000, 512)
"""Up to so many rows, so many rows in a batch; 1024 above."""


@dataclass(frozen=True)
class Field:
    """A parameter of a template.

    `draw` is what a search draws from where nobody said otherwise; a single choice is not searched.
    A value may be a number within `limits`, or one of `words`. `floats` is the default for float
    targets, where it differs, and `calibrated` where probabilities count; with `settled` nothing
    else is drawn there.
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
        other = (
            self.floats
            if isinstance(head, Floats)
            else self.calibrated
            if head.calibrated
            else None
        )
        return self.default if other is None else other

    def checked(self, value: object) -> Value:
        """The value, if the field may have it; else raises InvalidParameter."""
        if isinstance(value, str) and value in self.words:
            return value
        number = finite_number(value)
        if number is None or not self._holds(number):
            raise InvalidParameter(
                f"{self.name} is {value!r}, expected {self._expected()}", hint=f"{self.meaning}."
            )
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

    `architecture` is asked with the value of every field; `optimizer` are the fields, and numbers
    that do not change, by the names of the arguments of AdamW. `starts` are what a search over many
    rows begins with. One with a `kind` is for tables that have an input of its own of that kind.
    """

    name: str
    meaning: str
    fields: tuple[Field, ...]
    architecture: Callable[[Table, Head, Params], str]
    optimizer: Mapping[str, str | float]
    starts: tuple[Params, ...] = ()
    kind: str | None = None

    def params(self, head: Head, rows: int, given: Mapping[str, object]) -> dict[str, Value]:
        """The value of every field for a table of so many training rows; InvalidParameter where one
        cannot be.
        """
        known = {field.name: field for field in self.fields}
        for name in given:
            if name not in known:
                raise InvalidParameter(
                    f"template {self.name} has no field {name!r}",
                    hint=near_matches(str(name), known),
                )
        found = {
            name: field.checked(given[name]) if name in given else field.default_for(head)
            for name, field in known.items()
        }
        if found["batch_size"] == AUTO:
            found["batch_size"] = batch_size(rows)
        return found

    def compile_params(
        self, head: Head, params: Params, metrics: Sequence[str] = (), rates: Rates | None = None
    ) -> str:
        """The compile parameters of a configuration, as text: AdamW, which without any decay is
        Adam.

        Without `rates` its learning rate is constant.
        """
        numbers: dict[str, object] = {
            key: params[told] if isinstance(told, str) else told
            for key, told in self.optimizer.items()
        }
        if rates:
            numbers["learning_rate"] = rates.schedule(numbers["learning_rate"])
        name = "AdamW" if numbers.get("weight_decay") else "Adam"
        taken = {key: value for key, value in numbers.items() if key != "weight_decay" or value}
        return compile_text(
            {"optimizer": name, **taken, "loss": head.loss, "metrics": list(metrics)}
        )

    def fit_params(
        self, params: Params, stopping: str | None = None, counts: Sequence[int] = ()
    ) -> str:
        """The fit parameters of a configuration, as text, with the callback that stops it, if any
        does.

        `counts` are the training rows of each class.
        """
        watching = {} if stopping is None else {"callbacks": _Call(f"[{stopping}]")}
        weights = (
            {"class_weight": balanced(counts)} if counts and params["class_weight"] == AUTO else {}
        )
        return fit_text({"batch_size": params["batch_size"], "epochs": 1, **weights, **watching})


class Cycles(NamedTuple):
    """After how many epochs the first cycle of learning rates ends; each further one of this number
    ends so many times (`factor`) later than the one before it, but the last with the run."""

    first: int
    factor: int
    number: int


class Rates(NamedTuple):
    """How learning rates go over epochs of so many steps: they rise and fall, once or in cycles.

    The states of an optimizer that has seen nothing yet make the first steps the wildest, so rates
    rise first. Where configurations are compared before their last epoch, they have fallen by then:
    while they are high, values tell little of what a configuration comes to.
    """

    steps: int
    epochs: int
    cycles: Cycles | None = None

    def schedule(self, highest: object) -> dict[str, object]:
        """The schedule that rises to such a rate, as compile parameters have it.

        >>> Rates(10, 27, Cycles(1, 3, 4)).schedule(0.1)["config"]
        {'warmup_target': 0.1, 'decay_steps': 270, 'first_decay_steps': 10, 't_mul': 3, 'cycles': 4}
        """
        config: dict[str, object] = {
            "warmup_target": highest,
            "decay_steps": self.steps * self.epochs,
        }
        if self.cycles:
            first, factor, number = self.cycles
            config.update(first_decay_steps=self.steps * first, t_mul=factor, cycles=number)
        return {"class_name": CYCLES, "config": config}


class _Call(str):
    """A call within parameters, which is no text in quotes."""

    def __repr__(self) -> str:
        return str(self)


def balanced(counts: Sequence[int]) -> dict[int, float]:
    """Weights with which all classes count alike, and all rows together as without, by the rows of
    each class.

    >>> balanced([30, 10])
    {0: 0.666667, 1: 2.0}

    Of a class that a group has no rows of nothing is weighed:

    >>> balanced([30, 0, 10])
    {0: 0.666667, 1: 20.0, 2: 2.0}
    """
    share = sum(counts) / max(1, sum(count > 0 for count in counts))
    return {place: round(share / max(1, count), 6) for place, count in enumerate(counts)}


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
