"""A call of fit from its arguments to its tables: check everything, train, write the outputs."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.fit.fit_arguments import check_arguments, get_module_name
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.operations.fit.run_outputs import begin_incremental_output, find_outputs, finish
from cerebro_plpy.operations.fit.warm_start import continue_training
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.run.lifecycle import Audience, Logged, completing, nobody, train
from cerebro_plpy.trainer_client import settings


def fit(
    db: Database, gd: dict[str, Any], arguments: FitArguments, version: str, logged: Logged = nobody
) -> None:
    """Train, and make the output tables; `logged` hears of the run when it is in the log."""
    catalog = Catalog(db, get_module_name(arguments))
    check_transaction(db, catalog.module)
    course = check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    inputs, outputs = find_inputs(catalog, arguments), find_outputs(catalog, arguments)
    call = FitCall(arguments, course, inputs, outputs.table, version)
    relations = [*call.inputs.relations().values(), *outputs.relations()]
    with open_context(db, gd, relations, arguments.workers) as workplace:
        request = build_request(catalog, workplace, call)
        if outputs.existing:
            request = continue_training(workplace.reader, outputs.existing, request)
        outputs = begin_incremental_output(db, workplace, request, outputs)
        run_id = train(db, workplace, request, None, Audience(logged, outputs.beside))
    with completing(db, gd, run_id):
        finish(db, gd, run_id, outputs, keep_states=arguments.keep_states)
