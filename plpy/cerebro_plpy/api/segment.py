"""The SQL functions that run on a segment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cerebro_plpy.api.entry import (
    Globals,
    check_counts,
    get_database,
    read_package_version,
    report_errors,
)
from cerebro_plpy.database import progress
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.sql_errors import raise_to_sql
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.tables.models import granted_function
from cerebro_plpy.trainer_client import (
    ownership,
    packed_rows,
    prediction_rows,
    privileged_requests,
    request_schema,
    responses,
    segment_functions,
    settings,
    usage_ledger,
)
from cerebro_plpy.trainer_client.argument_checks import (
    check_integer,
    check_type,
    parse_object,
    require,
)
from cerebro_plpy.trainer_client.connection import Buffer
from cerebro_plpy.trainer_client.prediction_rows import PredictedBlock
from cerebro_plpy.trainer_client.process import compilation_cache
from cerebro_plpy.trainer_client.process.installed_modules import try_import
from cerebro_plpy.trainer_client.segment_functions import get_trainer
from cerebro_plpy.trainer_client.settings import TrainerOptions


@report_errors
def trainer_start(plpy: Any, gd: Globals, spec: str | None) -> str:
    """Start a trainer with the options in `spec`; return its report as JSON."""
    options = settings.parse_options(parse_object("spec", spec))
    hello = _start_trainer(plpy, gd, options)
    return json.dumps({**hello, "cost": segment_functions.take_cost(gd)})


@report_errors
def trainer_report(plpy: Any, gd: Globals, framework: str) -> str:
    """Start a trainer as a run does; return a report on trainer and host for `cerebro-db check`."""
    db = get_database(plpy)
    hello = _start_trainer(plpy, gd, TrainerOptions(framework=framework))
    current = settings.read(db)
    segment_functions.park_trainer(gd, current.trainer_idle_seconds)
    cache = {}
    if db.value(sql("functions.superuser")):  # others must not see paths of data and homes
        folder = compilation_cache.choose_folder(current.compilation_cache)
        cache = {"compilation_cache": folder.path, "compilation_cache_problem": folder.problem}
    versions: dict[str, Any] = {"package": read_package_version()}
    if framework != "none":
        spec = settings.trainer_spec(current, TrainerOptions(framework=framework))
        versions["lightgbm"] = try_import(spec, "lightgbm")._asdict()
    return json.dumps({**hello, **versions, **cache})


def _start_trainer(plpy: Any, gd: Globals, options: TrainerOptions) -> dict[str, Any]:
    """Start a trainer; return its report.

    The settings are read here and are not parameters: a caller must choose neither the program that
    is executed nor any other device.
    """
    db = get_database(plpy)
    current = settings.read(db)
    if options.gpu is not None and options.gpu not in settings.choose_gpus(current, True):
        raise InvalidParameter(f"GPU {options.gpu} is not one of those that trainers may use.")
    spec = settings.trainer_spec(current, options)
    cache_bytes = settings.cache_bytes(current, options.trainers)
    trainer = segment_functions.start_trainer(db.check_interrupts, gd, spec)
    return {**trainer.hello, "cache_bytes": cache_bytes}


@report_errors
def trainer_rest(plpy: Any, gd: Globals) -> None:
    """Let the trainer of this session wait for the next call."""
    idle_seconds = settings.read(get_database(plpy)).trainer_idle_seconds
    segment_functions.park_trainer(gd, idle_seconds)


@report_errors
def dataset_open(plpy: Any, gd: Globals, dataset: str, cache_bytes: int) -> None:
    """Announce a data set to the trainer."""
    size = require("cache_bytes", cache_bytes)
    link = get_trainer(gd)
    name = require("dataset", dataset)
    link.send(request_schema.build_request("open", dataset=name, cache_bytes=size))


@report_errors
def dataset_add(
    plpy: Any,
    gd: Globals,
    dataset: str,
    pass_no: int,
    buffer_id: int,
    shapes: str | None,
    part: bytes,
) -> int:
    """Send a part of a packed row to the trainer; return its length."""
    fields = {"dataset": dataset, "pass_no": pass_no, "buffer_id": buffer_id, "part": part}
    for name, value in fields.items():
        require(name, value)
    return segment_functions.add_part(get_trainer(gd), dataset, pass_no, buffer_id, shapes, part)


@report_errors
def dataset_close(plpy: Any, gd: Globals, dataset: str) -> str:
    """End a data set; return JSON with buffers, rows, bytes and cached."""
    link = get_trainer(gd)
    return json.dumps(link.call(request_schema.build_request("close", dataset=dataset)))


@report_errors
def state_add(plpy: Any, gd: Globals, part: int, chunk: bytes) -> int:
    """Send one chunk of a state to the trainer; return its length."""
    segment_functions.add_state(gd, part, require("chunk", chunk))
    return len(chunk)


@report_errors
@check_counts
def state_chunks(
    plpy: Any, gd: Globals, chunk_bytes: int, key: str | None, part: str | None
) -> Iterator[Buffer]:
    """Yield the state of a job, or a part of the state, in chunks.

    Args:
        key: name of the state.
    """

    def begin() -> Iterator[Buffer]:
        name = require("key", key)
        variables = require("part", part)
        link = get_trainer(gd)
        return segment_functions.stream_state(link, chunk_bytes, name, variables)

    yield from _yield_chunks(plpy, raise_to_sql(plpy, begin))


@report_errors
@check_counts
def row_outputs(plpy: Any, gd: Globals, units: int, chunk_bytes: int) -> Iterator[Buffer]:
    """Yield the outputs of a job's rows, in chunks of whole rows."""

    def begin() -> Iterator[Buffer]:
        link = get_trainer(gd)
        return segment_functions.stream_outputs(link, units, chunk_bytes)

    yield from _yield_chunks(plpy, raise_to_sql(plpy, begin))


def _yield_chunks(plpy: Any, chunks: Iterator[Buffer]) -> Iterator[Buffer]:
    """Yield chunks; raise errors as SQL errors."""
    while True:
        chunk = raise_to_sql(plpy, lambda: next(chunks, None))
        if chunk is None:
            return
        yield chunk


@report_errors
def job_begin(plpy: Any, gd: Globals, spec: str) -> str:
    """Begin a job; return the trainer's response as JSON."""
    values = parse_object("spec", spec)
    request = privileged_requests.add_sources(get_database(plpy), values)
    link = get_trainer(gd)
    return json.dumps(segment_functions.begin_job(gd, link, request))


@report_errors
def sealed_job(
    plpy: Any, gd: Globals, model: int | None, spec: str | None, mst_key: int | None
) -> int:
    """Begin a job on secret weights with the function of their owner; return their chunk count.

    Args:
        model: oid of the model table.
    """
    db = get_database(plpy)
    oid = require("model", model)
    key = require("mst_key", mst_key)
    get_trainer(gd)
    with db.pinned_path():
        return granted_function.run(db, oid, require("spec", spec), key)


@report_errors
def sealed_begin(plpy: Any, gd: Globals, spec: str | None, architecture: str | None) -> str:
    """Begin a job on secret weights; return the trainer's response as JSON.

    Args:
        architecture: JSON of the network, as the owner of the weights has stored it.
    """
    trainer = get_trainer(gd, sealed=True)
    request = privileged_requests.build_sealed_request(
        parse_object("spec", spec),
        parse_object("architecture", architecture),
    )
    sealed_request = privileged_requests.add_sources(get_database(plpy), request)
    message = request_schema.build_request("begin", sealed_request, sealed=True)
    return json.dumps(trainer.call(message))


@report_errors
def sealed_add(plpy: Any, gd: Globals, part: int | None, chunk: bytes | None) -> int:
    """Send one chunk of secret weights to the trainer; return its length."""
    data = require("chunk", chunk)
    segment_functions.add_state(gd, require("part", part), data, sealed=True)
    return len(data)


@report_errors
def job_start(plpy: Any, gd: Globals) -> None:
    """Start the job that was begun, without waiting for its end."""
    get_trainer(gd).post(request_schema.build_request("finish"))


@report_errors
def job_finish(plpy: Any, gd: Globals) -> str:
    """End a job; return its result, the free memory of the trainer and the cost, as JSON."""
    result = segment_functions.finish_job(gd, get_trainer(gd))
    return strict_json.dumps(result)


@report_errors
def job_cost(plpy: Any, gd: Globals) -> str:
    """Return the cost since the last job that ended, as JSON; works without a trainer, too."""
    ownership.check_owner(gd)
    return json.dumps(segment_functions.take_cost(gd))


@report_errors
def job_series(plpy: Any, gd: Globals, spec: str | None) -> str:
    """End a job and do others after it, until a loss is not finite; return all results as JSON."""
    db = get_database(plpy)
    link = get_trainer(gd)
    results = []
    try:
        parsed = parse_object("spec", spec)
        jobs = check_type("jobs", parsed.get("jobs"), list)
        for job in (None, *jobs):  # the first one was begun before
            if job is not None:
                values = check_type("a job", job, dict)
                request = privileged_requests.add_sources(db, values)
                segment_functions.begin_job(gd, link, request)
            results.append(segment_functions.finish_job(gd, link))
            if responses.find_diverged(results[-1].get("metrics", {})):
                break
    except BaseException:
        for result in results:  # they are not returned: the next report contains their cost
            usage_ledger.get_ledger(gd).restore(result["cost"])
        raise
    return strict_json.dumps({"results": results})


@report_errors
def metric_results(plpy: Any, gd: Globals, spec: str) -> str:
    """Return the final values of metrics as JSON."""
    values = strict_json.restore(parse_object("spec", spec))
    request = privileged_requests.add_sources(get_database(plpy), values)
    link = get_trainer(gd)
    return strict_json.dumps(link.call(request_schema.build_request("results", request)))


@report_errors
def buffer_features(plpy: Any, gd: Globals, spec: str | None, inputs: list[bytes] | None) -> Buffer:
    """Return the activations of a layer for the rows of a buffer.

    Args:
        spec: JSON with the layer, the buffer and the shapes of the inputs.
    """
    arrays = [check_type("an input", part, bytes) for part in require("inputs", inputs)]
    link = get_trainer(gd)
    values = parse_object("spec", spec)
    return segment_functions.compute_features(link, values, arrays)


@report_errors
def predict_begin(plpy: Any, gd: Globals, spec: str) -> None:
    """Begin to collect rows for predictions."""
    prediction_rows.begin_prediction(gd, get_trainer(gd), spec)


@report_errors
def predict_add(
    plpy: Any, gd: Globals, id: str | None, inputs: list[bytes | None] | None
) -> PredictedBlock | None:
    """Add a row; return the predictions of a block if one is complete, else None."""
    return prediction_rows.current_prediction(gd).add(id, inputs)


@report_errors
def predict_rest(plpy: Any, gd: Globals) -> PredictedBlock | None:
    """Send the last rows; return the predictions of the previous block."""
    return prediction_rows.current_prediction(gd).flush()


@report_errors
def pack_block(plpy: Any, gd: Globals, spec: str | None, data: list[bytes] | None) -> str | None:
    """Send a block of rows to be packed.

    Returns:
        JSON of the previous buffer if this block begins another one, else None.
    """

    def start() -> None:
        _start_trainer(plpy, gd, TrainerOptions(framework="none"))

    db = get_database(plpy)
    has_trainer = segment_functions.has_trainer(gd)
    buffer = None
    if db.platform.ensure_packer(has_trainer, spec is not None, start):
        link = get_trainer(gd)
        buffer = packed_rows.send_block(gd, link, spec, data)
    if progress.KEY in gd:
        rows = packed_rows.count_block_rows(gd)
        progress.current_progress(gd).add(db, "packed", rows)
    return buffer


@report_errors
def packed_array(plpy: Any, gd: Globals, place: int | None) -> bytes:
    """Return an array of the buffer that `pack_block` has described."""
    link = get_trainer(gd)
    return packed_rows.fetch_array(gd, link, check_integer("place", place))


@report_errors
def trainer_stop(plpy: Any, gd: Globals) -> None:
    """End the trainer of this session, if there is one."""
    segment_functions.stop_trainer(gd)


@report_errors
def gpu_count(plpy: Any, gd: Globals) -> int:
    """Return the number of GPUs of this machine that trainers may use."""
    return len(settings.usable_gpus(settings.read(get_database(plpy))))
