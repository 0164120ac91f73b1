"""Going on with a run that ended early: what its log says was completed is not done again.

The request is made again from the log and not from the tables that the call named, for these may
have changed since. Only the packed tables are read anew, and must be what they were.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import (
    ANY_FUNCTIONS,
    Functions,
    list_changed_functions,
    read_logged_functions,
)
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import DataSpec, RunSpec
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import FeatureNotSupported, ObjectNotReady
from cerebro_plpy.operations.fit.config_sampling import restore_sampling
from cerebro_plpy.operations.fit.input_tables import ModelInputs, PackedInputs, find_packed_inputs
from cerebro_plpy.operations.fit.run_outputs import (
    RunOutputs,
    begin_incremental_output,
    find_outputs,
    finish,
)
from cerebro_plpy.operations.fit.spec_request import make_repeat, make_request, make_search
from cerebro_plpy.operations.fit.warm_start import find_warm_states
from cerebro_plpy.operations.live.runs import claim
from cerebro_plpy.operations.train import template_sampling
from cerebro_plpy.operations.train.model_lineage import make_warm_states
from cerebro_plpy.operations.train.register_version import register_version
from cerebro_plpy.operations.train.train_request import compute_deadline
from cerebro_plpy.packing.packed_table import PackedTable
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
from cerebro_plpy.tables.architectures import StoredModel, find_table, read_architectures
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.model_selection_table import check_callbacks
from cerebro_plpy.tables.template_configs import ConfigBuilder, find_loaded_templates
from cerebro_plpy.trainer_client import settings

MODULE = "resume"


class UnfinishedRun(NamedTuple):
    """A run that ended early: its log, what it was asked, and the tables that it reads, by names no
    path changes.
    """

    row: Row
    spec: RunSpec
    packed: PackedInputs
    functions: Functions | None


def resume(db: Database, gd: Globals, run_id: int | None, logged: OnLogged = ignore_run_id) -> None:
    """Train the rest of a run, and make the output tables that its call named; `logged` hears when
    it goes on.
    """
    check_transaction(db, MODULE)
    began, spent = time.monotonic(), 0.0
    row, spec = claim_unfinished(db, run_id)
    arguments = spec.arguments
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    asked = replace(arguments, model_output_table=spec.tables.get("model_output"))
    outputs = None if spec.train else find_outputs(catalog, asked)
    packed = find_packed_inputs(catalog, spec.tables["source"], spec.tables.get("validation"))
    rest = UnfinishedRun(row, spec, packed, unchanged_functions(catalog, spec))
    with open_context(db, gd, relations(catalog, rest, outputs), arguments.workers) as workplace:
        request = rebuild_request(catalog, workplace, rest)
        known = interrupted_run.read(workplace.control, row["run_id"], request.configs)
        if spec.train:
            ((spent,),) = workplace.control.run(sql("run.worked"), (row["run_id"],))
            begun = make_warm_states(workplace.platform, spec.train)
            ends = compute_deadline(
                spec.train.budget, spent, spec.train.ensemble, spec.train.validation_rows
            )
            request = replace(request, deadline=ends, warm_states={**request.warm_states, **begun})
        if outputs and outputs.existing:
            before = find_warm_states(workplace.reader, outputs.existing, request)
            request = replace(request, warm_states={**before, **request.warm_states})
        interrupted_run.await_workers(workplace, row["run_id"])
        audience = RunListeners(logged)
        if outputs:
            outputs = begin_incremental_output(db, workplace, request, outputs)
            audience = RunListeners(logged, outputs.observer)
        train(db, workplace, request, InterruptedRun(row["run_id"], known), audience)
    with log_completion_errors(db, gd, row["run_id"]):
        if outputs is None:
            began += workplace.queued_seconds
            register_version(
                db, gd, row["run_id"], began + spec.train.budget - spent if spec.train else began
            )
        else:
            # The outputs tell of the tables by the names that the call used.
            named = outputs._replace(
                table=replace(outputs.table, spelling=arguments.model_output_table or "")
            )
            finish(db, gd, row["run_id"], named, keep_states=arguments.keep_states)


def relations(catalog: Catalog, rest: UnfinishedRun, outputs: RunOutputs | None) -> list[Relation]:
    """The tables that the rest of a run uses."""
    objects = [object_table.find_trusted(catalog, rest.functions.table)] if rest.functions else []
    return [
        *rest.packed.get_relations().values(),
        *(outputs.list_existing() if outputs else ()),
        *objects,
    ]


def claim_unfinished(db: Database, run_id: int | None) -> tuple[Row, RunSpec]:
    """The log of a run of the caller's that ended early; from now on this transaction is its
    orchestrator.
    """
    run = claim(db, MODULE, run_id, to_train=True)
    spec = RunSpec.from_json(json.loads(run["spec"]))
    if spec.search and not spec.is_automl:
        raise FeatureNotSupported(
            f"{MODULE} error: run {run_id} is part of a search of an older version, which can only "
            "be made as a whole.",
            hint="Call madlib_automl() again; with a random_state it tries the same "
            "configurations.",
        )
    if run["status"] == "completed":
        raise ObjectNotReady(
            f"{MODULE} error: run {run_id} is completed; there is nothing to go on with.",
            hint="cerebro.write_outputs() makes its output tables again; warm_start trains on.",
        )
    return run, spec


def rebuild_request(catalog: Catalog, workplace: CallContext, rest: UnfinishedRun) -> FitRequest:
    """The request of the run, as far as it is still to be done."""
    row, spec = rest.row, rest.spec
    data = rest.packed.read(catalog, workplace.reader)
    check_unchanged(data.source, spec.source, row["segments"])
    if data.validation is not None and spec.validation is not None:
        check_unchanged(data.validation, spec.validation, row["segments"])
    log = catalog.db.peek(sql("run.logged_configs"), row["run_id"])
    models = load_logged_models(catalog, workplace, rest, log, data.source)
    (threads,) = workplace.control.run(sql("run.past_threads"), (row["run_id"],))[0]
    repeat = Replay(
        threads=threads,
        cut_layers={each["mst_key"]: each["cut"] for each in log if each["cut"] is not None},
    )
    if spec.arguments.replay_run is not None:
        recorded = read_run_record(workplace.control, catalog.module, spec.arguments.replay_run)
        check_functions(catalog.module, recorded, spec.functions)
        repeat = make_repeat(catalog, recorded, row["epochs"], data.source, list(models.backends))
        models = models._replace(backends=recorded.backends)
    request = make_request(catalog, workplace, spec, data, models, repeat)
    request = replace(request, extended_epochs=max(row["epochs"], spec.epochs))
    request = replace(
        request, build_configs=maker_of(workplace, spec, log, data.source) if spec.train else None
    )
    # A rule was asked about them, too.
    failed = [(each["mst_key"], each["group_value"]) for each in log if each["status"] == "failed"]
    request = replace(request, search=make_search(catalog.module, spec, models, repeat, failed))
    request = replace(
        request, logged_decisions=interrupted_run.decisions(workplace.control, row["run_id"])
    )
    count, strategy = interrupted_run.replans(workplace.control, row["run_id"])
    request = replace(request, replans=count, strategy=strategy or request.strategy)
    return replace(
        request,
        warm_states={**request.warm_states, **clones(workplace, row["run_id"], request, log)},
    )


def maker_of(
    workplace: CallContext, spec: RunSpec, log: Sequence[Row], source: PackedTable
) -> ConfigBuilder:
    """What makes the configurations that will join a run of templates; the log has those that were
    loaded.
    """
    known = {row["template"]: row["architecture"] for row in log if row["template"]}
    return ConfigBuilder(spec, source, find_loaded_templates(known), workplace.check)


def clones(
    workplace: CallContext, run_id: int, request: FitRequest, log: list[Row]
) -> dict[int, WarmState]:
    """How the states are read that warm clones begin from; those of a replay may still wait for
    theirs.
    """
    texts = {row["mst_key"]: row["compile_params"] for row in log}
    begun = [
        row
        for row in log
        if row["warm_started_visits"] is not None or request.spec.schedule != "replay"
    ]
    parents = {
        row["mst_key"]: row["warm_started_from"]
        for row in begun
        if row["warm_started_from"] is not None
    }
    bred = {
        each.mst_key
        for heard in request.logged_decisions
        for each in heard.decisions
        if each.action == "clone"
    }
    found = {}
    for each in request.configs:
        if each.mst_key in parents:
            anew = request.spec.train is not None and each.mst_key not in bred
            before = parse_compile_params(texts[parents[each.mst_key]], ANY_FUNCTIONS).optimizer
            rows = workplace.platform.state_rows_sql(start_table(run_id, each.mst_key), None)
            found[each.mst_key] = WarmState(
                choose_clone_source(before, each.compile.optimizer, anew=anew), rows, ()
            )
    return found


def load_logged_models(
    catalog: Catalog,
    workplace: CallContext,
    rest: UnfinishedRun,
    log: list[Row],
    source: PackedTable,
) -> ModelInputs:
    """The configurations that did not fail, with the architectures that they had."""
    alive = [row for row in log if row["status"] != "failed"]
    fresh = sorted({row["model_id"] for row in alive if not row["trained"]})
    known = None if rest.spec.train else architecture_table(catalog, workplace, rest.spec, fresh)
    table, weighted = known or (None, set[int]())
    architectures = {
        r["model_id"]: StoredModel(r["model_id"], r["architecture"], r["model_id"] in weighted)
        for r in log
    }
    parsed = (config(row, rest.functions) for row in alive)
    configs = name_metrics(parsed, architectures, source, workplace.check)
    check_callbacks(catalog.db, (each.fit for each in configs))
    backends = {row["mst_key"]: row["backend"] for row in alive if row["backend"]}
    models = ModelInputs(configs, architectures, table, backends)
    asked, trains = rest.spec.arguments, rest.spec.train is not None
    rule = read_search_rule(
        catalog.module, asked.search, asked.search_params, rest.spec.epochs, templates=trains
    )
    if rule is None or rule.sampling is None:
        return models
    if trains:
        models = models._replace(
            drawing=template_sampling.resume_sampling(rest.spec, rule.sampling, log)
        )
    else:
        models = restore_sampling(workplace, models, rule.sampling, log, rest.functions)
    return models._replace(
        drawing=models.drawing and models.drawing._replace(prior_trials=rest.spec.prior_trials)
    )


def config(row: Row, functions: Functions | None) -> Config:
    """A configuration as the log has it."""
    texts = row["compile_params"], row["fit_params"]
    compiled = parse_compile_params(texts[0], functions)
    parsed = compiled, parse_fit_params(texts[1])
    params, group = json.loads(row["params"]) if row["template"] else None, row["group_value"]
    return Config(
        row["mst_key"],
        row["model_id"],
        *texts,
        *parsed,
        template=row["template"],
        params=params,
        group=group,
    )


def unchanged_functions(catalog: Catalog, spec: RunSpec) -> Functions | None:
    """The custom functions of a run, if it has any; raises where they are not those that it began
    with.
    """
    before = read_logged_functions(spec.object_table, spec.functions)
    if before is None:
        return None
    now = object_table.find_functions(catalog, before.table)
    others = list_changed_functions(before, now)
    if others:
        raise ObjectNotReady(
            f"{MODULE} error: custom functions {', '.join(others)} of object table {before.table} "
            "are not what they were when the run began.",
            hint="A run goes on with the sources that it began with. Train anew, or register them "
            "again.",
        )
    return now


def architecture_table(
    catalog: Catalog, workplace: CallContext, spec: RunSpec, fresh: Sequence[int]
) -> tuple[Relation, set[int]]:
    """The architecture table, and which of the models that nothing was trained of yet begin with
    weights in it.
    """
    table = find_table(catalog, spec.tables["architectures"])
    found = read_architectures(workplace.reader, table, list(fresh))
    missing = sorted(set(fresh) - found.keys())
    if missing:
        raise ObjectNotReady(
            f"table {table.spelling} has no models {missing} any more, with whose weights "
            "configurations begin",
            hint="Load them again by load_keras_model(), under the same model_id.",
        )
    return table, {model_id for model_id, model in found.items() if model.has_weights}


def check_unchanged(table: PackedTable, logged: DataSpec, segments: Sequence[int]) -> None:
    """Raises ObjectNotReady where a packed table is not the one that the run began with."""
    differing = table.spec().list_differences(logged)
    if list(table.segments) != list(segments):
        differing.append("segments")
    if differing:
        raise ObjectNotReady(
            f"packed table {table.relation.spelling} is not what it was when the run began: "
            f"{', '.join(differing)} differ",
            hint="A run goes on over the table that it began with. Train anew.",
        )
