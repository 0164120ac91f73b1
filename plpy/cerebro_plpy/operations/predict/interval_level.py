"""The argument `level` of predictions: the probability of an interval, and its width."""

from __future__ import annotations

from cerebro_plpy.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    NullNotAllowed,
    ObjectNotReady,
)
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL
from cerebro_plpy.tables.models.granted_versions import GrantedVersion, UsableVersion

LEVEL_HINT = "Leave level out, or write level => 0.9."


def check_level(module: str, version: UsableVersion, level: float | None) -> float:
    """Return the level of a call if a version has intervals of it.

    With the usual level nothing is refused: intervals that are not known are NULL.

    Raises:
        NullNotAllowed: the level is NULL.
        InvalidParameter: it is no probability, the model predicts classes, or it needs more rows.
        InsufficientPrivilege: the model is another role's.
        ObjectNotReady: the version has no errors of rows that were held back.
    """
    if level is None:
        raise NullNotAllowed(f"{module} error: level is NULL.", hint=LEVEL_HINT)
    if level == USUAL_LEVEL:
        return level
    if not 0 < level < 1:
        raise InvalidParameter(
            f"{module} error: level is {level:g}; expected a probability between 0 and 1.",
            hint=LEVEL_HINT,
        )
    if version.task != REGRESSION:
        raise InvalidParameter(
            f"{module} error: level is {level:g}, but model {version.model!r} predicts classes, "
            "which have probabilities in place of intervals.",
            hint="Leave level out.",
        )
    if isinstance(version, GrantedVersion):
        raise InsufficientPrivilege(
            f"{module} error: level is {level:g}, but model {version.model!r} is "
            f"{version.owner}'s, who alone may read the errors that its intervals come from.",
            hint=LEVEL_HINT,
        )
    errors = version.calibration.errors
    if errors is None or not errors.errors:
        raise ObjectNotReady(
            f"{module} error: level is {level:g}, but version {version.version} of model "
            f"{version.model!r} has no errors of rows that were held back.",
            hint="Leave level out, or train the model again.",
        )
    if errors.find_margin(level) is None:
        largest = errors.find_largest_level()
        raise InvalidParameter(
            f"{module} error: level is {level:g}, for which version {version.version} of model "
            f"{version.model!r} has too few rows that were held back: {errors.rows}.",
            hint=f"Write level => {largest}, the largest one that these rows allow.",
        )
    return level


def find_margin(version: UsableVersion, level: float) -> float | None:
    """Return half the width of the intervals of a level; None if it is not known."""
    if level == USUAL_LEVEL or isinstance(version, GrantedVersion):
        return version.margin
    errors = version.calibration.errors
    return None if errors is None else errors.find_margin(level)
