"""Comparison of the calibration of a version with that of a repeated run, to the bit.

The repeated states predict the rows that were held back, and the calibration is fitted again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.models.state_comparison import EQUAL, StateResult
from cerebro_plpy.operations.refit.folds import FoldStates, calibrate_by_folds, predict_folds
from cerebro_plpy.operations.train.holdout_predictions import (
    HoldoutRows,
    Network,
    predict_holdout,
)
from cerebro_plpy.operations.train.model_lineage import Lineage
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows
from cerebro_plpy.preprocessing.scoring.fit_calibration import fit_calibration
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.models.model_versions import Version


@dataclass(frozen=True)
class CalibrationComparison:
    """The calibrations of a version, and the last states of its repeated configurations."""

    context: CallContext
    lineage: Lineage
    group_versions: Mapping[str, Version]  # models of groups, by the group's value
    rows: HoldoutRows
    run_id: int  # the repeated run
    repeated: Mapping[int, StoredState]  # by mst_key

    def compare(self) -> Iterator[StateResult]:
        """Compare the calibrations of models of groups, and then that of the model of all rows.

        A calibration that has nothing that was learned from the rows is not compared: it may not
        have been fitted.
        """
        for group, version in sorted(self.group_versions.items()):
            yield from self._compare(f"calibration of {group}", version, group)
        yield from self._compare("calibration", self.lineage.version, None)

    def _compare(self, name: str, version: Version, group: str | None) -> Iterator[StateResult]:
        configs = self.lineage.all_configs
        keys = {member.mst_key for member in version.members}
        # The members of an ensemble of an older release were joined, and are not known.
        is_joined = group is None and keys != self.lineage.configs.keys()
        calibration = version.before_refit.calibration
        if not calibration.is_fitted or is_joined:
            return
        parts = [
            (self._predict(configs[member.mst_key], group), member.share)
            for member in version.members
        ]
        repeated = _fit_again(self.lineage.train_spec, add_rows(parts))
        yield _make_result(name, calibration, repeated)

    def _predict(self, config: Row, group: str | None) -> ScoredRows:
        """Return the predictions of a repeated configuration for the rows that were held back."""
        version = self.lineage.version
        key = config["mst_key"]
        state_key = f"{self.run_id}/{key}/last"
        network = Network.from_config(
            config, version.recipe, version.classes, state_key, self.repeated[key]
        )
        return predict_holdout(self.context, self.rows, network, group)


def compare_folds(
    context: CallContext, version: Version, rows: PackedTable, folds: FoldStates
) -> StateResult:
    """Compare the calibration by folds of all rows.

    Args:
        rows: all rows, with the buffers of the folds.
        folds: the members that were trained once more without each fold.
    """
    shares = {member.mst_key: member.share for member in version.members}
    predictions = predict_folds(context, rows, folds, shares, math.inf)
    repeated = calibrate_by_folds(folds.train_spec, predictions, shares)
    assert repeated is not None
    return _make_result("calibration of all rows", version.calibration, repeated)


def _make_result(name: str, stored: Calibration, repeated: Calibration) -> StateResult:
    if repeated == stored:
        return StateResult(name, True, EQUAL)
    differences = _list_differences(stored, repeated)
    return StateResult(name, False, f"other values: {', '.join(differences)}")


def _fit_again(train_spec: TrainSpec, rows: ScoredRows) -> Calibration:
    return fit_calibration(train_spec.task, train_spec.metric, rows, train_spec.costs)


def _list_differences(stored: Calibration, repeated: Calibration) -> list[str]:
    """Return the names of the fields that differ.

    >>> _list_differences(Calibration(temperature=2.0), Calibration(threshold=0.25))
    ['temperature', 'threshold']
    """
    pairs = zip(Calibration._fields, stored, repeated)
    return [name for name, value, repeated_value in pairs if value != repeated_value]
