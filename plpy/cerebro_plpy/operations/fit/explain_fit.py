"""The plan of a fit call: its request is built and its trainers start, but nothing is trained.

Programs without timings are timed on real rows. Only these timings are stored.
"""

from __future__ import annotations

from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.operations.fit.cost_limits import convert_intervals, read_prices
from cerebro_plpy.operations.fit.fit_arguments import check_arguments, get_module_name
from cerebro_plpy.operations.fit.fit_request import FitCall, build_request
from cerebro_plpy.operations.fit.input_tables import find_inputs
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.builder import plan_activations
from cerebro_plpy.run.activation_cache.selection import BuildContext
from cerebro_plpy.run.log.form_timings import SHARDED, TimingKey, hash_program, make_compilation_key
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.planning import explain_output, explain_tree, run_estimate
from cerebro_plpy.run.planning.template_rates import NO_RUN
from cerebro_plpy.run.planning.workload import ProbeResult
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.admission import check_quotas, make_slot_request
from cerebro_plpy.run.workers.framework_choice import Probe
from cerebro_plpy.run.workers.workers import WorkerSet, choose_frameworks, start_workers
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.trainer_client import settings

MODULE = "plan_fit"


def plan_fit(
    db: Database, gd: Globals, arguments: FitArguments, version: str, form: str | None
) -> list[str]:
    """Return the lines of a fit call's plan.

    Args:
        version: the version of the extension.
        form: the format of the plan.
    """
    form = check_format(MODULE, form)
    catalog = Catalog(db, get_module_name(arguments))
    check_transaction(db, MODULE)
    arguments = convert_intervals(db, catalog.module, arguments)
    options = check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    inputs = find_inputs(catalog, arguments)
    call = FitCall(arguments, options, inputs, None, version)
    tables = inputs.get_relations().values()
    with open_context(db, gd, tables, arguments.workers) as context:
        request = build_request(catalog, context, call)
        plan = _plan_request(context, request)
    plan_context = explain_tree.PlanContext(request.replay.orders, read_prices(context.settings))
    return explain_output.format_tree(explain_tree.build_tree(plan, plan_context), form)


def check_format(module: str, form: str | None) -> str:
    """Check the format of a plan."""
    if form not in explain_output.FORMATS:
        raise InvalidParameter(
            f"{module} error: format is {form!r}; expected one of "
            f"{', '.join(explain_output.FORMATS)}."
        )
    return form


def _plan_request(context: CallContext, request: FitRequest) -> RunPlan:
    """Return the plan of a request, after programs without timings were timed."""
    slot_request = make_slot_request(context, request)
    check_quotas(context.db, slot_request)
    worker_set = start_workers(context, request, slot_request.max_slots)
    log = RunLog(context.control, NO_RUN)
    request, workers = choose_frameworks(context, request, worker_set, log)
    worker_set = replace(worker_set, workers=workers)
    planned_request = plan_activations(BuildContext(context, worker_set, log), request)
    timings = _time_programs(context, planned_request, request, worker_set, log)
    trainers = run_estimate.describe_trainers(context, planned_request, workers)
    plan = run_estimate.make_plan(context.control, planned_request, trainers, 0.0, timings)
    if plan is None:
        raise ObjectNotReady(
            f"{MODULE} error: no trainer could be started.", hint="Call again, or look at the log."
        )
    return plan


def _time_programs(
    context: CallContext,
    request: FitRequest,
    complete_request: FitRequest,
    worker_set: WorkerSet,
    log: RunLog,
) -> dict[str, ProbeResult]:
    """Time one configuration of each program that has no timings for such trainers.

    Args:
        complete_request: the request without stored activations, which do not exist yet: whole
            networks are timed.

    Returns:
        The timings by program and batch size.
    """
    programs = {
        config.mst_key: hash_program(visit_jobs.describe_program(request, config))
        for config in request.configs
    }
    logged_timings = log.read_timings(sorted(set(programs.values())))
    timings: dict[str, ProbeResult] = {}
    for config in request.configs:
        backend = request.backends[config.mst_key]
        worker = next(worker for worker in worker_set.workers if worker.framework == backend)
        program = programs[config.mst_key]
        batch_size = config.fit.batch_size
        memory = worker.memory
        forms = logged_timings.get(TimingKey(memory.machine, program, batch_size, memory.threads))
        # The number of shards depends on the memory that is free, so sharded programs are timed.
        if forms and SHARDED not in forms:
            continue
        key = make_compilation_key(program, batch_size)
        if key not in timings:
            context.check()
            rows = config.fit.passes * request.spec.epochs * request.source.rows
            timings[key] = Probe(worker_set.visits, worker, log).time(
                complete_request, config, rows
            )
    return timings
