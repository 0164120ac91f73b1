"""The arguments of a fit call, and the checks that do not need the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy import limits
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.run_spec import FitArguments, SingleModel
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import SearchRule
from cerebro_plpy.database.call_checks import check_positive
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, NullNotAllowed
from cerebro_plpy.records import fields
from cerebro_plpy.scheduling.planning.run_plan import AVERAGE, AVERAGES, LATE, MOP, TASK
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST, REPLAY

MODULE = "madlib_keras_fit_multiple"
SINGLE_MODULE = "madlib_keras_fit"
SCHEDULES = (LONGEST, "rotation", REPLAY)
AUTO = "auto"
STRATEGIES = {
    AUTO: SCHEDULES,
    MOP: SCHEDULES,
    TASK: (LONGEST,),
    AVERAGE: (LONGEST, REPLAY),
    LATE: (LONGEST, REPLAY),
}
"""The schedules that each strategy allows."""
DTYPE_POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
SINGLE_MODEL_ARGUMENTS = (
    "source_table",
    "model",
    "model_arch_table",
    "model_id",
    "compile_params",
    "fit_params",
    "num_iterations",
    "use_gpus",
    "validation_table",
    "metrics_compute_frequency",
    "warm_start",
    "name",
    "description",
    "object_table",
    "seed",
    "workers",
    "training_metrics",
    "dtype_policy",
    "backend",
    "max_attempts",
    "max_runtime",
    "keep_states",
)
"""Arguments of a call that trains a single model, in the order of the SQL function."""


class RunOptions(NamedTuple):
    """Options of a run that follow from the checked arguments of its call."""

    epochs: int
    frequency: int  # number of epochs between evaluations
    schedule: str  # of visits
    rule: SearchRule | None  # None: all configurations are trained to the last epoch


def get_module_name(arguments: FitArguments) -> str:
    """Return the name of the function that was called, for error messages."""
    if arguments.single:
        return SINGLE_MODULE
    return MODULE


def fill_arguments(values: Mapping[str, Any]) -> FitArguments:
    """Return the arguments of a fit call; those without a value are NULL, other values ignored."""
    return FitArguments(**{field.name: values.get(field.name) for field in fields(FitArguments)})


def make_single_model_arguments(*values: Any) -> FitArguments:
    """Return the arguments of a call that trains a single model.

    Args:
        values: the values of `SINGLE_MODEL_ARGUMENTS`.
    """
    arguments = dict(zip(SINGLE_MODEL_ARGUMENTS, values))
    single = SingleModel(**{field.name: arguments[field.name] for field in fields(SingleModel)})
    return fill_arguments({**arguments, "model_output_table": arguments["model"], "single": single})


def check_arguments(arguments: FitArguments) -> RunOptions:
    """Check the arguments as far as possible without the database; return the run's options."""
    module = get_module_name(arguments)
    limits.check_record("fit", arguments)
    if arguments.single:
        _check_single(arguments.single)
    if arguments.num_iterations is None:
        raise NullNotAllowed(
            f"{module} error: num_iterations is NULL; expected a positive whole number."
        )
    if arguments.num_iterations < 1:
        raise InvalidParameter(
            f"{module}: Number of iterations cannot be < 1.",
            detail=f"Received {arguments.num_iterations}.",
        )
    rule = read_search_rule(
        module, arguments.search, arguments.search_params, arguments.num_iterations
    )
    frequency = _choose_frequency(arguments, arguments.num_iterations, rule)
    schedule = _choose_schedule(arguments)
    check_positive(module, "workers", arguments.workers)
    check_positive(module, "max_attempts", arguments.max_attempts)
    if arguments.feature_budget is not None and arguments.feature_budget < 0:
        raise InvalidParameter(
            f"{module} error: feature_budget is {arguments.feature_budget}; expected MB, or 0 to "
            "store nothing.",
            hint="Leave it out: outputs of frozen layers may then take as much as the packed rows.",
        )
    if arguments.replay_run is not None and schedule != REPLAY:
        raise InvalidParameter(
            f"{module} error: replay_run is {arguments.replay_run}, but schedule is {schedule!r}.",
            hint="Add schedule => 'replay'.",
        )
    _check_names(arguments)
    _check_strategy(arguments, schedule)
    if rule:
        _check_search(arguments, schedule)
    if arguments.strategy in AVERAGES and schedule == LONGEST:
        schedule = AVERAGING
    return RunOptions(arguments.num_iterations, frequency, schedule, rule)


def _choose_schedule(arguments: FitArguments) -> str:
    """Return the schedule of the call, or the default one."""
    if arguments.single:
        return AVERAGING
    if arguments.schedule is None:
        return SCHEDULES[0]
    if arguments.schedule not in SCHEDULES:
        raise InvalidParameter(
            f"{get_module_name(arguments)} error: schedule is {arguments.schedule!r}; expected one "
            f"of {', '.join(SCHEDULES)}."
        )
    return arguments.schedule


def _check_strategy(arguments: FitArguments, schedule: str) -> None:
    """Check that the strategy exists and fits the schedule and the search."""
    module = get_module_name(arguments)
    strategy = arguments.strategy or AUTO
    if strategy not in STRATEGIES:
        raise InvalidParameter(
            f"{module} error: strategy is {strategy!r}; expected one of {', '.join(STRATEGIES)}.",
            hint="Leave strategy out. For one trainer with all cores write workers => 1.",
        )
    if not arguments.single and schedule not in STRATEGIES[strategy]:
        raise InvalidParameter(
            f"{module} error: strategy is {strategy!r}, but schedule is {schedule!r}, by which "
            "configurations hop.",
            hint="Leave one of the two out.",
        )
    if strategy in AVERAGES and arguments.search is not None:
        raise FeatureNotSupported(
            f"{module} error: strategy is {strategy!r}, but search is {arguments.search!r}: a "
            "search decides by what configurations have learned of one segment after another.",
            hint="Leave one of the two out.",
        )


def _check_search(arguments: FitArguments, schedule: str) -> None:
    """Check that a search has metrics and is not part of a replay."""
    module = get_module_name(arguments)
    if schedule == REPLAY:
        raise InvalidParameter(
            f"{module} error: search is {arguments.search!r}, but schedule is 'replay'.",
            hint="Leave search out: a replay repeats what was decided.",
        )
    if not has_metrics(arguments):
        raise InvalidParameter(
            f"{module} error: search is {arguments.search!r}, but there are no metrics to decide "
            "by: training_metrics is false and there is no validation_table.",
            hint="Name a validation_table.",
        )


def _check_single(model: SingleModel) -> None:
    """Check that the call names a model and its compile parameters."""
    for name in ("model_id", "compile_params"):
        if getattr(model, name) is None:
            raise NullNotAllowed(
                f"{name} cannot be NULL",
                hint="Name a model of the architecture table, and give its parameters.",
            )


def _check_names(arguments: FitArguments) -> None:
    """Check that the dtype policy and the framework exist."""
    module = get_module_name(arguments)
    backends = (*frameworks.BACKENDS, frameworks.AUTO)
    if arguments.dtype_policy is not None and arguments.dtype_policy not in DTYPE_POLICIES:
        raise InvalidParameter(
            f"{module} error: dtype_policy is {arguments.dtype_policy!r}; expected one of "
            f"{', '.join(DTYPE_POLICIES)}."
        )
    if arguments.backend is not None and arguments.backend not in backends:
        raise InvalidParameter(
            f"{module} error: backend is {arguments.backend!r}; expected one of"
            f" {', '.join(backends)}."
        )


def _choose_frequency(arguments: FitArguments, iterations: int, rule: SearchRule | None) -> int:
    """Check the metrics frequency; return the number of epochs between evaluations."""
    module = get_module_name(arguments)
    frequency = arguments.metrics_compute_frequency
    if frequency is not None and not 1 <= frequency <= iterations:
        raise InvalidParameter(
            f"{module}: metrics_compute_frequency must be in the range (1 - {iterations}).",
            detail=f"Received {frequency}.",
            hint="Leave it out to compute metrics after the last iteration only.",
        )
    if frequency is not None and not has_metrics(arguments):
        raise InvalidParameter(
            f"{module} error: metrics_compute_frequency is {frequency}, but there are no metrics "
            "to compute: training_metrics is false and there is no validation_table."
        )
    if frequency is None and rule and rule.needs_every_epoch:
        return 1
    return frequency or iterations


def has_metrics(arguments: FitArguments) -> bool:
    """Return True if metrics are computed over any rows."""
    return arguments.training_metrics is not False or arguments.validation_table is not None
