"""What a configuration asks of each output of its model: losses, weights and metrics, in whatever
form.

Keras takes one for all outputs, a list by their order, or a dict by their names. Which outputs
there are, only the architecture tells, so this is found out when a model and its targets come
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import CompileParams, Metrics, OutputMetrics
from cerebro_plpy.configs.params.keras_names import find_loss
from cerebro_plpy.errors import InvalidParameter


class Measured(NamedTuple):
    """A metric of a configuration: the name under which its values are logged, and its own."""

    logged: str
    metric: str


LOSS = Measured("loss", "loss")


def logged_metrics(
    metrics: Metrics, outputs: Sequence[str], dependent: Sequence[str]
) -> tuple[Measured, ...]:
    """The metrics in the order in which a trainer computes them; of several targets each is named
    after its target.

    >>> logged_metrics(("mae",), ["o"], ["y"])
    (Measured(logged='mae', metric='mae'),)
    >>> [found.logged for found in logged_metrics(("mae",), ["o", "p"], ["y", "z"])]
    ['y_mae', 'z_mae']
    """
    return tuple(
        Measured(name if len(dependent) == 1 else f"{column}_{name}", name)
        for column, names in zip(dependent, metrics_of(metrics, outputs))
        for name in names
    )


def in_order(metrics: Metrics, outputs: Sequence[str]) -> list[str]:
    """The metrics as they were given, those of the first output first; one that is for all outputs
    once.
    """
    alone = _for_all(metrics)
    return [alone] if alone else [name for names in metrics_of(metrics, outputs) for name in names]


def metrics_of(metrics: Metrics, outputs: Sequence[str]) -> list[list[str]]:
    """The metrics of each output: the same for all where a list names one alone, else those of its
    place or name.
    """
    if len(outputs) == 1:
        entries = metrics.values() if isinstance(metrics, dict) else metrics
        return [[name for entry in entries for name in _names(entry)]]
    if isinstance(metrics, dict):
        return [_names(metrics.get(name)) for name in outputs]
    every = [_for_all(metrics)] * len(outputs) if len(metrics) < len(outputs) else metrics
    return [_names(entry) for entry in every]


def losses_of(compiled: CompileParams, outputs: Sequence[str]) -> list[str | None]:
    """The loss of each output; None for one that has none."""
    loss = compiled.loss
    if isinstance(loss, dict):
        return [loss.get(name) for name in outputs]
    return [loss] * len(outputs) if isinstance(loss, str) else loss


def wants_numbers(loss: str | None) -> bool:
    """Whether a loss takes numbers of classes; what a custom function takes, its name does not
    tell.

    >>> (wants_numbers("sparse_categorical_crossentropy"), wants_numbers("sparse_of_mine"),
    ...  wants_numbers(None))
    (True, False, False)
    """
    return loss is not None and loss.startswith("sparse_") and find_loss(loss) is not None


def check_outputs(mst_key: int, compiled: CompileParams, name: str, outputs: Sequence[str]) -> None:
    """Raises where a configuration does not name the outputs of its model, which `name` tells, as
    it should.
    """
    every = {"loss": compiled.loss, "loss_weights": compiled.loss_weights}
    some = {"metrics": compiled.metrics, "weighted_metrics": compiled.weighted_metrics}
    for key, value in {**every, **some}.items():
        told = f"{key} of mst_key {mst_key}"
        if isinstance(value, Mapping):
            _check_names(told, value, name, outputs)
            missing = [output for output in outputs if output not in value] if key in every else []
            if missing:
                raise InvalidParameter(
                    f"{told} leaves out {_listed(missing)}, of the outputs {_listed(outputs)} of "
                    f"{name}.",
                    hint="Name all outputs.",
                )
        elif isinstance(value, (list, tuple)) and not _fits(value, key in some, len(outputs)):
            raise InvalidParameter(
                f"{told} has length {len(value)}, but {name} has {len(outputs)} outputs: "
                f"{_listed(outputs)}.",
                hint="Give an entry for each output, in their order, or a dict with their names "
                "as keys.",
            )


def _check_names(told: str, given: Iterable[str], name: str, outputs: Sequence[str]) -> None:
    unknown = [output for output in given if output not in outputs]
    if unknown:
        raise InvalidParameter(
            f"{told} names {_listed(unknown)}, but the outputs of {name} are: {_listed(outputs)}.",
            hint="An output has the name of the layer that gives it.",
        )


def _fits(given: Sequence[object], metrics: bool, outputs: int) -> bool:
    """Whether a list can be for so many outputs; one of metrics may be empty, for all, or for a
    single output.
    """
    for_all = len(given) == 1 and isinstance(given[0], str)
    return len(given) == outputs or (metrics and (outputs == 1 or not given or for_all))


def _for_all(metrics: Metrics) -> str | None:
    """The metric that a list has alone: it is for every output."""
    first = metrics[0] if isinstance(metrics, tuple) and len(metrics) == 1 else None
    return first if isinstance(first, str) else None


def _names(entry: OutputMetrics) -> list[str]:
    return [] if entry is None else [entry] if isinstance(entry, str) else entry


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
