"""Going on with a run that ended early: what its log says was completed is not done again.

The request is made again from the log and not from the tables that the call named, for these may have changed
since. Only the packed tables are read anew, and must be what they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from cerebro_plpy.calls.fit_arguments import FitArguments
from cerebro_plpy.calls.fit_request import Again, Models, read_architectures, read_data, recorded_order, requested
from cerebro_plpy.calls.outputs import finish, found_outputs
from cerebro_plpy.calls.runs import claimed
from cerebro_plpy.calls.warm_start import warm_states
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import Functions, changed, logged
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import FeatureNotSupported, ObjectNotReady
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.workplace import Workplace, opened
from cerebro_plpy.run import history
from cerebro_plpy.run.lifecycle import Interrupted, Logged, nobody, train
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel, existing
from cerebro_plpy.tables.compatibility import with_metrics
from cerebro_plpy.tables.selection import check_callbacks
from cerebro_plpy.trainer import settings

MODULE = "resume"


def resume(db: Database, session: dict[str, Any], run_id: int | None, logged: Logged = nobody) -> None:
    """Train the rest of a run, and make the output tables that its call named; `logged` hears when it goes on."""
    check_transaction(db, MODULE)
    run = unfinished(db, run_id)
    given = arguments(run["spec"])
    settings.devices(settings.read(db), given.use_gpus)
    catalog = Catalog(db, MODULE)
    before, output = found_outputs(catalog, given)
    relations = [catalog.relation(given.source_table), *before.values()]
    if given.validation_table is not None:
        relations.append(catalog.relation(given.validation_table, "validation"))
    functions = unchanged_functions(catalog, run["spec"])
    if functions:
        relations.append(object_table.existing(catalog, functions.table))
    with opened(db, session, relations, given.workers) as place:
        request = rebuilt(catalog, place, given, run, functions)
        known = history.read(place.control, run["run_id"], request.configs)
        if before:
            request = replace(request, warm_states=warm_states(place.reader, before, request))
        history.await_workers(place, run["run_id"])
        train(db, place, request, Interrupted(run["run_id"], known), logged)
    # The outputs tell of the tables by the names that the call used.
    named = replace(output, given=run["spec"]["model_output_table"])
    finish(db, run["run_id"], named, given, refill=bool(before))


def unfinished(db: Database, run_id: int | None) -> Row:
    """The log of a run of the caller's that ended early; from now on this transaction is its orchestrator."""
    run = claimed(db, MODULE, run_id)
    if "automl_method" in run["spec"]:
        raise FeatureNotSupported(
            f"{MODULE} error: run {run_id} is part of a search, which can only be made as a whole.",
            hint="Call madlib_automl() again; with a random_state it tries the same configurations.",
        )
    if run["status"] == "completed":
        raise ObjectNotReady(
            f"{MODULE} error: run {run_id} is completed; there is nothing to go on with.",
            hint="cerebro.write_outputs() makes its output tables again; warm_start trains on.",
        )
    return run


def arguments(spec: Mapping[str, Any]) -> FitArguments:
    """The arguments of the call, with names of tables that no search_path changes."""
    given = FitArguments(**{field.name: spec.get(field.name) for field in fields(FitArguments)})
    tables = spec["tables"]
    return replace(
        given,
        source_table=tables["source"],
        validation_table=tables.get("validation"),
        model_output_table=tables["model_output"],
    )


def rebuilt(
    catalog: Catalog, place: Workplace, given: FitArguments, run: Row, functions: Functions | None
) -> FitRequest:
    """The request of the run, as far as it is still to be done."""
    spec, log = run["spec"], catalog.db.rows(sql("run.logged_configs"), run["run_id"])
    source, validation = read_data(catalog, place, given)
    check_unchanged(source, spec["source"], run["segments"])
    if validation is not None:
        check_unchanged(validation, spec["validation"], run["segments"])
    alive = [row for row in log if row["status"] != "failed"]
    fresh = sorted({row["model_id"] for row in alive if not row["trained"]})
    table, weighted = architecture_table(catalog, place, spec, fresh)
    architectures = {
        r["model_id"]: StoredModel(r["model_id"], r["architecture"], r["model_id"] in weighted) for r in log
    }
    (threads,) = place.control.run(sql("run.past_threads"), (run["run_id"],))[0]
    backends = {row["mst_key"]: row["backend"] for row in alive}
    again = Again(spec["seed"], {}, {}, threads, spec["dtype_policy"], backends)
    if spec["schedule"] == "replay":
        again = recorded_order(place, given, run["epochs"], source, list(backends), spec.get("functions") or {})
    configs = with_metrics((config(row, functions) for row in alive), architectures, source)
    models = Models(configs, architectures, table)
    check_callbacks(catalog.db, (config.fit for config in models.configs))
    return requested(place, given, spec, (source, validation), models, again)


def config(row: Row, functions: Functions | None) -> Config:
    """A configuration as the log has it."""
    texts = row["compile_params"], row["fit_params"]
    compiled = parse_compile_params(texts[0], functions)
    return Config(row["mst_key"], row["model_id"], *texts, compiled, parse_fit_params(texts[1]))


def unchanged_functions(catalog: Catalog, spec: Mapping[str, Any]) -> Functions | None:
    """The custom functions of a run, if it has any; raises where they are not those that it began with."""
    before = logged(spec.get("object_table"), spec.get("functions"))
    if before is None:
        return None
    now = object_table.functions(catalog, before.table)
    others = changed(before, now)
    if others:
        raise ObjectNotReady(
            f"{MODULE} error: custom functions {', '.join(others)} of object table {before.table} are not what they"
            " were when the run began.",
            hint="A run goes on with the sources that it began with. Train anew, or register them again.",
        )
    return now


def architecture_table(
    catalog: Catalog, place: Workplace, spec: Mapping[str, Any], fresh: Sequence[int]
) -> tuple[Relation, set[int]]:
    """The architecture table, and which of the models that nothing was trained of yet begin with weights in it."""
    table = existing(catalog, spec["tables"]["architectures"])
    found = read_architectures(place, table, list(fresh))
    missing = sorted(set(fresh) - found.keys())
    if missing:
        raise ObjectNotReady(
            f"table {table.given} has no models {missing} any more, with whose weights configurations begin",
            hint="Load them again by load_keras_model(), under the same model_id.",
        )
    return table, {model_id for model_id, model in found.items() if model.has_weights}


def check_unchanged(table: PackedTable, logged: Mapping[str, Any], segments: Sequence[int]) -> None:
    """Raises ObjectNotReady where a packed table is not the one that the run began with."""
    now = json.loads(json.dumps(table.described()))
    # What an earlier version logged has not all of the names.
    differing = sorted(name for name in now.keys() & logged.keys() if name != "table" and now[name] != logged[name])
    if list(table.segments) != list(segments):
        differing.append("segments")
    if differing:
        raise ObjectNotReady(
            f"packed table {table.relation.given} is not what it was when the run began: {', '.join(differing)} differ",
            hint="A run goes on over the table that it began with. Train anew.",
        )
