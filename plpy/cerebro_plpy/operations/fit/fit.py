"""A call of fit: check everything, train, write the output tables."""

from __future__ import annotations

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.operations.fit.cost_limits import convert_intervals
from cerebro_plpy.operations.fit.fit_arguments import check_arguments, get_module_name
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.operations.fit.run_outputs import begin_incremental_output, find_outputs, finish
from cerebro_plpy.operations.fit.warm_start import continue_training
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.run.lifecycle import (
    OnLogged,
    RunListeners,
    ignore_run_id,
    log_completion_errors,
    train,
)
from cerebro_plpy.trainer_client import settings


def fit(
    db: Database,
    gd: Globals,
    arguments: FitArguments,
    version: str,
    on_logged: OnLogged = ignore_run_id,
) -> None:
    """Train the configurations of a call and write its output tables.

    Args:
        version: the version of the extension, for the log.
        on_logged: called with the id of the run when the run is in the log.
    """
    catalog = Catalog(db, get_module_name(arguments))
    check_transaction(db, catalog.module)
    arguments = convert_intervals(db, catalog.module, arguments)
    options = check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    inputs = find_inputs(catalog, arguments)
    outputs = find_outputs(catalog, arguments)
    call = FitCall(arguments, options, inputs, outputs.table, version)
    tables = [*inputs.get_relations().values(), *outputs.list_existing()]
    with open_context(db, gd, tables, arguments.workers) as context:
        request = build_request(catalog, context, call)
        if outputs.existing:
            request = continue_training(context.reader, outputs.existing, request)
        outputs = begin_incremental_output(db, context, request, outputs)
        run_id = train(db, context, request, None, RunListeners(on_logged, outputs.observer))
    with log_completion_errors(db, gd, run_id):
        finish(db, gd, run_id, outputs, keep_states=arguments.keep_states)
