"""A call of AutoML: one run with a search, whose best configuration becomes the output."""

from __future__ import annotations

import json

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.configs.search_space.grid import check_size, count_configs
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import DIAGONALS
from cerebro_plpy.configs.search_space.space import read_lists, read_space
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import DuplicateTable, InvalidParameter, NullNotAllowed
from cerebro_plpy.limits import EPOCHS, check
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.automl_arguments import (
    MODULE,
    AutomlArguments,
    Method,
    check_frequency,
    read_method,
)
from cerebro_plpy.operations.fit.fit_arguments import RunOptions, fill_arguments
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_search_inputs
from cerebro_plpy.operations.fit.run_outputs import RunOutputs, finish
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.run.lifecycle import (
    OnLogged,
    RunListeners,
    ignore_run_id,
    log_completion_errors,
    train,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST
from cerebro_plpy.scheduling.search.hyperband import Hyperband
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.outputs import fit_output
from cerebro_plpy.trainer_client import settings

REPEATABLE = "rotation"  # the order of visits does not depend on how long they take
MAX_SEED = 1 << 31


def run_automl(
    db: Database,
    gd: Globals,
    arguments: AutomlArguments,
    version: str,
    on_logged: OnLogged = ignore_run_id,
) -> None:
    """Search for the best configuration and write the output tables.

    Args:
        version: the version of the extension, for the log.
        on_logged: called with the id of the run when the run is in the log.
    """
    check_transaction(db, MODULE)
    spec, method = read_method(arguments)
    check("the number of iterations of a configuration", method.epochs, EPOCHS)
    fit_arguments = _make_fit_arguments(arguments, method)
    options = _make_options(db, arguments, method, fit_arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    for table in (arguments.model_selection_table, arguments.model_output_table):
        catalog.check_output_name(table)
    selection = catalog.reserve_output(arguments.model_selection_table, ("_summary",))
    inputs = find_search_inputs(catalog, arguments, selection)
    _check_space(catalog, arguments, method)
    output = catalog.reserve_output(arguments.model_output_table, fit_output.SUFFIXES)
    _check_output_names(selection, output)
    call = FitCall(fit_arguments, options, inputs, output, version, spec)
    with open_context(db, gd, inputs.list_existing(), None) as context:
        request = build_request(catalog, context, call)
        run_id = train(db, context, request, None, RunListeners(on_logged))
    with log_completion_errors(db, gd, run_id):
        finish(db, gd, run_id, RunOutputs(output, None), keep_states=False)


def _check_output_names(selection: Relation, output: Relation) -> None:
    """Check that the output tables of the call have different names."""
    names = {(output.schema, output.name + suffix) for suffix in ("", *fit_output.SUFFIXES)}
    for suffix in ("", "_summary"):
        if (selection.schema, selection.name + suffix) in names:
            raise DuplicateTable(
                f"{MODULE} error: Output table '{selection.spelling}{suffix}' would be made twice: "
                "as model selection table and as output.",
                hint="Choose another name for one of them.",
            )


def create_hyperband_schedule(
    db: Database, table: str | None, r: int | None, eta: int | None, skip_last: int | None
) -> None:
    """Create a table of Hyperband's rounds."""
    catalog = Catalog(db, "hyperband_schedule")
    if r is None:
        raise NullNotAllowed(
            "hyperband_schedule error: r is NULL; expected the most iterations of a round."
        )
    method = Hyperband(r, 3 if eta is None else eta, skip_last or 0)
    method.check(catalog.module)
    output = catalog.reserve_output(table)
    db.rows(sql("automl.schedule", output=output.quoted, **db.platform.clauses))
    for bracket_round in method.schedule():
        db.rows(sql("automl.add_schedule", output=output.quoted), *bracket_round)


def _make_options(
    db: Database, arguments: AutomlArguments, method: Method, fit_arguments: FitArguments
) -> RunOptions:
    """Return the options of the run; the rule contains all that is special about AutoML."""
    rule = read_search_rule(
        MODULE, fit_arguments.search, fit_arguments.search_params, method.epochs
    )
    frequency = arguments.metrics_compute_frequency
    if not isinstance(method, Hyperband):
        check_frequency(method, frequency)
    elif frequency is not None and not 1 <= frequency <= method.epochs:
        db.notice(
            f"metrics_compute_frequency is {frequency}, but there are "
            f"{count_nouns(method.epochs, 'iteration')} "
            "at most: metrics are computed at the ends of rounds only."
        )
        frequency = None
    schedule = LONGEST if arguments.random_state is None else REPEATABLE
    return RunOptions(method.epochs, frequency or method.epochs, schedule, rule)


def _make_search(arguments: AutomlArguments, method: Method) -> tuple[str, str]:
    """Return the search and its parameters as arguments of a fit call."""
    space = {
        "compile_params": read_lists(arguments.compile_params_grid, "compile_params_dict"),
        "fit_params": read_lists(arguments.fit_params_grid, "fit_params_dict"),
        "models": _list_model_ids(arguments),
    }
    params = {"configs": method.configs, "space": space}
    if not isinstance(method, Hyperband):
        return method.sampler, json.dumps(params)
    bounds = {"R": method.R, "eta": method.eta, "skip_last": method.skip_last, "live_states": 1}
    return DIAGONALS, json.dumps({**params, **bounds})


def _check_space(catalog: Catalog, arguments: AutomlArguments, method: Method) -> None:
    """Check that the search space has as many configurations as the method tries."""
    functions = object_table.find_functions(catalog, arguments.object_table)
    check_size(method.configs)
    space = read_space(
        arguments.compile_params_grid,
        arguments.fit_params_grid,
        _list_model_ids(arguments),
        functions,
        catalog.db.check_interrupts,
    )
    size = count_configs(space, method.configs)
    if size < method.configs:
        raise InvalidParameter(
            f"{MODULE}: {method} tries {count_nouns(method.configs, 'configuration')}, but the "
            f"search space holds {size} different ones",
            hint="Ask for fewer in automl_params, or give longer lists or ranges.",
        )


def _list_model_ids(arguments: AutomlArguments) -> list[int]:
    return [model_id for model_id in arguments.model_id_list or () if model_id is not None]


def _make_fit_arguments(arguments: AutomlArguments, method: Method) -> FitArguments:
    """Return the arguments of a fit call with the same search."""
    search, search_params = _make_search(arguments, method)
    values = {
        **vars(arguments),
        "num_iterations": method.epochs,
        "search": search,
        "search_params": search_params,
        "keep_states": False,
    }
    if arguments.random_state is not None:
        values["seed"] = arguments.random_state % MAX_SEED
    return fill_arguments(values)
