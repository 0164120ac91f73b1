"""The specification of a program of boosted trees: its config, its target and its loss."""

from __future__ import annotations

from cerebro_trainer.boosting.model.errors import TreesError
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.nouns import count_nouns

LOSSES = {
    "mean_squared_error": False,
    "mse": False,
    "categorical_crossentropy": True,
}
"""The losses that trees are grown for; true for those of classes."""


def read_spec(program: ProgramSpec) -> TreesSpec:
    """Return the specification of a program.

    Raises:
        ConfigError: a value is wrong, or the target does not fit.
    """
    try:
        spec = TreesSpec.from_architecture(program.architecture)
    except TreesError as error:
        raise ConfigError(error.message, sqlstate=error.sqlstate, hint=error.hint) from error
    if program.dtype_policy is not None or program.cut is not None:
        raise ConfigError(
            "boosted trees have no layers: neither a dtype policy nor a cut", sqlstate="0A000"
        )
    _check_targets(program, spec.units)
    return spec


def _check_targets(program: ProgramSpec, units: int) -> None:
    """Check that the dependent column fits the units."""
    classes = [target.classes for target in program.targets]
    expected_units = 0
    if classes:
        expected_units = classes[0] or 1
    if len(classes) != 1 or expected_units != units or classes[0] == 1:
        raise ConfigError(
            f"the trees have {count_nouns(units, 'unit')}, but the dependent columns have these "
            f"numbers of classes: {classes}",
            sqlstate="42804",
        )


def check_loss(loss: object, units: int) -> None:
    """Check that a loss is the one that trees with so many units are grown for.

    A program that only predicts may name any loss.

    Raises:
        ConfigError: it is another one.
    """
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ConfigError(
            f"boosted trees have no loss {loss!r:.80}", hint=f"Expected one of {', '.join(LOSSES)}."
        )
    if LOSSES[loss] != (units > 1):
        raise ConfigError(
            f"the loss {loss!r} does not fit {count_nouns(units, 'unit')}", sqlstate="42804"
        )
