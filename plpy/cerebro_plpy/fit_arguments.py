"""The arguments of a fit call, and what can be said of them without a look at the database."""

from __future__ import annotations

from dataclasses import dataclass

from cerebro_plpy import backends
from cerebro_plpy.checks import check_positive
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed

MODULE = "madlib_keras_fit_multiple"
SCHEDULES = ("longest", "rotation", "replay")
MAX_ATTEMPTS = 3
DTYPE_POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


@dataclass(frozen=True)
class FitArguments:
    """The arguments of a fit call as they came, None for NULL."""

    source_table: str | None
    model_output_table: str | None
    model_selection_table: str | None
    num_iterations: int | None
    use_gpus: bool | None
    validation_table: str | None
    metrics_compute_frequency: int | None
    warm_start: bool | None
    name: str | None
    description: str | None
    use_caching: bool | None
    seed: int | None
    schedule: str | None
    workers: int | None
    replay_run: int | None
    training_metrics: bool | None
    dtype_policy: str | None
    backend: str | None
    max_attempts: int | None
    max_runtime: str | None
    keep_states: bool | None


def check_arguments(given: FitArguments) -> tuple[int, int, str]:
    """Number of epochs, metrics frequency and schedule, checked."""
    if given.num_iterations is None:
        raise NullNotAllowed(f"{MODULE} error: num_iterations is NULL; expected a positive whole number.")
    if given.num_iterations < 1:
        raise InvalidParameter(
            f"{MODULE}: Number of iterations cannot be < 1.", detail=f"Received {given.num_iterations}."
        )
    frequency = _check_frequency(given, given.num_iterations)
    schedule = given.schedule if given.schedule is not None else SCHEDULES[0]
    if schedule not in SCHEDULES:
        raise InvalidParameter(f"{MODULE} error: schedule is {schedule!r}; expected one of {', '.join(SCHEDULES)}.")
    check_positive(MODULE, "workers", given.workers)
    check_positive(MODULE, "max_attempts", given.max_attempts)
    if given.replay_run is not None and schedule != "replay":
        raise InvalidParameter(
            f"{MODULE} error: replay_run is {given.replay_run}, but schedule is {schedule!r}.",
            hint="Add schedule => 'replay'.",
        )
    if given.dtype_policy is not None and given.dtype_policy not in DTYPE_POLICIES:
        raise InvalidParameter(
            f"{MODULE} error: dtype_policy is {given.dtype_policy!r}; expected one of {', '.join(DTYPE_POLICIES)}."
        )
    if given.backend is not None and given.backend not in (*backends.BACKENDS, backends.AUTO):
        raise InvalidParameter(
            f"{MODULE} error: backend is {given.backend!r}; expected one of"
            f" {', '.join((*backends.BACKENDS, backends.AUTO))}."
        )
    return given.num_iterations, frequency, schedule


def _check_frequency(given: FitArguments, iterations: int) -> int:
    """After how many epochs metrics are computed."""
    frequency = given.metrics_compute_frequency
    if frequency is not None and not 1 <= frequency <= iterations:
        raise InvalidParameter(
            f"{MODULE}: metrics_compute_frequency must be in the range (1 - {iterations}).",
            detail=f"Received {frequency}.", hint="Leave it out to compute metrics after the last iteration only.",
        )  # fmt: skip
    if frequency is not None and given.training_metrics is False and given.validation_table is None:
        raise InvalidParameter(
            f"{MODULE} error: metrics_compute_frequency is {frequency}, but there are no metrics to compute:"
            " training_metrics is false and there is no validation_table."
        )
    return frequency or iterations
