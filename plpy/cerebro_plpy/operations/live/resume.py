"""The resumption of a run that ended early: completed work in its log is not done again.

The request is rebuilt from the log, not from the tables that the call named, which may have changed
since. Only the packed tables are read again, and must be unchanged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.custom_functions import (
    ANY_FUNCTIONS,
    Functions,
)
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.templates.registry import list_starts
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.call_status import STARTING
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import FeatureNotSupported, ObjectNotReady, UndefinedTable
from cerebro_plpy.operations.fit.input_tables import PackedInputs, find_packed_inputs
from cerebro_plpy.operations.fit.run_outputs import (
    RunOutputs,
    begin_incremental_output,
    find_outputs,
    finish,
)
from cerebro_plpy.operations.fit.spec_request import make_replay, make_request, make_search
from cerebro_plpy.operations.fit.warm_start import find_warm_states
from cerebro_plpy.operations.live.logged_models import (
    check_unchanged,
    load_logged_models,
    read_functions,
)
from cerebro_plpy.operations.live.runs import MORE_EPOCHS, claim, suggest_longer_training
from cerebro_plpy.operations.refit.refit_terms import RefitTerms
from cerebro_plpy.operations.register.register_version import register_version
from cerebro_plpy.operations.train.model_lineage import make_warm_states
from cerebro_plpy.operations.train_budget import compute_deadline
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.state_tables import start_table
from cerebro_plpy.records import replace
from cerebro_plpy.run.lifecycle import (
    InterruptedRun,
    OnLogged,
    RunListeners,
    ignore_run_id,
    log_completion_errors,
    train,
)
from cerebro_plpy.run.request.replay import check_functions, read_run_record
from cerebro_plpy.run.request.run_request import FitRequest, Replay, WarmState
from cerebro_plpy.run.state import interrupted_run
from cerebro_plpy.run.workers.warm_start_check import choose_clone_source
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.template_configs import ConfigBuilder, find_loaded_templates
from cerebro_plpy.trainer_client import settings

MODULE = "resume"


class UnfinishedRun(NamedTuple):
    """A run that ended early."""

    row: Row
    spec: RunSpec
    packed: PackedInputs  # found by qualified names
    functions: Functions | None


def resume(
    db: Database, gd: Globals, run_id: int | None, on_logged: OnLogged = ignore_run_id
) -> None:
    """Train the remaining work of a run, and write the output of its call.

    Args:
        on_logged: called with the id of the run when the run continues.
    """
    check_transaction(db, MODULE)
    start = time.monotonic()
    spent_seconds = 0.0
    row, spec = _claim_unfinished(db, run_id)
    run_id = row["run_id"]
    arguments = spec.arguments
    settings.choose_gpus(settings.read(db), arguments.use_gpus, is_recorded=True)
    catalog = Catalog(db, MODULE)
    outputs = None
    if not spec.train:
        output_name = spec.tables.get("model_output")
        outputs = find_outputs(catalog, replace(arguments, model_output_table=output_name))
    packed = _find_packed(catalog, run_id, spec)
    run = UnfinishedRun(row, spec, packed, read_functions(catalog, spec))
    with open_context(db, gd, _list_tables(catalog, run, outputs), arguments.workers) as context:
        if spec.train:
            ((spent_seconds,),) = context.control.run(sql("run.worked"), (run_id,))
            db.status.begin(spec.train.budget, STARTING, spent_seconds)
        request = _rebuild_request(catalog, context, run)
        history = interrupted_run.read_histories(context.control, run_id, request.configs)
        if spec.train:
            start_states = make_warm_states(context.platform, spec.train)
            deadline = compute_deadline(
                spec.train.budget,
                spent_seconds,
                spec.train.ensemble,
                spec.train.split.validation_rows,
                spec.train.final_metric is not None,
                RefitTerms.from_spec(spec.train).is_possible,
            )
            warm_states = {**request.warm_states, **start_states}
            starts = list_starts(spec.train.templates, spec.train.split.training_rows)
            request = replace(request, deadline=deadline, warm_states=warm_states, starts=starts)
        if outputs and outputs.existing:
            start_states = find_warm_states(context.reader, outputs.existing, request)
            request = replace(request, warm_states={**start_states, **request.warm_states})
        interrupted_run.await_workers(context, run_id)
        listeners = RunListeners(on_logged)
        if outputs:
            outputs = begin_incremental_output(db, context, request, outputs)
            listeners = RunListeners(on_logged, outputs.observer)
        train(db, context, request, InterruptedRun(run_id, history), listeners)
    with log_completion_errors(db, gd, run_id):
        if spec.train:
            end = start + context.queued_seconds + spec.train.budget - spent_seconds
            register_version(db, gd, run_id, end)
        if outputs:
            # Messages and the summary name the output table as the call did.
            table = replace(outputs.table, spelling=arguments.model_output_table or "")
            outputs = outputs._replace(table=table)
            finish(db, gd, run_id, outputs, keep_states=arguments.keep_states)


def _find_packed(catalog: Catalog, run_id: int, spec: RunSpec) -> PackedInputs:
    """Find the packed tables of a run; raise ObjectNotReady if `cerebro.train` packed them."""
    try:
        return find_packed_inputs(catalog, spec.tables["source"], spec.tables.get("validation"))
    except UndefinedTable as error:
        if not spec.train:
            raise
        raise ObjectNotReady(
            f"{MODULE} error: the packed rows of run {run_id} were removed, as cerebro.vacuum_runs "
            "does; nothing is left to train on.",
            hint="Call cerebro.train again.",
        ) from error


def _list_tables(
    catalog: Catalog, run: UnfinishedRun, outputs: RunOutputs | None
) -> list[Relation]:
    """Return the tables that the remaining run uses."""
    tables = list(run.packed.get_relations().values())
    if outputs:
        tables += outputs.list_existing()
    if run.functions:
        tables.append(object_table.find_trusted(catalog, run.functions.table))
    return tables


def _claim_unfinished(db: Database, run_id: int | None) -> tuple[Row, RunSpec]:
    """Become the orchestrator of a run that ended early; return its log and its spec."""
    run = claim(db, MODULE, run_id, to_train=True)
    spec = RunSpec.from_json(json.loads(run["spec"]))
    if spec.search and not spec.is_automl:
        raise FeatureNotSupported(
            f"{MODULE} error: run {run_id} is part of a search of an older version, which can only "
            "be made as a whole.",
            hint="Call madlib_automl() again; with a random_state it tries the same "
            "configurations.",
        )
    if spec.train is not None and spec.train.refit_of is not None:
        first_run = spec.train.refit_of
        raise ObjectNotReady(
            f"{MODULE} error: run {run_id} has trained the best configurations of run {first_run} "
            "again on all rows, which is the last part of that run.",
            hint=f"SELECT cerebro.resume({first_run});",
        )
    if run["status"] == "completed":
        raise ObjectNotReady(
            f"{MODULE} error: run {run_id} is completed; there is nothing to go on with.",
            hint=suggest_longer_training(db, run["run_id"], MORE_EPOCHS),
        )
    return run, spec


def _rebuild_request(catalog: Catalog, context: CallContext, run: UnfinishedRun) -> FitRequest:
    """Return the request of the run with the decisions that were logged."""
    module = catalog.module
    control = context.control
    row = run.row
    spec = run.spec
    run_id = row["run_id"]
    data = run.packed.read(catalog, context.reader)
    check_unchanged(data.source, spec.source, row["segments"])
    if data.validation is not None and spec.validation is not None:
        check_unchanged(data.validation, spec.validation, row["segments"])
    log = catalog.db.peek(sql("run.logged_configs"), run_id)
    models = load_logged_models(catalog, context, spec, run.functions, log, data.source)
    (threads,) = control.run(sql("run.past_threads"), (run_id,))[0]
    cut_layers = {config["mst_key"]: config["cut"] for config in log if config["cut"] is not None}
    replay = Replay(threads=threads, cut_layers=cut_layers)
    if spec.arguments.replay_run is not None:
        recorded = read_run_record(control, module, spec.arguments.replay_run)
        check_functions(module, recorded, spec.functions)
        replay = make_replay(catalog, recorded, row["epochs"], data.source, list(models.backends))
        models = models._replace(backends=recorded.backends)
    request = make_request(catalog, context, spec, data, models, replay)
    # The rule has decided on failed configurations as well.
    failed = [
        (config["mst_key"], config["group_value"]) for config in log if config["status"] == "failed"
    ]
    search = make_search(module, spec, models, replay, failed)
    decisions = interrupted_run.read_decisions(control, run_id)
    replans, strategy = interrupted_run.read_replans(control, run_id)
    request = replace(
        request,
        extended_epochs=max(row["epochs"], spec.epochs),
        search=search,
        logged_decisions=decisions,
        replans=replans,
        strategy=strategy or request.strategy,
    )
    if spec.train:
        loaded = {row["template"]: row["architecture"] for row in log if row["template"]}
        templates = find_loaded_templates(loaded)
        builder = ConfigBuilder(spec, data.source, templates, context.check)
        request = replace(request, build_configs=builder)
    clone_states = _find_clone_states(context, run_id, request, log)
    return replace(request, warm_states={**request.warm_states, **clone_states})


def _find_clone_states(
    context: CallContext, run_id: int, request: FitRequest, log: Sequence[Row]
) -> dict[int, WarmState]:
    """Return the states from which warm clones start, by mst_key.

    In a replay, a clone that still waits for its parent's state has none.
    """
    is_replay = request.spec.schedule == "replay"
    rows = {row["mst_key"]: row for row in log}
    decisions = [decision for batch in request.logged_decisions for decision in batch.decisions]
    bred_clones = {decision.mst_key for decision in decisions if decision.action == "clone"}
    states = {}
    for config in request.configs:
        mst_key = config.mst_key
        row = rows[mst_key]
        is_waiting = is_replay and row["warm_started_visits"] is None
        if is_waiting or row["warm_started_from"] is None:
            continue
        parent = rows[row["warm_started_from"]]
        optimizer = parse_compile_params(parent["compile_params"], ANY_FUNCTIONS).optimizer
        has_all_epochs = request.spec.train is not None and mst_key not in bred_clones
        source = choose_clone_source(optimizer, config.compile.optimizer, anew=has_all_epochs)
        query = context.platform.state_rows_sql(start_table(run_id, mst_key), None)
        states[mst_key] = WarmState(source, query, ())
    return states
