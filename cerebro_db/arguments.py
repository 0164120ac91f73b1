"""What Python values become before they are arguments of an SQL function, and which arguments there are.

An option has the name of its SQL argument, so that a misspelt one is found early, and the default of the
SQL function where it is left out; docs/sql-reference.md says what each means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray


class KerasModel(Protocol):
    """What is needed of a Keras model to store its architecture."""

    def to_json(self) -> str: ...


def architecture_json(model: KerasModel | Mapping[str, Any] | str) -> str:
    """The JSON text of an architecture; a text is taken as it is, for the server to judge."""
    if isinstance(model, str):
        return model
    if isinstance(model, Mapping):
        return json.dumps(model)
    return model.to_json()


def flat_weights(weights: Iterable[NDArray[Any]]) -> bytes:
    """The arrays of get_weights() in their order, each flattened in C order, as little-endian float32."""
    return b"".join(np.asarray(array, dtype="<f4").tobytes() for array in weights)


def grid_text(grid: Mapping[str, Any] | str) -> str:
    """A grid as generate_model_configs reads it: a Python literal.

    >>> grid_text({"batch_size": [8, 16], "shuffle": [True]})
    "{'batch_size': [8, 16], 'shuffle': [True]}"
    """
    return grid if isinstance(grid, str) else repr(dict(grid))


class PackOptions(TypedDict, total=False):
    """Of training_preprocessor_dl."""

    buffer_size: int
    normalizing_const: float
    num_classes: list[int]
    distribution_rules: str
    n_segments: int
    seed: int
    dependent_type: str


class PackValidationOptions(TypedDict, total=False):
    """Of validation_preprocessor_dl."""

    buffer_size: int
    distribution_rules: str


class ConfigOptions(TypedDict, total=False):
    """Of generate_model_configs."""

    search_type: str
    num_configs: int
    random_state: int
    object_table: str


class FitOptions(TypedDict, total=False):
    """Of madlib_fit_multiple_model."""

    use_gpus: bool
    validation_table: str
    metrics_compute_frequency: int
    warm_start: bool
    name: str
    description: str
    use_caching: bool
    seed: int
    schedule: str
    workers: int


class PredictOptions(TypedDict, total=False):
    """Of madlib_predict; `pred_type` is 'prob', 'response', a number of classes or a least probability."""

    pred_type: str | int | float
    use_gpus: bool
    mst_key: int


class EvaluateOptions(TypedDict, total=False):
    """Of madlib_evaluate."""

    use_gpus: bool
    mst_key: int
