"""Conversion of Python values to arguments of SQL functions, and the options of each function.

An option has the name of its SQL argument. If it is omitted, the default of the SQL function
applies. docs/reference/sql describes each option.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from numpy.typing import NDArray

Parameters: TypeAlias = "Mapping[str, Any] | str"
"""An object, or its text as the SQL function reads it."""
ClassValues: TypeAlias = "list[str | None] | list[list[str | None]]"


class KerasModel(Protocol):
    """The method of a Keras model that returns its architecture."""

    def to_json(self) -> str: ...


def encode_architecture(model: KerasModel | Parameters) -> str:
    """Return an architecture as JSON; a text is returned as it is, and the server checks it."""
    if isinstance(model, str):
        return model
    if isinstance(model, Mapping):
        return json.dumps(model)
    return model.to_json()


def flatten_weights(weights: Iterable[NDArray[Any]]) -> bytes:
    """Return the weights as little-endian float32.

    Args:
        weights: arrays in the order of get_weights(); each is flattened in C order.
    """
    import numpy as np

    return b"".join(np.asarray(array, dtype="<f4").tobytes() for array in weights)


def format_grid(grid: Parameters) -> str:
    """Return a grid as a Python literal, which generate_model_configs reads.

    >>> format_grid({"batch_size": [8, 16], "shuffle": [True]})
    "{'batch_size': [8, 16], 'shuffle': [True]}"
    """
    return grid if isinstance(grid, str) else repr(dict(grid))


def format_parameters(parameters: Parameters) -> str:
    """Return compile or fit parameters as load_model_selection_table reads them.

    >>> format_parameters({"optimizer": "SGD(learning_rate=0.1)", "metrics": ["mae"]})
    "optimizer='SGD(learning_rate=0.1)', metrics=['mae']"
    """
    if isinstance(parameters, str):
        return parameters
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def encode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with dicts encoded as JSON, for arguments of type jsonb.

    >>> encode_options({"seed": 1, "space": {"depth": 3}})
    {'seed': 1, 'space': '{"depth": 3}'}
    """
    return {
        name: json.dumps(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def pad_rows(values: ClassValues) -> ClassValues:
    """Pad class values of several outputs with None to equal lengths, as arrays of SQL require.

    >>> pad_rows([["a", "b", "c"], ["no", "yes"]])
    [['a', 'b', 'c'], ['no', 'yes', None]]
    """
    rows = [row for row in values if isinstance(row, list)]
    if len(rows) != len(values):
        return values
    longest = max(map(len, rows), default=0)
    return [row + [None] * (longest - len(row)) for row in rows]


class WindowOptions(TypedDict, total=False):
    """Options of cerebro.window_series."""

    stride: int
    label: str
    label_rule: str
    max_gap: str


class PackOptions(TypedDict, total=False):
    """Options of training_preprocessor_dl."""

    buffer_size: int
    normalizing_const: float
    num_classes: list[int]
    distribution_rules: str
    n_segments: int
    seed: int
    dependent_type: str
    sample_weight_varname: str


class PackValidationOptions(TypedDict, total=False):
    """Options of validation_preprocessor_dl."""

    buffer_size: int
    distribution_rules: str


class ConfigOptions(TypedDict, total=False):
    """Options of generate_model_configs."""

    search_type: str
    num_configs: int
    random_state: int
    object_table: str


class CombineOptions(TypedDict, total=False):
    """Options of load_model_selection_table."""

    object_table: str


class DataOptions(TypedDict, total=False):
    """Options that all functions share that train on packed tables."""

    use_gpus: bool
    validation_table: str
    metrics_compute_frequency: int


class ExecutionOptions(DataOptions, total=False):
    """Options that affect the execution of madlib_fit_multiple_model and madlib_fit."""

    seed: int
    workers: int
    training_metrics: bool
    dtype_policy: str
    backend: str
    max_runtime: timedelta


class TrainingOptions(ExecutionOptions, total=False):
    """Options that madlib_fit_multiple_model and madlib_fit share."""

    warm_start: bool
    name: str
    description: str
    max_attempts: int
    keep_states: bool


class PlanFitOptions(ExecutionOptions, total=False):
    """Options of cerebro.plan_fit: those of madlib_fit_multiple_model that affect its execution."""

    schedule: str  # 'longest', 'rotation', or 'replay'
    replay_run: int  # id of the run that 'replay' repeats
    search: str
    search_params: Mapping[str, int]
    feature_budget: int
    strategy: str  # 'auto', 'mop', 'task', 'average' or 'late_average'


class FitOptions(TrainingOptions, PlanFitOptions, total=False):
    """Options of madlib_fit_multiple_model."""

    use_caching: bool


class FitOneOptions(TrainingOptions, total=False):
    """Options of madlib_fit."""

    object_table: str


class AutomlOptions(DataOptions, total=False):
    """Options of madlib_automl."""

    automl_method: str  # 'hyperband' or 'hyperopt'
    automl_params: str  # such as 'R=9, eta=3'
    random_state: int
    object_table: str
    name: str
    description: str
    use_caching: bool


class TrainOptions(TypedDict, total=False):
    """Options of cerebro.train and cerebro.plan."""

    model: str
    budget: timedelta
    columns: str
    types: Mapping[str, str]
    task: str
    split: str
    weight: str
    models: list[str]  # names of templates
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
    query: str  # in place of a source
    refit: str  # members that are trained again on all rows: auto, all or none
    costs: Mapping[str, Mapping[str, float]]  # by the class of a row and the predicted class


class ScheduleOptions(TypedDict, total=False):
    """Options of hyperband_schedule."""

    eta: int
    skip_last: int


class PredictOptions(TypedDict, total=False):
    """Options of madlib_predict.

    `pred_type` selects the classes of the prediction:
        'prob': all classes
        'response': the most probable class
        an int n: the n most probable classes
        a float t, 0 <= t < 1: classes with a probability above t
    """

    pred_type: str | int | float
    use_gpus: bool
    mst_key: int


class ByomOptions(TypedDict, total=False):
    """Options of madlib_predict_byom."""

    pred_type: str | int | float  # as in PredictOptions
    use_gpus: bool
    class_values: ClassValues  # a list for each output if the model has several
    normalizing_const: float
    dependent_count: int
    backend: str


class EvaluateOptions(TypedDict, total=False):
    """Options of madlib_evaluate."""

    use_gpus: bool
    mst_key: int
