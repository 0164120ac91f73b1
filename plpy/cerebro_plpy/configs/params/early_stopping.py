"""The callback EarlyStopping: what it watches, in the words of Keras, and the rule that it comes
to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import find_metric, near_matches
from cerebro_plpy.configs.params.literals import boolean, invalid_value, number, whole
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import PARAMETERS
from cerebro_plpy.records import asdict, dataclass
from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule

NAME = "EarlyStopping"
KEYS = (
    "monitor", "min_delta", "patience", "verbose", "mode", "baseline", "restore_best_weights",
    "start_from_epoch",
)  # fmt: skip
MODES = ("auto", "min", "max")
VALIDATION = "val_"


class Watched(NamedTuple):
    """A series of values: the data set that they are of, and the name under which they are
    logged.
    """

    dataset: str
    name: str


@dataclass(frozen=True)
class EarlyStopping:
    """When a configuration is stopped, and whether its model is then that of its best epoch."""

    monitor: str = "val_loss"
    mode: str = "auto"
    restore_best_weights: bool = False
    patience: int = 0
    min_delta: float = 0.0
    baseline: float | None = None
    start_from_epoch: int = 0

    def rule(self, larger: bool) -> EarlyStoppingRule:
        """The rule, where larger values are better, or smaller ones."""
        return EarlyStoppingRule(
            self.patience, self.min_delta, self.baseline, self.start_from_epoch, larger
        )

    @property
    def watched(self) -> Watched:
        """What is watched.

        >>> EarlyStopping().watched
        Watched(dataset='validation', name='loss')
        """
        if self.monitor.startswith(VALIDATION):
            return Watched("validation", _logged(self.monitor[len(VALIDATION) :]))
        return Watched("training", _logged(self.monitor))

    @property
    def text(self) -> str:
        """The call that it stands for.

        >>> EarlyStopping("val_loss", restore_best_weights=True, patience=8).text
        "EarlyStopping(monitor='val_loss', restore_best_weights=True, patience=8)"
        """
        usual = asdict(EarlyStopping())
        told = [
            f"{k}={value!r}"
            for k, value in asdict(self).items()
            if k == "monitor" or value != usual[k]
        ]
        return f"{NAME}({', '.join(told)})"

    def check(self, owner: str, computed: Collection[Watched]) -> None:
        """Raises InvalidParameter unless what it watches is among what is computed."""
        if self.watched not in computed:
            known = [VALIDATION * (each.dataset == "validation") + each.name for each in computed]
            raise InvalidParameter(
                f"{owner} monitors {self.monitor!r}, which this call does not compute.",
                detail=f"It computes: {', '.join(known) or 'nothing'}.",
                hint=f"{near_matches(self.monitor, known)} Names with val_ need a "
                "validation_table.",
            )


def early_stopping(arguments: Mapping[str, object]) -> EarlyStopping:
    """The callback that has these arguments, all of which may be left out."""
    default = EarlyStopping()
    monitor, mode = arguments.get("monitor", default.monitor), arguments.get("mode", default.mode)
    if not isinstance(monitor, str) or not monitor:
        raise invalid_value("monitor", repr(monitor), "a name such as 'val_loss' or 'val_accuracy'")
    if mode not in MODES:
        raise invalid_value("mode", repr(mode), " or ".join(map(repr, MODES)))
    baseline = arguments.get("baseline")
    return EarlyStopping(
        monitor=monitor,
        mode=str(mode),
        restore_best_weights=boolean(
            "restore_best_weights", arguments.get("restore_best_weights", False)
        ),
        patience=_count("patience", arguments),
        min_delta=abs(float(number("min_delta", arguments.get("min_delta", 0.0)))),
        baseline=None if baseline is None else float(number("baseline", baseline)),
        start_from_epoch=_count("start_from_epoch", arguments),
    )


def _logged(name: str) -> str:
    return find_metric(name) or name


def _count(key: str, arguments: Mapping[str, object]) -> int:
    value = whole(key, arguments.get(key, 0))
    most = PARAMETERS[key].most
    if value > most:
        raise invalid_value(key, repr(value), f"a whole number of at most {most}")
    return value
