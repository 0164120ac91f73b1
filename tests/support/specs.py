"""What a run is asked, for tests that do not come from a call."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.configs.run_spec import FitArguments, Ranking, RunSpec
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.records import fields

NOTHING = FitArguments(**{each.name: None for each in fields(FitArguments)})


def spec_of(
    source: PackedTable, epochs: int, evaluate_epochs: tuple[int, ...], **other: Any
) -> RunSpec:
    """A spec over this table; all that is not named is as a call leaves it."""
    values: dict[str, Any] = {
        "arguments": NOTHING,
        "frequency": epochs,
        "seed": 1,
        "schedule": "rotation",
        "dtype_policy": None,
        "model_arch_table": "models",
        "object_table": None,
        "ranking": Ranking("training", "loss", descending=False),
        "version": "0",
    }
    return RunSpec(
        epochs=epochs,
        evaluate_epochs=evaluate_epochs,
        segments=source.segments,
        source=source.spec(),
        validation=None,
        **{**values, **other},
    )
