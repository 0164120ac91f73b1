"""Fit parameter strings: how a configuration goes through the data, checked before anything is
trained.
"""

from __future__ import annotations

from cerebro_plpy.configs.params.callbacks import NONE, Callbacks, parse_callbacks
from cerebro_plpy.configs.params.compile_params import refuse_unknown
from cerebro_plpy.configs.params.literals import boolean, finite_number, invalid_value, keywords
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import CLASSES, PARAMETERS
from cerebro_plpy.records import dataclass, field

FIT_KEYS = (
    "batch_size", "epochs", "shuffle", "verbose", "class_weight", "initial_epoch",
    "steps_per_epoch", "callbacks",
)  # fmt: skip
LARGEST_WEIGHT = 2.0**127  # as large a power of two as float32 holds
MAX_CLASSES = CLASSES.most


@dataclass(frozen=True)
class FitParams:
    """How a visit goes through its partition.

    `epochs` counts passes over the partition in one visit from `initial_epoch` on; a pass takes at
    most `steps_per_epoch` batches. `class_weight` has (class, weight) pairs, by class; None where
    none is given. `notices` tells of settings that mean something else here.
    """

    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    verbose: int = 0
    class_weight: tuple[tuple[int, float], ...] | None = None
    initial_epoch: int = 0
    steps_per_epoch: int | None = None
    callbacks: Callbacks = NONE
    notices: tuple[str, ...] = field(default=(), compare=False)

    @property
    def passes(self) -> int:
        """Passes over the partition in one visit."""
        return self.epochs - self.initial_epoch

    def to_json(self) -> dict[str, object]:
        """As the trainer wants it: `epochs` is the number of passes, `class_weight` a list by
        class.

        >>> FitParams(epochs=3, initial_epoch=1, class_weight=((2, 5.0),)).to_json()["class_weight"]
        [1.0, 1.0, 5.0]
        """
        weights = dict(self.class_weight or ())
        return {
            "batch_size": self.batch_size,
            "epochs": self.passes,
            "shuffle": self.shuffle,
            "steps_per_epoch": self.steps_per_epoch,
            "class_weight": [weights.get(i, 1.0) for i in range(max(weights) + 1)]
            if weights
            else None,
        }


def parse_fit_params(text: str | None) -> FitParams:
    """The fit parameters written as `key=value, …`; None and empty text mean the defaults.

    >>> parse_fit_params("epochs=2").epochs
    2

    Raises as `parse_compile_params` does.
    """
    given = keywords(text or "")
    refuse_unknown(given, FIT_KEYS)
    default = FitParams()
    epochs = _positive("epochs", given.get("epochs", default.epochs))
    steps = given.get("steps_per_epoch")
    return FitParams(
        batch_size=_positive("batch_size", given.get("batch_size", default.batch_size)),
        epochs=epochs,
        shuffle=given.get("shuffle") == "batch"
        or boolean("shuffle", given.get("shuffle", default.shuffle)),
        verbose=_verbosity(given.get("verbose", default.verbose)),
        class_weight=_class_weight(given.get("class_weight")),
        initial_epoch=_initial_epoch(given.get("initial_epoch", default.initial_epoch), epochs),
        steps_per_epoch=None if steps is None else _positive("steps_per_epoch", steps),
        callbacks=default.callbacks
        if given.get("callbacks") is None
        else parse_callbacks(given["callbacks"]),
        notices=("shuffle='batch' is shuffle=True: rows change places within a buffer",)
        if given.get("shuffle") == "batch"
        else (),
    )


def _class_weight(value: object) -> tuple[tuple[int, float], ...] | None:
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise invalid_value(
            "class_weight",
            repr(value),
            "a dict of weights by class number, such as {0: 1.0, 1: 2.5}",
        )
    for key in value:
        if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < MAX_CLASSES:
            raise invalid_value(
                "class_weight",
                repr(value),
                f"the numbers of classes as keys, from 0 to at most {MAX_CLASSES - 1}; the first of"
                " <dependent>_class_values has number 0",
            )
    return tuple(sorted((key, _weight(item, value)) for key, item in value.items()))


def _weight(item: object, value: object) -> float:
    number = finite_number(item)
    if number is None or not 0 <= number <= LARGEST_WEIGHT:
        raise invalid_value("class_weight", repr(value), "weights that are numbers of at least 0")
    return float(number)


def _initial_epoch(value: object, epochs: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid_value("initial_epoch", repr(value), "a whole number from 0, less than epochs")
    if value >= epochs:
        raise InvalidParameter(
            f"initial_epoch={value} with epochs={epochs} leaves nothing to train",
            hint="epochs is the number at which to stop, as in Keras: initial_epoch must be less "
            "than epochs.",
        )
    return value


def _positive(key: str, value: object) -> int:
    most = PARAMETERS[key].most
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
        raise invalid_value(key, repr(value), f"a whole number from 1 to {most}")
    return value


def _verbosity(value: object) -> int:
    if value == "auto":
        return FitParams.verbose
    if not isinstance(value, int) or value not in (0, 1, 2):
        raise invalid_value("verbose", repr(value), "0, 1, 2 or 'auto'")
    return int(value)
