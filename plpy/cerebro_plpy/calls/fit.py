"""A call of fit from its arguments to its tables: check everything, train, write the outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cerebro_plpy.calls.fit_arguments import FitArguments, check_arguments
from cerebro_plpy.calls.fit_request import build_request, find_inputs
from cerebro_plpy.calls.outputs import finish, found_outputs
from cerebro_plpy.calls.warm_start import warm_states
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.platform.workplace import opened
from cerebro_plpy.run.lifecycle import Logged, nobody, train
from cerebro_plpy.trainer import settings


def fit(db: Database, session: dict[str, Any], arguments: FitArguments, version: str, logged: Logged = nobody) -> None:
    """Train, and make the output tables; `logged` hears of the run when it is in the log."""
    check_transaction(db, arguments.module)
    epochs, frequency, schedule = check_arguments(arguments)
    settings.devices(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, arguments.module)
    before, output = found_outputs(catalog, arguments)
    inputs = find_inputs(catalog, arguments)
    with opened(db, session, {**inputs, **before}.values(), arguments.workers) as place:
        request = build_request(catalog, place, arguments, (epochs, frequency, schedule))
        if before:
            request = replace(request, warm_states=warm_states(place.reader, before, request))
        request.spec["version"] = version
        request.spec["tables"] = {name: found.quoted for name, found in {**inputs, "model_output": output}.items()}
        run_id = train(db, place, request, None, logged)
    finish(db, run_id, output, arguments, refill=bool(before))
