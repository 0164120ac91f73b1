"""Whether the same model comes out once more: the run of a version is repeated, as far as it made
the version.

Its configuration, and those of its groups, are trained again, up to the epoch that was kept, over
the rows that the run had packed, in the order and with the forms of its log. Nothing of it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.callbacks import NO_CALLBACKS
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.custom_settings import CustomSettings
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import (
    CerebroError,
    ConfigFailure,
    DatatypeMismatch,
    InsufficientPrivilege,
    InvalidParameter,
    ObjectNotReady,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from cerebro_plpy.operations.fit.drop_run_tables import drop_data
from cerebro_plpy.operations.fit.fit_request import make_request, repeat_of
from cerebro_plpy.operations.fit.input_tables import Data, Models, PackedInputs, find_packed_inputs
from cerebro_plpy.operations.live.resume import Rest, check_unchanged, logged_models
from cerebro_plpy.operations.models.deployment import number_of, own
from cerebro_plpy.operations.predict.prediction_source import make_reading
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.operations.train.model_lineage import (
    Made,
    begun_from,
    custom_again,
    read_made,
    sources,
)
from cerebro_plpy.operations.train.pack_training_data import Preparation, Prepared, prepare
from cerebro_plpy.operations.train.train_ensemble import Candidate, joined
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import SPLITS, StoredState, packed_table_name, version_table
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, known_table
from cerebro_plpy.preprocessing.rows.groups import GroupRequest, read_groups
from cerebro_plpy.records import replace
from cerebro_plpy.run.lifecycle import Audience, reserve_run, train
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop.replay import read_record
from cerebro_plpy.run.request.run_request import Ending, FitRequest
from cerebro_plpy.tables.models.model_registry import RunResult
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.template_configs import read_head

MODULE = "verify"
SOURCE_CHANGED = (
    UndefinedTable,
    UndefinedColumn,
    DatatypeMismatch,
    InvalidParameter,
    InsufficientPrivilege,
    WrongObjectType,
)
NOT_REPEATED = (ConfigFailure, InvalidParameter, ObjectNotReady)


class Finding(NamedTuple):
    """What was looked at, whether it is as it was, and what was seen."""

    what: str
    ok: bool
    detail: str


class Replay(NamedTuple):
    """The id of the run that repeats another one, and the rows that it trains on."""

    run_id: int
    inputs: PackedInputs
    data: Data


def verify(db: Database, gd: dict[str, Any], model: str | None, wanted: str | None) -> list[Row]:
    """Findings about a version, by default the one that predicts: the last is whether the same bits
    came out.
    """
    check_transaction(db, MODULE)
    db.platform.check_process(MODULE)
    found = own(db, MODULE, model)
    number = found["deployed"] if wanted is None else number_of(MODULE, model, wanted, found)
    made = read_made(db, MODULE, model, number)
    catalog = Catalog(db, MODULE)
    with open_context(
        db, gd, (), made.spec.arguments.workers, _custom_settings(catalog, made)
    ) as workplace:
        run_id = reserve_run(db, workplace)
        with nothing_left(workplace, run_id):
            return [finding._asdict() for finding in findings(catalog, workplace, made, run_id)]


def _custom_settings(catalog: Catalog, made: Made) -> CustomSettings | None:
    """Return the custom settings under which the source is read; None if there is no source any
    more.
    """
    try:
        tables = sources(catalog, made)
    except SOURCE_CHANGED:
        return None  # a finding says so
    return custom_again(catalog.db, made, [each for each in tables if each])


@contextmanager
def nothing_left(workplace: CallContext, run_id: int) -> Iterator[None]:
    """Within, a run is made of which neither log nor states nor packed rows stay, whatever ends
    it.
    """
    try:
        yield
    finally:
        with suppress(CerebroError):  # where that session is lost, cerebro.vacuum_runs removes them
            drop_data(workplace.control, run_id)
            RunLog(workplace.control, run_id).discard()


def findings(
    catalog: Catalog, workplace: CallContext, made: Made, run_id: int
) -> Iterator[Finding]:
    """What is looked at, one after another."""
    again: Prepared | None = None
    try:
        again = prepare_again(catalog, workplace, made, run_id)
        yield source_finding(made, again)
    except SOURCE_CHANGED as error:
        yield Finding("source", False, error.message)
    kept, finding = kept_rows(catalog, workplace, made)
    yield finding
    same = (
        again is not None
        and again.fingerprint == made.fingerprint
        and lying(again) == lying_then(made)
    )
    # The bits depend on which rows lie in a buffer.
    usable = (
        same
        and again is not None
        and again.data.source.segments == made.spec.segments
        and not made.asked.additions
    )
    rows = kept or (Replay(run_id, again.inputs, again.data) if again and usable else None)
    warm = [key for key, row in made.trained.items() if row["warm_started_from"] is not None]
    if warm:
        yield Finding(
            "state",
            False,
            f"it cannot be trained again: mst_key {warm[0]} began from a state of another one",
        )
        return
    if rows is None:
        parts = "; new ones were packed beside them" if made.asked.additions else ""
        yield Finding(
            "state", False, f"it cannot be trained again: there are no packed rows of then{parts}"
        )
        return
    try:
        request = replay_request(catalog, workplace, made, rows)
        train(catalog.db, workplace, request, None, Audience(), run_id)
    except NOT_REPEATED as error:
        yield Finding("state", False, f"it cannot be trained again: {error.message}")
        return
    yield software_finding(workplace, made, run_id)
    yield from states_of_groups(catalog.db, workplace, made, run_id)
    before = StoredState(made.version.state_table, None)
    yield state_finding(
        workplace, "state", before, state_again(catalog.db, workplace, made, run_id)
    )


def prepare_again(catalog: Catalog, workplace: CallContext, made: Made, run_id: int) -> Prepared:
    """The source as it is now, encoded as it was then."""
    source, held = sources(catalog, made)
    limit = read_wait_limit(catalog.db)
    for each in filter(None, (source, held)):
        wait_for_source(catalog.db, workplace.control, each, limit)

    def look(rows: SourceRows) -> RawTable:
        table = known_table(rows, MODULE, source, made.asked, held)
        return with_groups(rows.session, made.asked, table) if made.asked.groups else table

    of = Preparation(source, make_reading(catalog.db, source, made.version), limit)
    return prepare(catalog, workplace, look, run_id, of)


def with_groups(reader: Reader, asked: TrainSpec, table: RawTable) -> RawTable:
    """The table with the groups of then, and what networks give, by which buffers of groups are as
    large as then.
    """
    assert asked.group_by is not None
    families = {column.name: column.family for column in table.columns}
    wanted = GroupRequest(
        asked.group_by,
        min(place.rows for place in asked.groups.values()),
        asked.classes,
        families[asked.group_by],
    )
    target = table.target._replace(head=read_head(asked))
    return replace(table, target=target, groups=read_groups(reader, MODULE, table.parts, wanted))


def lying(again: Prepared) -> Mapping[str, tuple[object, ...]]:
    """In which buffers the rows of groups lie."""
    grouped, groups = again.grouped, again.table.groups
    return (
        {value: place[:3] for value, place in grouped.find_places(groups).items()}
        if grouped and groups
        else {}
    )


def lying_then(made: Made) -> Mapping[str, tuple[object, ...]]:
    """In which they lay."""
    return {value: place[:3] for value, place in made.asked.groups.items()}


def source_finding(made: Made, again: Prepared) -> Finding:
    """Whether the rows of the source are those of then, as far as the model sees them."""
    rows = again.table.rows + again.table.validation_rows
    if made.fingerprint is None:
        return Finding("source", False, f"it has {rows} rows; what they were like was not kept")
    if again.fingerprint == made.fingerprint:
        return Finding("source", True, f"its {rows} rows are those of then")
    before = made.asked.training_rows + made.asked.validation_rows
    return Finding("source", False, f"it has other rows than then: {rows} now, {before} then")


def kept_rows(
    catalog: Catalog, workplace: CallContext, made: Made
) -> tuple[Replay | None, Finding]:
    """The rows that the run had packed, where they are still there."""
    names = [packed_table_name(made.version.run_id, side) for side in SPLITS]
    found = workplace.control.run(sql("features.data_tables"), (names,))
    if len(found) < len(names):
        return None, Finding(
            "packed rows", False, "they were removed; those of the source take their place"
        )
    inputs = find_packed_inputs(catalog, *names)
    try:
        data = inputs.read(catalog, workplace.reader)
        check_unchanged(data.source, made.spec.source, made.spec.segments)
    except NOT_REPEATED as error:
        return None, Finding("packed rows", False, error.message)
    return Replay(made.version.run_id, inputs, data), Finding("packed rows", True, "they were kept")


def replay_request(
    catalog: Catalog, workplace: CallContext, made: Made, rows: Replay
) -> FitRequest:
    """What a run is asked that does what made the version: other configurations do not matter for
    its bits.
    """
    spec, before = unsearched(made.spec), made.version.run_id
    recorded = read_record(workplace.control, MODULE, before)
    configs = made.trained.items()
    best = {
        key: each["best_epoch"] or recorded.limits.get(key, spec.epochs) for key, each in configs
    }
    models = models_again(catalog, workplace, made, rows)
    repeat = repeat_of(catalog, recorded, max(best.values()), rows.data.source, best)
    orders = recorded.orders.items()
    # Each ends where its state was kept, or where the budget ended it: there is nothing to
    # evaluate.
    endings = {
        key: Ending(
            sum(len(order) for (of, epoch), order in orders if of == key and epoch <= last), False
        )
        for key, last in best.items()
    }
    arguments = replace(
        spec.arguments,
        name=f"verify {made.version.model}",
        replay_run=before,
        workers=1,
        search=None,
        search_params=None,
    )
    asked = replace(
        spec,
        arguments=arguments,
        epochs=max(best.values()),
        evaluate_epochs=(),
        schedule="replay",
        tables={name: found.quoted for name, found in rows.inputs.relations().items()},
        train=None,
    )
    request = make_request(
        catalog, workplace, asked, rows.data, models, replace(repeat, endings=endings)
    )
    request = replace(request, warm_states=begun_from(workplace.platform, made.asked), quiet=True)
    return replace(request, groups=made.asked.groups, block_rows=made.asked.block_rows)


def unsearched(spec: RunSpec) -> RunSpec:
    """What a run was asked without its search: a replay takes what it decided from the log."""
    return replace(spec, arguments=replace(spec.arguments, search=None, search_params=None))


def models_again(catalog: Catalog, workplace: CallContext, made: Made, rows: Replay) -> Models:
    """The configurations of the version; nothing of them is kept or stopped by metrics, which are
    not computed.
    """
    rest = Rest({"run_id": made.version.run_id}, unsearched(made.spec), rows.inputs, None)
    models = logged_models(catalog, workplace, rest, list(made.trained.values()), rows.data.source)
    configs = tuple(
        replace(each, fit=replace(each.fit, callbacks=NO_CALLBACKS)) for each in models.configs
    )
    return models._replace(configs=configs)


def software_finding(workplace: CallContext, made: Made, run_id: int) -> Finding:
    """Whether what trains is what trained then."""
    ((text,),) = workplace.control.run(sql("provenance.software"), (run_id,))
    now = json.loads(text)
    other = [name for name in sorted(now) if now[name] != made.software.get(name)]
    if not other:
        return Finding("software", True, ", ".join(f"{name} {now[name]}" for name in sorted(now)))
    told = (f"{name} {now[name]}, then {made.software.get(name, 'unknown')}" for name in other)
    return Finding("software", False, "; ".join(told))


def states_of_groups(
    db: Database, workplace: CallContext, made: Made, run_id: int
) -> Iterator[Finding]:
    """Whether the states of the models of groups came out once more."""
    rows = (
        {row["mst_key"]: row for row in logged_run.read_configs(db, run_id)}
        if made.of_groups
        else {}
    )
    for value, config in sorted(made.of_groups.items()):
        key, found = config["mst_key"], logged_run.stored_state(rows[config["mst_key"]])
        assert found is not None
        kept = StoredState(version_table(made.version.run_id, key), None)
        yield state_finding(workplace, f"state of {value}", kept, found)


def state_finding(
    workplace: CallContext, what: str, kept: StoredState, found: StoredState
) -> Finding:
    """Whether the state that came out is one that was kept, to the bit."""
    platform = workplace.platform
    text = sql(
        "provenance.differing",
        one=platform.state_rows_sql(*kept),
        other=platform.state_rows_sql(*found),
    )
    ((differing, chunks),) = workplace.control.run(text)
    if differing:
        return Finding(what, False, f"{differing} of {chunks} parts of it have other bits")
    return Finding(what, True, "the same bits came out")


def state_again(db: Database, workplace: CallContext, made: Made, run_id: int) -> StoredState:
    """Where the state lies that came out: of an ensemble it is made of those of its members."""
    rows = {row["mst_key"]: row for row in logged_run.read_configs(db, run_id)}
    found = []
    for key, config in made.configs.items():
        state = logged_run.stored_state(rows[key])
        assert state is not None
        source = StateSource("weights_of_chunks", f"{run_id}/{key}", 0, stored=state)
        texts = config["architecture"], config["compile_params"]
        network = Network(
            made.version.recipe, made.version.classes, *texts, source, config["backend"]
        )
        found.append(Candidate(RunResult(run_id, key, None, None, state), network, []))
    if len(found) == 1:
        return found[0].result.state
    stored = joined(workplace, found, made.version.architecture).state.stored
    assert stored is not None
    return stored
