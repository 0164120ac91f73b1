"""Fit parameter strings of a configuration, checked before the training."""

from __future__ import annotations

from cerebro_plpy.configs.params.callbacks import NO_CALLBACKS, Callbacks, parse_callbacks
from cerebro_plpy.configs.params.compile_params import refuse_unknown
from cerebro_plpy.configs.params.literals import (
    invalid_value,
    parse_keywords,
    read_boolean,
    to_finite_number,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import CLASSES, PARAMETERS
from cerebro_plpy.records import dataclass, field

FIT_KEYS = (
    "batch_size",
    "epochs",
    "shuffle",
    "verbose",
    "class_weight",
    "initial_epoch",
    "steps_per_epoch",
    "callbacks",
)
LARGEST_WEIGHT = 2.0**127  # the largest power of two in float32
MAX_CLASSES = CLASSES.maximum


@dataclass(frozen=True)
class FitParams:
    """The fit parameters of a visit, named as in Keras."""

    batch_size: int = 32
    epochs: int = 1  # one more than the last pass over the partition, as passes count from 0
    shuffle: bool = True
    verbose: int = 0
    class_weight: tuple[tuple[int, float], ...] | None = None  # pairs of class and weight, by class
    initial_epoch: int = 0  # number of the first pass
    steps_per_epoch: int | None = None  # largest number of batches in a pass
    callbacks: Callbacks = NO_CALLBACKS
    notices: tuple[str, ...] = field(default=(), compare=False)
    """Notices on settings with another meaning here."""

    @property
    def passes(self) -> int:
        """Return the number of passes over the partition in one visit."""
        return self.epochs - self.initial_epoch

    def to_json(self) -> dict[str, object]:
        """Return the parameters for the trainer.

        `epochs` is the number of passes, and `class_weight` is a list by class.

        >>> FitParams(epochs=3, initial_epoch=1, class_weight=((2, 5.0),)).to_json()["class_weight"]
        [1.0, 1.0, 5.0]
        """
        class_weight = None
        if self.class_weight:
            weights = dict(self.class_weight)
            class_weight = [weights.get(number, 1.0) for number in range(max(weights) + 1)]
        return {
            "batch_size": self.batch_size,
            "epochs": self.passes,
            "shuffle": self.shuffle,
            "steps_per_epoch": self.steps_per_epoch,
            "class_weight": class_weight,
        }


def parse_fit_params(text: str | None) -> FitParams:
    """Parse fit parameters such as `key=value, …`; None and empty text mean the defaults.

    Raises errors as `parse_compile_params`.

    >>> parse_fit_params("epochs=2").epochs
    2
    """
    values = parse_keywords(text or "")
    refuse_unknown(values, FIT_KEYS)
    default = FitParams()
    epochs = _positive("epochs", values.get("epochs", default.epochs))
    batch_size = _positive("batch_size", values.get("batch_size", default.batch_size))
    shuffle = values.get("shuffle", default.shuffle)
    notices: tuple[str, ...] = ()
    if shuffle == "batch":
        shuffle = True
        notices = ("shuffle='batch' is shuffle=True: rows change places within a buffer",)
    steps = values.get("steps_per_epoch")
    callbacks = values.get("callbacks")
    return FitParams(
        batch_size=batch_size,
        epochs=epochs,
        shuffle=read_boolean("shuffle", shuffle),
        verbose=_verbosity(values.get("verbose", default.verbose)),
        class_weight=_class_weight(values.get("class_weight")),
        initial_epoch=_initial_epoch(values.get("initial_epoch", default.initial_epoch), epochs),
        steps_per_epoch=None if steps is None else _positive("steps_per_epoch", steps),
        callbacks=NO_CALLBACKS if callbacks is None else parse_callbacks(callbacks),
        notices=notices,
    )


def _class_weight(value: object) -> tuple[tuple[int, float], ...] | None:
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise invalid_value(
            "class_weight",
            value,
            "a dict of weights by class number, such as {0: 1.0, 1: 2.5}",
        )
    for key in value:
        if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < MAX_CLASSES:
            raise invalid_value(
                "class_weight",
                value,
                f"the numbers of classes as keys, from 0 to at most {MAX_CLASSES - 1}; the first of"
                " <dependent>_class_values has number 0",
            )
    return tuple(sorted((key, _weight(item, value)) for key, item in value.items()))


def _weight(item: object, value: object) -> float:
    number = to_finite_number(item)
    if number is None or not 0 <= number <= LARGEST_WEIGHT:
        raise invalid_value("class_weight", value, "weights that are numbers of at least 0")
    return float(number)


def _initial_epoch(value: object, epochs: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid_value("initial_epoch", value, "a whole number from 0, less than epochs")
    if value >= epochs:
        raise InvalidParameter(
            f"initial_epoch={value} with epochs={epochs} leaves nothing to train",
            hint="epochs is the number at which to stop, as in Keras: initial_epoch must be less "
            "than epochs.",
        )
    return value


def _positive(key: str, value: object) -> int:
    maximum = PARAMETERS[key].maximum
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= maximum:
        raise invalid_value(key, value, f"a whole number from 1 to {maximum}")
    return value


def _verbosity(value: object) -> int:
    if value == "auto":
        return FitParams.verbose
    if not isinstance(value, int) or value not in (0, 1, 2):
        raise invalid_value("verbose", value, "0, 1, 2 or 'auto'")
    return int(value)
