"""What Python values become before they are arguments of an SQL function, and which arguments there
are.

An option has the name of its SQL argument, so that a misspelt one is found early, and the default
of the SQL function where it is left out; docs/sql-reference.md says what each means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from numpy.typing import NDArray

ClassValues: TypeAlias = "list[str | None] | list[list[str | None]]"


class KerasModel(Protocol):
    """What is needed of a Keras model to store its architecture."""

    def to_json(self) -> str: ...


def encode_architecture(model: KerasModel | Mapping[str, Any] | str) -> str:
    """The JSON text of an architecture; a text is taken as it is, for the server to judge."""
    if isinstance(model, str):
        return model
    if isinstance(model, Mapping):
        return json.dumps(model)
    return model.to_json()


def flatten_weights(weights: Iterable[NDArray[Any]]) -> bytes:
    """The arrays of get_weights() in their order, each flattened in C order, as little-endian
    float32.
    """
    import numpy as np

    return b"".join(np.asarray(array, dtype="<f4").tobytes() for array in weights)


def format_grid(grid: Mapping[str, Any] | str) -> str:
    """A grid as generate_model_configs reads it: a Python literal.

    >>> format_grid({"batch_size": [8, 16], "shuffle": [True]})
    "{'batch_size': [8, 16], 'shuffle': [True]}"
    """
    return grid if isinstance(grid, str) else repr(dict(grid))


def format_parameters(parameters: Mapping[str, Any] | str) -> str:
    """Compile or fit parameters as load_model_selection_table reads them: settings between commas.

    >>> format_parameters({"optimizer": "SGD(learning_rate=0.1)", "metrics": ["mae"]})
    "optimizer='SGD(learning_rate=0.1)', metrics=['mae']"
    """
    if isinstance(parameters, str):
        return parameters
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def encode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options whose dicts are JSON, as arguments of type jsonb take it.

    >>> encode_options({"seed": 1, "space": {"depth": 3}})
    {'seed': 1, 'space': '{"depth": 3}'}
    """
    return {
        name: json.dumps(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def pad_rows(values: ClassValues) -> ClassValues:
    """Class values as an array of SQL, whose rows have equal lengths: None fills up the shorter
    ones.

    >>> pad_rows([["a", "b", "c"], ["no", "yes"]])
    [['a', 'b', 'c'], ['no', 'yes', None]]
    """
    rows = [row for row in values if isinstance(row, list)]
    if len(rows) != len(values):
        return values
    longest = max(map(len, rows), default=0)
    return [row + [None] * (longest - len(row)) for row in rows]


class WindowOptions(TypedDict, total=False):
    """Of cerebro.window_series."""

    stride: int
    label: str
    label_rule: str
    max_gap: str


class PackOptions(TypedDict, total=False):
    """Of training_preprocessor_dl."""

    buffer_size: int
    normalizing_const: float
    num_classes: list[int]
    distribution_rules: str
    n_segments: int
    seed: int
    dependent_type: str
    sample_weight_varname: str


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


class CombineOptions(TypedDict, total=False):
    """Of load_model_selection_table."""

    object_table: str


class TrainingOptions(TypedDict, total=False):
    """What madlib_fit_multiple_model and madlib_fit have in common."""

    use_gpus: bool
    validation_table: str
    metrics_compute_frequency: int
    warm_start: bool
    name: str
    description: str
    seed: int
    workers: int
    training_metrics: bool
    dtype_policy: str
    backend: str
    max_attempts: int
    max_runtime: timedelta
    keep_states: bool


class FitOptions(TrainingOptions, total=False):
    """Of madlib_fit_multiple_model; `schedule` is 'longest', 'rotation', or 'replay' of run
    `replay_run`; `strategy` is 'auto', 'mop', 'task', 'average' or 'late_average'."""

    use_caching: bool
    schedule: str
    replay_run: int
    search: str
    search_params: Mapping[str, int]
    feature_budget: int
    strategy: str


class PlanFitOptions(TypedDict, total=False):
    """Of cerebro.plan_fit: those of madlib_fit_multiple_model that decide how it is executed."""

    use_gpus: bool
    validation_table: str
    metrics_compute_frequency: int
    seed: int
    schedule: str
    workers: int
    replay_run: int
    training_metrics: bool
    dtype_policy: str
    backend: str
    max_runtime: timedelta
    search: str
    search_params: Mapping[str, int]
    feature_budget: int
    strategy: str


class FitOneOptions(TrainingOptions, total=False):
    """Of madlib_fit."""

    object_table: str


class AutomlOptions(TypedDict, total=False):
    """Of madlib_automl; `automl_method` is 'hyperband' or 'hyperopt', `automl_params` for example
    'R=9, eta=3'.
    """

    automl_method: str
    automl_params: str
    random_state: int
    object_table: str
    use_gpus: bool
    validation_table: str
    metrics_compute_frequency: int
    name: str
    description: str
    use_caching: bool


class TrainOptions(TypedDict, total=False):
    """Of cerebro.train and cerebro.plan; `types` and `space` are dicts, `models` names
    templates.
    """

    model: str
    budget: timedelta
    columns: str
    types: Mapping[str, str]
    task: str
    split: str
    weight: str
    models: list[str]
    space: Mapping[str, Any]
    search: str
    search_params: Mapping[str, int]
    metric: str
    configs: int
    epochs: int
    ensemble: int
    start_from: list[str]
    seed: int
    backend: str
    workers: int
    use_gpus: bool
    background: bool
    group_by: str
    min_group_rows: int
    max_cost: float
    max_cpu: timedelta


class ScheduleOptions(TypedDict, total=False):
    """Of hyperband_schedule."""

    eta: int
    skip_last: int


class PredictOptions(TypedDict, total=False):
    """Of madlib_predict.

    `pred_type` is 'prob' (all classes), 'response' (the most probable one), an int n (the n most
    probable) or a float t, 0 <= t < 1 (those more probable than t).
    """

    pred_type: str | int | float
    use_gpus: bool
    mst_key: int


class ByomOptions(TypedDict, total=False):
    """Of madlib_predict_byom; `class_values` has a list for each output where there are several.

    `pred_type` is that of PredictOptions.
    """

    pred_type: str | int | float
    use_gpus: bool
    class_values: ClassValues
    normalizing_const: float
    dependent_count: int
    backend: str


class EvaluateOptions(TypedDict, total=False):
    """Of madlib_evaluate."""

    use_gpus: bool
    mst_key: int
