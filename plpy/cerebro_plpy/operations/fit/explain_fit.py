"""What a fit call would do: its run is asked for and its trainers are started as for training, but
nothing is trained.

Programs of which nobody knows how long they take are timed on real rows; the timings are all that
is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.operations.fit.cost_limits import read_prices
from cerebro_plpy.operations.fit.fit_arguments import check_arguments, get_module_name
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.records import fields, replace
from cerebro_plpy.run.activation_cache.builder import with_planned
from cerebro_plpy.run.activation_cache.selection import Site
from cerebro_plpy.run.log.form_timings import SHARDED, Situation, compilation, digest
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.planning import explain_output, run_estimate
from cerebro_plpy.run.planning.workload import Probed
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.admission import refuse, wish_of
from cerebro_plpy.run.workers.framework_choice import Probe
from cerebro_plpy.run.workers.workers import Crew, choose_frameworks, start
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.trainer_client import settings

MODULE = "plan_fit"
NO_RUN = 0  # there is no run of that number


def plan_fit(
    db: Database, gd: dict[str, Any], arguments: FitArguments, version: str, form: str | None
) -> list[str]:
    """The plan of a fit call, line by line."""
    wanted = check_format(MODULE, form)
    catalog = Catalog(db, get_module_name(arguments))
    check_transaction(db, MODULE)
    course = check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    inputs = find_inputs(catalog, arguments)
    call = FitCall(arguments, course, inputs, None, version)
    with open_context(db, gd, inputs.get_relations().values(), arguments.workers) as workplace:
        request = build_request(catalog, workplace, call)
        plan = plan_request(workplace, request)
    known = explain_output.Known(request.repeat.orders, read_prices(workplace.settings))
    return explain_output.written(explain_output.tree(plan, known), wanted)


def read_arguments(given: Mapping[str, Any]) -> FitArguments:
    """The arguments of the fit call: those that are given; how it is executed does not depend on
    the others.
    """
    return FitArguments(**{each.name: given.get(each.name) for each in fields(FitArguments)})


def check_format(module: str, form: str | None) -> str:
    """The format of a plan."""
    if form not in explain_output.FORMATS:
        raise InvalidParameter(
            f"{module} error: format is {form!r}; expected one of "
            f"{', '.join(explain_output.FORMATS)}."
        )
    return form


def plan_request(workplace: CallContext, request: FitRequest) -> RunPlan:
    """The plan of a request, when what nobody has timed yet was timed."""
    wish = wish_of(workplace, request)
    refuse(workplace.db, wish)
    crew, log = start(workplace, request, wish.most), RunLog(workplace.control, NO_RUN)
    request, workers = choose_frameworks(workplace, request, crew, log)
    crew = replace(crew, workers=workers)
    whole, request = request, with_planned(Site(workplace, crew, log), request)
    probed = time_programs(workplace, request, whole, crew, log)
    trainers = run_estimate.trainers_of(workplace, request, workers)
    plan = run_estimate.foresee(workplace.control, request, trainers, 0.0, probed)
    if plan is None:
        raise ObjectNotReady(
            f"{MODULE} error: no trainer could be started.", hint="Call again, or look at the log."
        )
    return plan


def time_programs(
    workplace: CallContext, request: FitRequest, whole: FitRequest, crew: Crew, log: RunLog
) -> dict[str, Probed]:
    """Time one configuration of each program that was never timed with such trainers; what was
    found, by program.

    One that would train on what is not stored yet is timed as a `whole`.
    """
    names = {
        config.mst_key: digest(visit_jobs.program(request, config)) for config in request.configs
    }
    known = log.known_timings(sorted({*names.values()}))
    found: dict[str, Probed] = {}
    for config in request.configs:
        worker = next(
            each for each in crew.workers if each.framework == request.backends[config.mst_key]
        )
        name, batch = names[config.mst_key], config.fit.batch_size
        situation = Situation(worker.memory.machine, name, batch, worker.memory.threads)
        compiled = compilation(name, batch)
        forms = known.of(situation)
        if compiled not in found and (
            not forms or SHARDED in forms
        ):  # into how many depends on the memory there is
            workplace.check()
            rows = config.fit.passes * request.spec.epochs * request.source.rows
            found[compiled] = Probe(crew.visits, worker, log).timed(whole, config, rows)
    return found
