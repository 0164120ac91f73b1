"""The callback EarlyStopping: the metric that it monitors, and its rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import find_metric, near_matches
from cerebro_plpy.configs.params.literals import (
    invalid_value,
    read_boolean,
    read_number,
    read_whole_number,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import PARAMETERS
from cerebro_plpy.records import asdict, dataclass
from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule

NAME = "EarlyStopping"
KEYS = (
    "monitor",
    "min_delta",
    "patience",
    "verbose",
    "mode",
    "baseline",
    "restore_best_weights",
    "start_from_epoch",
)
MODES = ("auto", "min", "max")
VALIDATION = "val_"


class MonitoredSeries(NamedTuple):
    """A metric over a data set."""

    dataset: str
    name: str  # in the log


@dataclass(frozen=True)
class EarlyStopping:
    """The arguments of the callback, named as in Keras."""

    monitor: str = "val_loss"
    mode: str = "auto"
    restore_best_weights: bool = False
    patience: int = 0
    min_delta: float = 0.0
    baseline: float | None = None
    start_from_epoch: int = 0

    def make_rule(self, larger: bool) -> EarlyStoppingRule:
        """Return the rule.

        Args:
            larger: larger values are better.
        """
        return EarlyStoppingRule(
            patience=self.patience,
            min_delta=self.min_delta,
            baseline=self.baseline,
            start_from_epoch=self.start_from_epoch,
            larger_is_better=larger,
        )

    @property
    def monitored(self) -> MonitoredSeries:
        """Return the monitored series.

        >>> EarlyStopping().monitored
        MonitoredSeries(dataset='validation', name='loss')
        """
        if self.monitor.startswith(VALIDATION):
            return MonitoredSeries("validation", _logged(self.monitor[len(VALIDATION) :]))
        return MonitoredSeries("training", _logged(self.monitor))

    @property
    def text(self) -> str:
        """Return the call as text.

        >>> EarlyStopping("val_loss", restore_best_weights=True, patience=8).text
        "EarlyStopping(monitor='val_loss', restore_best_weights=True, patience=8)"
        """
        defaults = asdict(EarlyStopping())
        arguments = [
            f"{key}={value!r}"
            for key, value in asdict(self).items()
            if key == "monitor" or value != defaults[key]
        ]
        return f"{NAME}({', '.join(arguments)})"

    def check(self, owner: str, computed: Collection[MonitoredSeries]) -> None:
        """Check that the monitored series is computed.

        Raises:
            InvalidParameter: it is not.
        """
        if self.monitored not in computed:
            computed_names = [
                VALIDATION * (series.dataset == "validation") + series.name for series in computed
            ]
            raise InvalidParameter(
                f"{owner} monitors {self.monitor!r}, which this call does not compute.",
                detail=f"It computes: {', '.join(computed_names) or 'nothing'}.",
                hint=f"{near_matches(self.monitor, computed_names)} Names with val_ need a "
                "validation_table.",
            )


def make_early_stopping(arguments: Mapping[str, object]) -> EarlyStopping:
    """Return the callback with these arguments; all are optional.

    Raises:
        InvalidParameter: an argument is invalid.
    """
    default = EarlyStopping()
    monitor = arguments.get("monitor", default.monitor)
    mode = arguments.get("mode", default.mode)
    if not isinstance(monitor, str) or not monitor:
        raise invalid_value("monitor", monitor, "a name such as 'val_loss' or 'val_accuracy'")
    if mode not in MODES:
        raise invalid_value("mode", mode, " or ".join(map(repr, MODES)))
    baseline = arguments.get("baseline")
    return EarlyStopping(
        monitor=monitor,
        mode=str(mode),
        restore_best_weights=read_boolean(
            "restore_best_weights", arguments.get("restore_best_weights", False)
        ),
        patience=_count("patience", arguments),
        min_delta=abs(float(read_number("min_delta", arguments.get("min_delta", 0.0)))),
        baseline=None if baseline is None else float(read_number("baseline", baseline)),
        start_from_epoch=_count("start_from_epoch", arguments),
    )


def _logged(name: str) -> str:
    return find_metric(name) or name


def _count(key: str, arguments: Mapping[str, object]) -> int:
    value = read_whole_number(key, arguments.get(key, 0))
    maximum = PARAMETERS[key].maximum
    if value > maximum:
        raise invalid_value(key, value, f"a whole number of at most {maximum}")
    return value
