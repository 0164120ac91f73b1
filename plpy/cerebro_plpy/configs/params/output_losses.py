"""The losses, weights and metrics of each output of a model.

Keras takes one for all outputs, a list in their order, or a dict by their names. The outputs are
only known from the architecture, so the forms are resolved when a model is combined with its
targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import CompileParams, Metrics, OutputMetrics
from cerebro_plpy.configs.params.keras_names import find_loss
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns


class LoggedMetric(NamedTuple):
    """A metric of a configuration, and its name in the log."""

    logged_name: str
    metric: str


LOSS = LoggedMetric("loss", "loss")


def name_metrics(
    metrics: Metrics, outputs: Sequence[str], dependent: Sequence[str]
) -> tuple[LoggedMetric, ...]:
    """Return the metrics in the order of computation; of several targets, each has its own names.

    >>> name_metrics(("mae",), ["o"], ["y"])
    (LoggedMetric(logged_name='mae', metric='mae'),)
    >>> [metric.logged_name for metric in name_metrics(("mae",), ["o", "p"], ["y", "z"])]
    ['y_mae', 'z_mae']
    """
    return tuple(
        LoggedMetric(name if len(dependent) == 1 else f"{column}_{name}", name)
        for column, names in zip(dependent, list_metrics_by_output(metrics, outputs))
        for name in names
    )


def order_metrics(metrics: Metrics, outputs: Sequence[str]) -> list[str]:
    """Return the metrics as written, output by output; a metric for all outputs only once."""
    shared = _shared_metric(metrics)
    if shared:
        return [shared]
    return [name for names in list_metrics_by_output(metrics, outputs) for name in names]


def list_metrics_by_output(metrics: Metrics, outputs: Sequence[str]) -> list[list[str]]:
    """Return the metrics of each output.

    A single metric in a list is for all outputs; other lists and dicts have an entry per output.
    """
    if len(outputs) == 1:
        entries = metrics.values() if isinstance(metrics, dict) else metrics
        return [[name for entry in entries for name in _names(entry)]]
    if isinstance(metrics, dict):
        return [_names(metrics.get(name)) for name in outputs]
    by_output = metrics
    if len(metrics) < len(outputs):
        by_output = (_shared_metric(metrics),) * len(outputs)
    return [_names(entry) for entry in by_output]


def list_losses_by_output(compiled: CompileParams, outputs: Sequence[str]) -> list[str | None]:
    """Return the loss of each output; None for an output without a loss."""
    loss = compiled.loss
    if isinstance(loss, dict):
        return [loss.get(name) for name in outputs]
    if isinstance(loss, str):
        return [loss] * len(outputs)
    return loss


def expects_class_numbers(loss: str | None) -> bool:
    """Return True if a loss takes class numbers; False for a custom function, as it is unknown.

    >>> expects_class_numbers("sparse_categorical_crossentropy")
    True
    >>> expects_class_numbers("sparse_of_mine"), expects_class_numbers(None)
    (False, False)
    """
    return loss is not None and loss.startswith("sparse_") and find_loss(loss) is not None


def check_outputs(mst_key: int, compiled: CompileParams, name: str, outputs: Sequence[str]) -> None:
    """Check that the losses and metrics of a configuration match the outputs of its model.

    Args:
        name: text for the model in errors.

    Raises:
        InvalidParameter: a list has another length, or a dict has other names.
    """
    losses = {"loss": compiled.loss, "loss_weights": compiled.loss_weights}
    metrics = {"metrics": compiled.metrics, "weighted_metrics": compiled.weighted_metrics}
    for key, value in {**losses, **metrics}.items():
        parameter = f"{key} of mst_key {mst_key}"
        if isinstance(value, Mapping):
            _check_names(parameter, value, name, outputs)
            missing = [output for output in outputs if output not in value]
            if missing and key in losses:
                raise InvalidParameter(
                    f"{parameter} leaves out {_join(missing)}, of the outputs {_join(outputs)} of "
                    f"{name}.",
                    hint="Name all outputs.",
                )
        elif isinstance(value, (list, tuple)) and not _fits(value, key in metrics, len(outputs)):
            raise InvalidParameter(
                f"{parameter} has length {len(value)}, but {name} has "
                f"{count_nouns(len(outputs), 'output')}: {_join(outputs)}.",
                hint="Give an entry for each output, in their order, or a dict with their names "
                "as keys.",
            )


def _check_names(parameter: str, keys: Iterable[str], name: str, outputs: Sequence[str]) -> None:
    unknown = [key for key in keys if key not in outputs]
    if unknown:
        raise InvalidParameter(
            f"{parameter} names {_join(unknown)}, but the outputs of {name} are: {_join(outputs)}.",
            hint="An output has the name of the layer that gives it.",
        )


def _fits(values: Sequence[object], are_metrics: bool, outputs: int) -> bool:
    """Return True if a list matches the number of outputs.

    A list of metrics may also be empty, for all outputs, or for a single output.
    """
    if len(values) == outputs:
        return True
    is_shared = len(values) == 1 and isinstance(values[0], str)
    return are_metrics and (outputs == 1 or not values or is_shared)


def _shared_metric(metrics: Metrics) -> str | None:
    """Return the only metric of a list, which is for every output, if any."""
    if isinstance(metrics, tuple) and len(metrics) == 1 and isinstance(metrics[0], str):
        return metrics[0]
    return None


def _names(entry: OutputMetrics) -> list[str]:
    if entry is None:
        return []
    if isinstance(entry, str):
        return [entry]
    return entry


def _join(names: Sequence[str]) -> str:
    return ", ".join(names)
