"""`cerebro.refresh`: train the deployed version of a model on the rows that its source has now.

These are the rows that were added since, or the same rows for more epochs. Networks continue from
the weights of the version; boosted trees are grown anew. The recipe stays: neither the encoding of
the columns nor the best configuration is searched again. A refresh therefore takes a small part of
the time that the version took. The new version is deployed by the same rule as any other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from cerebro_plpy import limits
from cerebro_plpy.configs.run_spec import list_metric_epochs
from cerebro_plpy.configs.templates.budget import choose_frequency, choose_training_epochs
from cerebro_plpy.configs.train_spec import BaseVersion, TrainSpec
from cerebro_plpy.database.call_checks import check_positive, check_transaction
from cerebro_plpy.database.call_status import LOOKING
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Reader, read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, transaction
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.source_rows import SourceRows, is_evaluated
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    DatatypeMismatch,
    ObjectNotReady,
    QueryCanceled,
)
from cerebro_plpy.operations import tree_support
from cerebro_plpy.operations.fit.drop_run_tables import drop_packed_tables
from cerebro_plpy.operations.fit.spec_request import make_request
from cerebro_plpy.operations.models import refresh_reports as reports
from cerebro_plpy.operations.models.deployment import find_own_model
from cerebro_plpy.operations.models.refreshed_members import count_previous_epochs, make_models
from cerebro_plpy.operations.predict.prediction_source import make_reading
from cerebro_plpy.operations.refit.refit_terms import RefitTerms
from cerebro_plpy.operations.register.register_version import register_version
from cerebro_plpy.operations.train.incremental_packing import (
    PackedRun,
    can_extend,
    extend_packed_rows,
)
from cerebro_plpy.operations.train.model_lineage import (
    Lineage,
    find_source_tables,
    make_warm_states,
    read_custom_settings,
    read_lineage,
    refuse_groups,
)
from cerebro_plpy.operations.train.pack_training_data import (
    PackingRequest,
    TrainingData,
    drop_after_error,
    pack_training_data,
)
from cerebro_plpy.operations.train.train import SCHEDULE
from cerebro_plpy.operations.train.train_report import report_table
from cerebro_plpy.operations.train_arguments import read_budget
from cerebro_plpy.operations.train_budget import compute_deadline
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.preprocessing.learning.metric_check import check_metric
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable
from cerebro_plpy.preprocessing.learning.recorded_table import Newer, read_with_recipe
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.rows.weight_column import find_column, read_column_name
from cerebro_plpy.preprocessing.values.columns import read_source_columns
from cerebro_plpy.preprocessing.values.families import BYTES, JSON
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.lifecycle import RunListeners, log_completion_errors, reserve_run_id, train
from cerebro_plpy.run.request.run_request import FitRequest, Replay
from cerebro_plpy.tables.models import model_registry
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.trainer_client import settings

MODULE = "refresh"
EPOCH_SHARE = 10
"""A refresh trains this fraction (one tenth) of the epochs of the first run, rounded up."""


@dataclass(frozen=True)
class RefreshArguments:
    """The arguments as passed, None for NULL; sql/64-freshness.sql has the help of each."""

    model: str | None
    since: str | None
    epochs: int | None
    budget: str | None


def refresh(db: Database, gd: Globals, arguments: RefreshArguments, version: str) -> list[Row]:
    """Train the deployed version on the current rows.

    Args:
        version: version of this package.

    Returns:
        A row about the new version; empty if no rows are new and the call does not name epochs.
    """
    start = time.monotonic()
    lineage = _find_version(db, arguments)
    db.status.begin(lineage.train_spec.budget)
    run_arguments = lineage.run_spec.arguments
    settings.choose_gpus(settings.read(db), run_arguments.use_gpus, is_recorded=True)
    catalog = Catalog(db, MODULE)
    source, holdout = find_source_tables(catalog, lineage)
    tables = [table for table in (source, holdout) if table]
    custom = read_custom_settings(db, lineage, tables)
    with open_context(db, gd, [source], run_arguments.workers, custom) as context:
        for table in tables:
            wait_for_source(db, context.control, table, read_wait_limit(db))
        latest_run = find_latest_run(db, lineage)
        since = arguments.since
        rows = RefreshSource(context.control, lineage, (source, holdout), since, latest_run)
        if arguments.epochs is None and not rows.may_have_grown():
            reports.report_nothing_newer(db, source, arguments.model, rows.describe_newer())
            return []
        run_id = reserve_run_id(db, context)
        context.show_preparation(run_id, LOOKING)
        with drop_after_error(context, run_id):
            with reports.explain_changed_source(source):
                training_data = rows.pack(catalog, context, run_id)
            known_rows = (arguments.model, training_data.fingerprint)
            is_known = read_value(context.control, sql("refresh.known"), known_rows)
            if is_known and arguments.epochs is None:
                drop_packed_tables(context.control, run_id)
                reports.report_same_rows(db, source, arguments.model)
                return []
            reports.report_new_columns(db, training_data.table, lineage)
            report_table(db, training_data.table)
            request = build_request(
                catalog, context, lineage, training_data, (version, arguments.epochs)
            )
            with explain_drop(context.control, lineage.version):
                train(db, context, request, None, RunListeners(), run_id)
    with log_completion_errors(db, gd, run_id):
        register_version(db, gd, run_id, start + lineage.train_spec.budget)
    return db.peek(sql("refresh.version"), run_id)


def _find_version(db: Database, arguments: RefreshArguments) -> Lineage:
    """Return the version that a call trains further, with the budget of the call."""
    check_transaction(db, MODULE)
    db.platform.check_process(MODULE)
    limits.check_record(MODULE, arguments)
    check_positive(MODULE, "epochs", arguments.epochs)
    seconds = read_budget(db, MODULE, arguments.budget)
    model = arguments.model
    lineage = read_lineage(db, MODULE, model, find_own_model(db, MODULE, model)["deployed"])
    refuse_groups(MODULE, lineage)
    tree_support.check_members(db, MODULE, lineage.version)
    if seconds is None:
        return lineage
    return replace(lineage, train_spec=replace(lineage.train_spec, budget=seconds))


@contextmanager
def explain_drop(session: Session, version: Version) -> Iterator[None]:
    """Say after an error that the version was dropped, if it was: its weights are read late."""
    try:
        yield
    except QueryCanceled:
        raise
    except CerebroError:
        with suppress(ConnectionFailure):
            model_registry.check_base(session, version.model, (version.run_id, version.mst_key))
        raise


def find_latest_run(db: Database, lineage: Lineage) -> PackedRun | None:
    """Return the run of a model's newest version; None if the log does not contain it."""
    for row in db.peek(sql("refresh.newest"), lineage.version.model):
        spec = logged_run.read_run(db, row["run_id"]).spec
        if spec.train is not None:
            return PackedRun(row["run_id"], spec, spec.train)
    return None


class RefreshSource:
    """The source of a version with its current rows, or only those that are new.

    Args:
        tables: the source, and the table of the hold-out rows if the split names one.
        since: column that grows with new rows.
        latest_run: run of the newest version, beside whose packed rows new ones may be packed.
    """

    def __init__(
        self,
        session: Session,
        lineage: Lineage,
        tables: tuple[Relation, Relation | None],
        since: str | None,
        latest_run: PackedRun | None,
    ) -> None:
        self._session = session
        self._lineage = lineage
        self._latest_run = latest_run
        self._source, self._holdout = tables
        self._newer: Newer | None = None
        if since is not None:
            column = _find_growing_column(session, self._source, since)
            self._newer = Newer(
                column, latest_run and latest_run.train_spec.source.newest.get(column)
            )

    def may_have_grown(self) -> bool:
        """Return whether the source may have new rows."""
        newer = self._newer
        if newer is None or newer.value is None or is_evaluated(self._session, self._source):
            return True  # the source is read once, when it is packed
        with transaction(self._session):
            self._session.run(sql("session.configure"), (json.dumps(SETTINGS),))
            columns = read_source_columns(self._session, self._source)
            column = find_column(MODULE, columns, newer.column, "since")
            condition = compare(column, ">", newer.value)
            statement = sql("refresh.grown", source=self._source.quoted, later=condition.text)
            return bool(read_value(self._session, statement, condition.values))

    def describe_newer(self) -> str:
        """Return the condition on new rows, for messages."""
        assert self._newer is not None
        return f"{quote_identifier(self._newer.column)} above {self._newer.value}"

    def pack(self, catalog: Catalog, context: CallContext, run_id: int) -> TrainingData:
        """Pack the new rows beside those of the latest run, or all rows if that is impossible."""
        version = self._lineage.version
        reading = make_reading(catalog.db, self._source, version)
        limit = read_wait_limit(catalog.db)
        preparation = PackingRequest(self._source, reading, limit, version.model)
        newer = self._newer
        latest_run = self._latest_run
        if (
            latest_run
            and newer
            and self._holdout is None
            and can_extend(self._session, latest_run, self._lineage.train_spec, newer.column)
        ):
            look = partial(self._read_table, newer)
            return extend_packed_rows(catalog, context, look, run_id, (latest_run, preparation))
        look = partial(self._read_table, newer and newer._replace(value=None))
        return pack_training_data(catalog, context, look, run_id, preparation)

    def _read_table(self, newer: Newer | None, rows: SourceRows) -> RawTable:
        """Return the table in the snapshot in which it is packed."""
        train_spec = self._lineage.train_spec
        table = read_with_recipe(rows, MODULE, self._source, train_spec, self._holdout, newer)
        # Without the older rows, new ones may be of one class, or of one number.
        if newer is None or newer.value is None or train_spec.metric == "mape":
            check_metric(rows.session, MODULE, table, train_spec.metric)
        return table


def _find_growing_column(reader: Reader, source: Relation, since: str) -> str:
    """Return the name of a column whose values can be compared.

    Raises:
        DatatypeMismatch: values of the column have no order.
    """
    columns = {column.name: column for column in read_source_columns(reader, source)}
    name = read_column_name(MODULE, columns, since, "since", source.spelling)
    if columns[name].family in (None, BYTES, JSON):
        raise DatatypeMismatch(
            f"{MODULE} error: since names column {name!r} of type {columns[name].type}; expected "
            "one that grows.",
            hint="For example a number that counts rows, or the time at which they were entered.",
        )
    return name


def build_request(
    catalog: Catalog,
    context: CallContext,
    lineage: Lineage,
    training_data: TrainingData,
    call: tuple[str, int | None],
) -> FitRequest:
    """Return the request of a run that trains the members of the version on the current rows.

    Args:
        call: version of this package, and the epochs that the call names.
    """
    version, requested_epochs = call
    original = lineage.run_spec
    data = training_data.data
    inputs = training_data.inputs
    tables = {name: relation.quoted for name, relation in inputs.get_relations().items()}
    check_rows(lineage, training_data)
    first_epochs = (lineage.train_spec.start or original).epochs
    epochs = requested_epochs or -(-first_epochs // EPOCH_SHARE)
    frequency = choose_frequency(epochs)
    evaluated = list_metric_epochs(epochs, frequency)
    models = make_models(lineage, data.source, epochs)
    arguments = replace(
        original.arguments,
        source_table=inputs.source.table.quoted,
        validation_table=tables.get("validation"),
        replay_run=None,
        workers=None,
        search=None,
        search_params=None,
    )
    train_spec = make_train_spec(lineage, training_data, first_epochs)
    spec = replace(
        original,
        arguments=arguments,
        epochs=epochs,
        frequency=frequency,
        evaluate_epochs=evaluated,
        training_epochs=choose_training_epochs(evaluated),
        schedule=SCHEDULE,
        segments=data.source.segments,
        source=data.source.spec(),
        validation=data.validation.spec() if data.validation else None,
        version=version,
        tables=tables,
        epochs_before=count_previous_epochs(lineage),
        train=train_spec,
    )
    request = make_request(catalog, context, spec, data, models, Replay())
    return replace(
        request,
        warm_states=make_warm_states(context.platform, train_spec),
        deadline=compute_deadline(
            lineage.train_spec.budget,
            0.0,
            train_spec.ensemble,
            train_spec.split.validation_rows,
            train_spec.final_metric is not None,
            RefitTerms.from_spec(train_spec).is_possible,
        ),
    )


def check_rows(lineage: Lineage, training_data: TrainingData) -> None:
    """Check that the current rows fit the network of the version.

    Raises:
        ObjectNotReady: they differ in more than their number.
    """
    differences = training_data.data.source.spec().list_differences(lineage.run_spec.source)
    names = [name for name in differences if name != "rows"]
    if names:
        raise ObjectNotReady(
            f"{MODULE} error: the training rows have changed too much since the version was "
            f"trained: {', '.join(names)} differ.",
            detail="For example, a class has no rows any more.",
            hint="Train the model again.",
        )


def make_train_spec(lineage: Lineage, training_data: TrainingData, first_epochs: int) -> TrainSpec:
    """Return the spec of the version for the log, with the current rows."""
    table = training_data.table
    version = lineage.version
    return replace(
        lineage.train_spec,
        split=replace(
            lineage.train_spec.split,
            bound=table.bound,
            training_rows=table.rows,
            validation_rows=table.validation_rows,
        ),
        recipe=table.recipe.to_json(),
        source=training_data.make_source_record(),
        templates={member.mst_key: member.template for member in version.members},
        params={member.mst_key: json.loads(member.params) for member in version.members},
        ensemble=lineage.train_spec.ensemble if len(version.members) > 1 else 1,
        start=BaseVersion(version.run_id, version.mst_key, first_epochs),
        compared=training_data.compared,
    )
