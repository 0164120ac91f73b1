"""`cerebro.verify`: train a model version again and compare the result bit by bit.

The configurations of the version, and those of its groups, are trained again up to the epoch whose
state was kept. They use the packed rows, the visit order and the execution modes of the original
run. Neither the repeated run nor its states remain afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.call_status import REPEATING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.custom_settings import CustomSettings
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Reader, read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import (
    ConfigFailure,
    DatatypeMismatch,
    InsufficientPrivilege,
    InvalidParameter,
    ObjectNotReady,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.input_tables import find_packed_inputs
from cerebro_plpy.operations.live.logged_models import check_unchanged
from cerebro_plpy.operations.models.calibration_comparison import (
    CalibrationComparison,
    compare_folds,
)
from cerebro_plpy.operations.models.deployment import find_own_model, resolve_version
from cerebro_plpy.operations.models.repeated_training import RepeatedTraining
from cerebro_plpy.operations.models.state_comparison import StateComparison, StateResult
from cerebro_plpy.operations.predict.prediction_source import make_reading
from cerebro_plpy.operations.refit.all_rows import PackedRows, pack_all_rows
from cerebro_plpy.operations.refit.folds import FoldStates
from cerebro_plpy.operations.train.holdout_predictions import make_holdout_rows
from cerebro_plpy.operations.train.model_lineage import (
    Lineage,
    RefitLineage,
    find_source_tables,
    read_custom_settings,
    read_lineage,
)
from cerebro_plpy.operations.train.pack_training_data import (
    PackingRequest,
    TrainingData,
    pack_training_data,
)
from cerebro_plpy.packing.packed_table import read_packed
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.state_tables import SPLITS, StoredState, packed_table_name
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.recorded_table import read_with_recipe
from cerebro_plpy.preprocessing.rows.groups import make_group_request, read_groups
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.lifecycle import reserve_run_id
from cerebro_plpy.tables.models.model_versions import read_group_versions
from cerebro_plpy.tables.template_configs import read_head

MODULE = "verify"
SOURCE_ERRORS = (
    UndefinedTable,
    UndefinedColumn,
    DatatypeMismatch,
    InvalidParameter,
    InsufficientPrivilege,
    WrongObjectType,
)
"""Errors that mean that the source has changed, so that it cannot be packed again."""
REPLAY_ERRORS = (ConfigFailure, InvalidParameter, ObjectNotReady)
"""Errors that mean that the run cannot be repeated."""


class Finding(NamedTuple):
    """One row of the result; the fields are the columns of the SQL function."""

    what: str  # "source", "packed rows", "software", or that of a StateResult
    ok: bool
    detail: str


def verify(db: Database, gd: Globals, model: str | None, version: str | int | None) -> list[Row]:
    """Train a version again and report the differences.

    Args:
        version: a number, or "best", "newest" or "previous"; None for the deployed version.

    Returns:
        One row per finding; the last one compares the states, if training was possible.
    """
    check_transaction(db, MODULE)
    db.platform.check_process(MODULE)
    db.status.begin_quietly(REPEATING)
    entry = find_own_model(db, MODULE, model)
    number = entry["deployed"]
    if version is not None:
        number = resolve_version(MODULE, model, version, entry)
    lineage = read_lineage(db, MODULE, model, number)
    catalog = Catalog(db, MODULE)
    custom = _read_custom_settings(catalog, lineage)
    with open_context(db, gd, (), lineage.run_spec.arguments.workers, custom) as context:
        training = RepeatedTraining(
            catalog,
            context,
            lineage.version.run_id,
            lineage.run_spec,
            lineage.all_configs,
            reserve_run_id(db, context),
        )
        try:
            findings = Reproduction(catalog, context, lineage, training).compare()
            return [finding._asdict() for finding in findings]
        finally:
            training.discard()


def _read_custom_settings(catalog: Catalog, lineage: Lineage) -> CustomSettings | None:
    """Return the custom settings under which the source is read; None if the source is missing."""
    try:
        tables = find_source_tables(catalog, lineage)
    except SOURCE_ERRORS:
        return None  # a finding reports it
    return read_custom_settings(catalog.db, lineage, [table for table in tables if table])


@dataclass(frozen=True)
class Reproduction:
    """An attempt to train a version again."""

    catalog: Catalog
    context: CallContext
    lineage: Lineage
    training: RepeatedTraining  # of the configurations that were compared with others

    def compare(self) -> Iterator[Finding]:
        """Compare the source, the packed rows, the software, the calibration and the states."""
        repacked = None
        try:
            repacked = self._pack_source()
            yield self._compare_source(repacked)
        except SOURCE_ERRORS as error:
            yield Finding("source", False, error.message)
        retained, finding = self._compare_packed_rows()
        yield finding
        try:
            rows = self._choose_rows(retained, repacked)
            states = self.training.train(rows, self._run_name)
        except REPLAY_ERRORS as error:
            yield Finding("state", False, f"it cannot be trained again: {error.message}")
            return
        yield self._compare_software()
        comparison = StateComparison(self.context, self.lineage)
        for result in chain(self._compare_calibrations(rows, states), comparison.compare(states)):
            yield Finding(*result)
        if self.lineage.refit is not None:
            yield from self._compare_refit(self.lineage.refit, rows, comparison)

    def _compare_calibrations(
        self, rows: PackedRows, states: Mapping[int, StoredState]
    ) -> Iterator[StateResult]:
        """Compare what was learned from the rows that were held back."""
        validation = rows.inputs.validation
        if validation is None:
            return iter(())
        table = read_packed(self.catalog, self.context.reader, validation)
        comparison = CalibrationComparison(
            context=self.context,
            lineage=self.lineage,
            group_versions=read_group_versions(self.catalog.db, MODULE, self.lineage.version),
            rows=make_holdout_rows(table, self.lineage.train_spec),
            run_id=self.training.run_id,
            repeated=states,
        )
        return comparison.compare()

    @property
    def _run_name(self) -> str:
        return f"verify {self.lineage.version.model}"

    def _compare_refit(
        self, refit: RefitLineage, rows: PackedRows, comparison: StateComparison
    ) -> Iterator[Finding]:
        """Compare the states of members that were trained again on all rows."""
        training = RepeatedTraining(
            self.catalog,
            self.context,
            refit.run_id,
            refit.run_spec,
            refit.configs,
            reserve_run_id(self.catalog.db, self.context),
        )
        train_spec = refit.run_spec.train
        assert train_spec is not None
        folds = len(train_spec.grouping.layouts)
        try:
            all_rows = pack_all_rows(self.catalog, self.context, rows, training.run_id, folds)
            states = training.train(all_rows, self._run_name)
        except REPLAY_ERRORS as error:
            yield Finding("state", False, f"it cannot be trained again: {error.message}")
            return
        else:
            fold_states = FoldStates(training.run_id, train_spec, refit.configs, states)
            yield from self._compare_folds(all_rows, fold_states)
            for result in comparison.compare_refit(states):
                yield Finding(*result)
        finally:
            training.discard()

    def _compare_folds(self, rows: PackedRows, folds: FoldStates) -> Iterator[Finding]:
        """Compare the calibration by folds of all rows, if the version has one."""
        version = self.lineage.version
        if version.holdout_calibration is not None and version.calibration.is_fitted:
            yield Finding(*compare_folds(self.context, version, rows.data.source, folds))

    def _compare_source(self, repacked: TrainingData) -> Finding:
        """Compare the fingerprint of the current rows with that of the original rows."""
        rows = repacked.table.rows + repacked.table.validation_rows
        if self.lineage.fingerprint is None:
            return Finding(
                "source",
                False,
                f"it has {count_nouns(rows, 'row')}; the original ones were not recorded",
            )
        if repacked.fingerprint == self.lineage.fingerprint:
            return Finding("source", True, f"its {count_nouns(rows, 'row', 'is')} unchanged")
        spec = self.lineage.train_spec
        original_rows = spec.split.training_rows + spec.split.validation_rows
        return Finding("source", False, f"its rows have changed: {rows} now, {original_rows} then")

    def _pack_source(self) -> TrainingData:
        """Pack the current rows of the source with the recipe of the version."""
        db = self.catalog.db
        spec = self.lineage.train_spec
        source, holdout = find_source_tables(self.catalog, self.lineage)
        limit = read_wait_limit(db)
        for table in filter(None, (source, holdout)):
            wait_for_source(db, self.context.control, table, limit)

        def read_table(rows: SourceRows) -> RawTable:
            table = read_with_recipe(rows, MODULE, source, spec, holdout)
            if not spec.grouping.layouts:
                return table
            return _add_groups(rows.session, spec, table)

        reading = make_reading(db, source, self.lineage.version)
        segments = None
        if not db.platform.binds_workers:  # as many as the release that packed them chose
            segments = len(self.lineage.run_spec.segments)
        preparation = PackingRequest(source, reading, limit, segments=segments)
        return pack_training_data(
            self.catalog, self.context, read_table, self.training.run_id, preparation
        )

    def _compare_packed_rows(self) -> tuple[PackedRows | None, Finding]:
        """Find the packed tables of the original run, if they were not removed."""
        names = [packed_table_name(self.lineage.version.run_id, side) for side in SPLITS]
        existing = self.context.control.run(sql("features.data_tables"), (names,))
        if len(existing) < len(names):
            return None, Finding(
                "packed rows", False, "they were removed; the rows of the source replace them"
            )
        inputs = find_packed_inputs(self.catalog, *names)
        try:
            data = inputs.read(self.catalog, self.context.reader)
            check_unchanged(
                data.source, self.lineage.run_spec.source, self.lineage.run_spec.segments
            )
        except REPLAY_ERRORS as error:
            return None, Finding("packed rows", False, error.message)
        return PackedRows(inputs, data), Finding("packed rows", True, "they were kept")

    def _choose_rows(
        self, retained: PackedRows | None, repacked: TrainingData | None
    ) -> PackedRows:
        """Return the rows to train on.

        Raises:
            ObjectNotReady: the version depends on something that no longer exists.
        """
        for mst_key, row in self.lineage.all_configs.items():
            if row["warm_started_from"] is not None:
                raise ObjectNotReady(f"mst_key {mst_key} began from a state of another one")
        if retained is not None:
            return retained
        if repacked is not None and self._has_original_buffers(repacked):
            return PackedRows(repacked.inputs, repacked.data)
        message = "the original packed rows are gone"
        if self.lineage.train_spec.source.additions:
            message += "; new ones were packed beside them"
        raise ObjectNotReady(message)

    def _has_original_buffers(self, repacked: TrainingData) -> bool:
        """Return whether each row is in the same buffer as before: the bits depend on it."""
        spec = self.lineage.train_spec
        if spec.source.additions:  # a refresh packed newer rows into buffers of their own
            return False
        if repacked.fingerprint != self.lineage.fingerprint:
            return False
        if repacked.data.source.segments != self.lineage.run_spec.segments:
            return False
        if not (repacked.group_layouts and repacked.table.groups):
            return not spec.grouping.layouts
        layouts = repacked.group_layouts.find_places(repacked.table.groups)
        buffers = {group: layout[:3] for group, layout in layouts.items()}
        return buffers == {group: layout[:3] for group, layout in spec.grouping.layouts.items()}

    def _compare_software(self) -> Finding:
        """Compare the versions of the libraries that trained."""
        text = read_value(self.context.control, sql("provenance.software"), (self.training.run_id,))
        installed = sorted(json.loads(text).items())
        original = self.lineage.software
        differences = [
            f"{library} {version}, then {original.get(library, 'unknown')}"
            for library, version in installed
            if version != original.get(library)
        ]
        if differences:
            return Finding("software", False, "; ".join(differences))
        return Finding("software", True, ", ".join(map(" ".join, installed)))


def _add_groups(reader: Reader, spec: TrainSpec, table: RawTable) -> RawTable:
    """Add the groups of the original run, and the outputs of its networks.

    With both, the buffers of groups have the same sizes as in the original run.
    """
    group_column = spec.grouping.column
    assert group_column is not None
    smallest = min(layout.rows for layout in spec.grouping.layouts.values())
    request = make_group_request(
        table.columns, group_column, smallest, spec.classes, table.recipe.group
    )
    target = table.target._replace(head=read_head(spec))
    return replace(table, target=target, groups=read_groups(reader, MODULE, table.parts, request))
