"""A call of AutoML from its arguments to its tables: one run with a search, whose best
configuration is kept.
"""

from __future__ import annotations

import json
from typing import Any

from cerebro_plpy.configs.run_spec import FitArguments, SearchSpec
from cerebro_plpy.configs.search_space.grid import check_size, count_configs
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import DIAGONALS
from cerebro_plpy.configs.search_space.space import read_lists, read_space
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DuplicateTable, InvalidParameter, NullNotAllowed
from cerebro_plpy.limits import EPOCHS, check
from cerebro_plpy.operations.fit.automl_arguments import (
    MODULE,
    AutomlArguments,
    Method,
    check_frequency,
    read_method,
)
from cerebro_plpy.operations.fit.fit_arguments import RunOptions
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_search_inputs
from cerebro_plpy.operations.fit.run_outputs import RunOutputs, finish
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.records import fields
from cerebro_plpy.run.lifecycle import Audience, Logged, completing, nobody, train
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST
from cerebro_plpy.scheduling.search.hyperband import Hyperband
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.outputs import fit_output
from cerebro_plpy.trainer_client import settings

REPEATABLE = "rotation"  # the order of visits does not depend on how long they take


def run_automl(
    db: Database,
    gd: dict[str, Any],
    arguments: AutomlArguments,
    version: str,
    logged: Logged = nobody,
) -> None:
    """Search, and make the output tables; `logged` hears of the run when it is in the log."""
    check_transaction(db, MODULE)
    name, text, method = read_method(arguments)
    course = _course(db, arguments, method)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    for table in (arguments.model_selection_table, arguments.model_output_table):
        catalog.check_output_name(table)
    chosen = catalog.reserve_output(arguments.model_selection_table, ("_summary",))
    inputs = find_search_inputs(catalog, arguments, chosen)
    _check_space(catalog, arguments, method)
    output = catalog.reserve_output(arguments.model_output_table, fit_output.SUFFIXES)
    _check_apart(chosen, output)
    call = FitCall(_fit_arguments(arguments, course, method), course, inputs, output, version)
    call = call._replace(search=SearchSpec(name, text, arguments.random_state))
    with open_context(db, gd, inputs.existing(), None) as workplace:
        request = build_request(catalog, workplace, call)
        run_id = train(db, workplace, request, None, Audience(logged))
    with completing(db, gd, run_id):
        finish(db, gd, run_id, RunOutputs(output, None), keep_states=False)


def _check_apart(chosen: Relation, output: Relation) -> None:
    """The tables that the call makes must have different names."""
    names = {(output.schema, output.name + suffix) for suffix in ("", *fit_output.SUFFIXES)}
    twice = [
        suffix for suffix in ("", "_summary") if (chosen.schema, chosen.name + suffix) in names
    ]
    if twice:
        raise DuplicateTable(
            f"{MODULE} error: Output table '{chosen.spelling}{twice[0]}' would be made twice: as "
            "model selection table and as output.",
            hint="Choose another name for one of them.",
        )


def create_hyperband_schedule(
    db: Database, table: str | None, r: int | None, eta: int | None, skip_last: int | None
) -> None:
    """Make a table of Hyperband's rounds."""
    catalog = Catalog(db, "hyperband_schedule")
    if r is None:
        raise NullNotAllowed(
            "hyperband_schedule error: r is NULL; expected the most iterations of a round."
        )
    method = Hyperband(r, 3 if eta is None else eta, skip_last or 0)
    method.check(catalog.module)
    output = catalog.reserve_output(table)
    db.rows(sql("automl.schedule", output=output.quoted, **db.platform.clauses))
    for found in method.schedule():
        db.rows(sql("automl.add_schedule", output=output.quoted), *found)


def _course(db: Database, arguments: AutomlArguments, method: Method) -> RunOptions:
    """How the run goes: all that decides is in the rule."""
    check("the number of iterations of a configuration", method.epochs, EPOCHS)
    name, params = _rule(arguments, method)
    rule, frequency = (
        read_search_rule(MODULE, name, params, method.epochs),
        arguments.metrics_compute_frequency,
    )
    if not isinstance(method, Hyperband):
        check_frequency(method, frequency)
    elif frequency is not None and not 1 <= frequency <= method.epochs:
        db.notice(
            f"metrics_compute_frequency is {frequency}, but there are {method.epochs} iterations "
            "at most: metrics are computed at the ends of rounds only."
        )
        frequency = None
    schedule = LONGEST if arguments.random_state is None else REPEATABLE
    return RunOptions(method.epochs, frequency or method.epochs, schedule, rule)


def _rule(arguments: AutomlArguments, method: Method) -> tuple[str, str]:
    """The search and its parameters, as a fit call would name them."""
    space = {
        "compile_params": read_lists(arguments.compile_params_grid, "compile_params_dict"),
        "fit_params": read_lists(arguments.fit_params_grid, "fit_params_dict"),
        "models": _ids(arguments),
    }
    drawn = {"configs": method.configs, "space": space}
    if not isinstance(method, Hyperband):
        return method.sampler, json.dumps(drawn)
    numbers = {"R": method.R, "eta": method.eta, "skip_last": method.skip_last, "live_states": 1}
    return DIAGONALS, json.dumps({**drawn, **numbers})


def _check_space(catalog: Catalog, arguments: AutomlArguments, method: Method) -> None:
    """The search space must hold as many configurations as the method tries."""
    functions = object_table.find_functions(catalog, arguments.object_table)
    check_size(method.configs)
    grids, poll = (
        (arguments.compile_params_grid, arguments.fit_params_grid),
        catalog.db.check_interrupts,
    )
    space = read_space(*grids, _ids(arguments), functions, poll)
    found = count_configs(space, method.configs)
    if found < method.configs:
        raise InvalidParameter(
            f"{MODULE}: {method} tries {method.configs} configurations, but the search space holds "
            f"{found} different ones",
            hint="Ask for fewer in automl_params, or give longer lists or ranges.",
        )


def _ids(arguments: AutomlArguments) -> list[int]:
    return [model_id for model_id in arguments.model_id_list or () if model_id is not None]


def _fit_arguments(arguments: AutomlArguments, course: RunOptions, method: Method) -> FitArguments:
    """The arguments of a fit call that would search so; all others are left open."""
    name, params = _rule(arguments, method)
    seed = None if arguments.random_state is None else arguments.random_state % (1 << 31)
    own = {
        "num_iterations": course.epochs,
        "seed": seed,
        "search": name,
        "search_params": params,
        "keep_states": False,
    }
    known = {**vars(arguments), **own}
    return FitArguments(**{each.name: known.get(each.name) for each in fields(FitArguments)})
