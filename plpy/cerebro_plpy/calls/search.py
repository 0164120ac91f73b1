"""A call of AutoML from its arguments to its tables: check everything, search, write the outputs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cerebro_plpy.calls import search_outputs
from cerebro_plpy.calls.inputs import find_packed_inputs
from cerebro_plpy.calls.run_tables import drop_states
from cerebro_plpy.calls.search_arguments import MODULE, AutomlArguments, Method, check_frequency, read_method
from cerebro_plpy.calls.search_outputs import SearchTables
from cerebro_plpy.calls.search_runs import Basis, Runs
from cerebro_plpy.calls.suggester import Suggester
from cerebro_plpy.configs import stages
from cerebro_plpy.configs.custom_functions import Functions
from cerebro_plpy.configs.grid import ConfigRow, check_size, how_many, random_search
from cerebro_plpy.configs.space import Space, read_space
from cerebro_plpy.configs.spec import FitArguments, SearchSpec
from cerebro_plpy.configs.stages import Search
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.hopping.hyperband import Hyperband
from cerebro_plpy.hopping.policies import LONGEST
from cerebro_plpy.platform.workplace import Workplace, open_workplace
from cerebro_plpy.records import fields
from cerebro_plpy.tables import object_table, outputs, selection
from cerebro_plpy.tables.architectures import read_architectures
from cerebro_plpy.trainer import settings

REPEATABLE = "rotation"  # the order of visits does not depend on how long they take


def automl(db: Database, gd: dict[str, Any], arguments: AutomlArguments, version: str) -> None:
    """Search, and make the output tables."""
    check_transaction(db, MODULE)
    name, text, method = read_method(arguments)
    if not isinstance(method, Hyperband):
        check_frequency(method, arguments.metrics_compute_frequency)
    settings.devices(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    for name_of_output in (arguments.model_selection_table, arguments.model_output_table):
        catalog.output_name(name_of_output)
    packed = find_packed_inputs(catalog, arguments.source_table, arguments.validation_table)
    architectures = selection.check_models(catalog, arguments.model_arch_table, arguments.model_id_list)
    space = _space(arguments, method, object_table.functions(catalog, arguments.object_table))
    selected = selection.create(catalog, arguments.model_selection_table, architectures, arguments.object_table)
    output = catalog.output(arguments.model_output_table, outputs.SUFFIXES)
    inputs = {**packed.relations(), "architectures": architectures}
    with open_workplace(db, gd, inputs.values(), None) as workplace:
        seed = secrets.randbits(31) if arguments.random_state is None else arguments.random_state % (1 << 31)
        basis = Basis(
            arguments=_fit_arguments(arguments),
            data=packed.read(catalog, workplace.reader),
            table=architectures,
            architectures=read_architectures(workplace.reader, architectures, _ids(arguments)),
            seed=seed,
            schedule=LONGEST if arguments.random_state is None else REPEATABLE,
            search=SearchSpec(name, text, arguments.random_state),
            object_table=arguments.object_table,
            tables={key: found.quoted for key, found in {**inputs, "model_output": output}.items()},
            version=version,
        )
        runs = Runs(catalog, workplace, basis, space.functions)
        with _searching(db, workplace, arguments, method, space, runs) as search:
            try:
                best = runs.search(search)
            except BaseException:
                runs.abandon()
                raise
    _tell_fewer(db, method, len(runs.tried))
    search_outputs.write(db, SearchTables(output, selected), arguments, runs, best)
    for run_id in runs.run_ids:  # with the tables, when the caller commits
        drop_states(db, run_id)


def load_schedule(db: Database, table: str | None, r: int | None, eta: int | None, skip_last: int | None) -> None:
    """Make a table of Hyperband's rounds."""
    catalog = Catalog(db, "hyperband_schedule")
    if r is None:
        raise NullNotAllowed("hyperband_schedule error: r is NULL; expected the most iterations of a round.")
    method = Hyperband(r, 3 if eta is None else eta, skip_last or 0)
    method.check(catalog.module)
    output = catalog.output(table)
    db.rows(sql("automl.schedule", output=output.quoted, **db.platform.clauses))
    for found in method.schedule():
        db.rows(sql("automl.add_schedule", output=output.quoted), *found)


def _space(arguments: AutomlArguments, method: Method, functions: Functions | None) -> Space:
    """The search space, which must hold as many configurations as the method tries."""
    space = read_space(arguments.compile_params_grid, arguments.fit_params_grid, _ids(arguments), functions)
    wanted = _wanted(method)
    check_size(wanted)
    found = how_many(space, wanted)
    if found < wanted:
        raise InvalidParameter(
            f"{MODULE}: {method} tries {wanted} configurations, but the search space holds {found} different ones",
            hint="Ask for fewer in automl_params, or give longer lists or ranges.",
        )
    return space


def _wanted(method: Method) -> int:
    if isinstance(method, Hyperband):
        return sum(len(keys) for _, keys in method.brackets())
    return method.num_configs


def _ids(arguments: AutomlArguments) -> list[int]:
    return [model_id for model_id in arguments.model_id_list or () if model_id is not None]


def _fit_arguments(arguments: AutomlArguments) -> FitArguments:
    """The arguments that the runs of a search have in common with a fit call; all others are left open."""
    return FitArguments(**{each.name: vars(arguments).get(each.name) for each in fields(FitArguments)})


@contextmanager
def _searching(
    db: Database, workplace: Workplace, arguments: AutomlArguments, method: Method, space: Space, runs: Runs
) -> Iterator[Search]:
    """The stages of the method; what can be said of its configurations beforehand is checked."""

    def drawn(count: int, seed: int | None) -> Sequence[ConfigRow]:
        grids = arguments.compile_params_grid, arguments.fit_params_grid
        return random_search(*grids, _ids(arguments), count, seed, space.functions)

    if isinstance(method, Hyperband):
        rows = drawn(_wanted(method), arguments.random_state)
        runs.check(rows)
        yield stages.hyperband(method, rows)
        return
    runs.check([row._replace(model_id=model_id) for row in drawn(1, 0) for model_id in _ids(arguments)])
    basis = runs.basis
    with Suggester(db, workplace.settings, space, method.algorithm, basis.seed) as suggester:
        yield stages.hyperopt(method, len(basis.data.source.segments), space, suggester.suggest)


def _tell_fewer(db: Database, method: Method, tried: int) -> None:
    if tried < _wanted(method):
        db.notice(f"{tried} configurations were tried, not {_wanted(method)}: no others were suggested.")
