"""One function per SQL function that runs on a segment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cerebro_plpy.api.entry import bounded, database, package_version
from cerebro_plpy.database import progress
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import raise_to_sql
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.tables.models import granted_function
from cerebro_plpy.trainer_client import (
    argument_checks,
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
from cerebro_plpy.trainer_client.connection import Buffer
from cerebro_plpy.trainer_client.prediction_rows import PredictedBlock
from cerebro_plpy.trainer_client.process import compilation_cache
from cerebro_plpy.trainer_client.settings import TrainerOptions

Globals = dict[str, Any]


def trainer_start(plpy: Any, gd: Globals, spec: str | None) -> str:
    """Start the trainer that `spec` (the fields of TrainerRequest) asks for; its report as JSON."""

    def started() -> str:
        hello = _started(
            plpy, gd, settings.parse_options(argument_checks.parse_object("spec", spec))
        )
        return json.dumps({**hello, "cost": segment_functions.take_cost(gd)})

    return raise_to_sql(plpy, started)


def trainer_report(plpy: Any, gd: Globals, framework: str) -> str:
    """Start a trainer as a run would; its report as JSON, with what else of the host matters to
    `cerebro-db check`.
    """

    def report() -> str:
        db = database(plpy)
        hello = _started(plpy, gd, TrainerOptions(framework=framework))
        chosen = settings.read(db)
        segment_functions.park_trainer(gd, chosen.trainer_idle_seconds)
        code = {}
        if db.value(
            sql("functions.superuser")
        ):  # where data and homes lie is not everybody's business
            folder = compilation_cache.choose_folder(chosen.compilation_cache)
            code = {"compilation_cache": folder.path, "compilation_cache_problem": folder.problem}
        return json.dumps({**hello, "package": package_version(), **code})

    return raise_to_sql(plpy, report)


def _started(plpy: Any, gd: Globals, request: TrainerOptions) -> dict[str, Any]:
    # The settings are read here, not passed in: whoever may call this must not choose what is
    # executed, nor on which device.
    db = database(plpy)
    chosen = settings.read(db)
    if request.gpu is not None and request.gpu not in settings.choose_gpus(chosen, True):
        raise InvalidParameter(f"GPU {request.gpu} is not one of those that trainers may use.")
    spec, cache = (
        settings.trainer_spec(chosen, request),
        settings.cache_bytes(chosen, request.trainers),
    )
    return {
        **segment_functions.start_trainer(db.check_interrupts, gd, spec).hello,
        "cache_bytes": cache,
    }


def trainer_rest(plpy: Any, gd: Globals) -> None:
    """A call is over: the trainer of this session waits for the next one."""
    raise_to_sql(
        plpy,
        lambda: segment_functions.park_trainer(
            gd, settings.read(database(plpy)).trainer_idle_seconds
        ),
    )


def dataset_open(plpy: Any, gd: Globals, dataset: str, cache_bytes: int) -> None:
    """Announce a data set."""

    def open_it() -> None:
        size = argument_checks.require("cache_bytes", cache_bytes)
        link = segment_functions.get_trainer(gd)
        link.send(
            request_schema.build_request(
                "open", dataset=argument_checks.require("dataset", dataset), cache_bytes=size
            )
        )

    raise_to_sql(plpy, open_it)


def dataset_add(
    plpy: Any,
    gd: Globals,
    dataset: str,
    pass_no: int,
    buffer_id: int,
    shapes: str | None,
    part: bytes,
) -> int:
    """Pass a part of a packed row on; its length."""

    def add() -> int:
        names = zip(
            ("dataset", "pass_no", "buffer_id", "part"), (dataset, pass_no, buffer_id, part)
        )
        for name, value in names:
            argument_checks.require(name, value)
        return segment_functions.add_part(
            segment_functions.get_trainer(gd), dataset, pass_no, buffer_id, shapes, part
        )

    return raise_to_sql(plpy, add)


def dataset_close(plpy: Any, gd: Globals, dataset: str) -> str:
    """End a data set; JSON with buffers, rows, bytes and cached."""
    request = request_schema.build_request("close", dataset=dataset)
    return raise_to_sql(plpy, lambda: json.dumps(segment_functions.get_trainer(gd).call(request)))


def state_add(plpy: Any, gd: Globals, part: int, chunk: bytes) -> int:
    """Pass one chunk of a state on; its length."""
    raise_to_sql(
        plpy, lambda: segment_functions.add_state(gd, part, argument_checks.require("chunk", chunk))
    )
    return len(chunk)


@bounded
def state_chunks(
    plpy: Any, gd: Globals, chunk_bytes: int, key: str | None, part: str | None
) -> Iterator[Buffer]:
    """The state of that name that a job left, or a part of it, in chunks."""

    def begun() -> Iterator[Buffer]:
        named = argument_checks.require("key", key), argument_checks.require("part", part)
        return segment_functions.stream_state(
            segment_functions.get_trainer(gd), chunk_bytes, *named
        )

    chunks = raise_to_sql(plpy, begun)
    while True:
        chunk = raise_to_sql(plpy, lambda: next(chunks, None))
        if chunk is None:
            return
        yield chunk


@bounded
def row_outputs(plpy: Any, gd: Globals, units: int, chunk_bytes: int) -> Iterator[Buffer]:
    """Yield the outputs of rows that a job left, in chunks of whole rows."""
    chunks = raise_to_sql(
        plpy,
        lambda: segment_functions.stream_outputs(
            segment_functions.get_trainer(gd), units, chunk_bytes
        ),
    )
    while True:
        chunk = raise_to_sql(plpy, lambda: next(chunks, None))
        if chunk is None:
            return
        yield chunk


def job_begin(plpy: Any, gd: Globals, spec: str) -> str:
    """Begin a job."""

    def begun() -> str:
        asked = privileged_requests.add_sources(
            database(plpy), argument_checks.parse_object("spec", spec)
        )
        return json.dumps(segment_functions.begin_job(gd, segment_functions.get_trainer(gd), asked))

    return raise_to_sql(plpy, begun)


def sealed_job(
    plpy: Any, gd: Globals, model: int | None, spec: str | None, mst_key: int | None
) -> int:
    """Begin a job on weights that this session must not see, by the function of their owner; how
    many chunks came.
    """

    def begun() -> int:
        db, oid, key = (
            database(plpy),
            argument_checks.require("model", model),
            argument_checks.require("mst_key", mst_key),
        )
        segment_functions.get_trainer(gd)
        with db.pinned_path():
            return granted_function.run(db, oid, argument_checks.require("spec", spec), key)

    return raise_to_sql(plpy, begun)


def sealed_begin(plpy: Any, gd: Globals, spec: str | None, architecture: str | None) -> str:
    """Begin a job on weights that this session must not see, of the architecture that their owner
    has stored.
    """

    def begun() -> str:
        trainer = segment_functions.get_trainer(gd, sealed=True)
        request = privileged_requests.build_sealed_request(
            argument_checks.parse_object("spec", spec),
            argument_checks.parse_object("architecture", architecture),
        )
        asked = privileged_requests.add_sources(database(plpy), request)
        return json.dumps(trainer.call(request_schema.build_request("begin", asked, sealed=True)))

    return raise_to_sql(plpy, begun)


def sealed_add(plpy: Any, gd: Globals, part: int | None, chunk: bytes | None) -> int:
    """Pass one chunk of such a state on; its length."""

    def added() -> int:
        passed = argument_checks.require("chunk", chunk)
        segment_functions.add_state(gd, argument_checks.require("part", part), passed, sealed=True)
        return len(passed)

    return raise_to_sql(plpy, added)


def job_start(plpy: Any, gd: Globals) -> None:
    """Let the job that was begun be done, and do not wait for that."""
    raise_to_sql(
        plpy, lambda: segment_functions.get_trainer(gd).post(request_schema.build_request("finish"))
    )


def job_finish(plpy: Any, gd: Globals) -> str:
    """End a job; its result as JSON, with how much memory is left to the trainer, and what it has
    cost.
    """
    return raise_to_sql(
        plpy,
        lambda: strict_json.dumps(
            segment_functions.finish_job(gd, segment_functions.get_trainer(gd))
        ),
    )


def job_cost(plpy: Any, gd: Globals) -> str:
    """What was spent since the last job that ended, as JSON; also where the trainer is gone."""

    def told() -> str:
        ownership.check_owner(gd)
        return json.dumps(segment_functions.take_cost(gd))

    return raise_to_sql(plpy, told)


def job_series(plpy: Any, gd: Globals, spec: str | None) -> str:
    """End a job, and do others after it; the results of all, as JSON. None follows a loss that is
    no number.
    """

    def series() -> str:
        db, link, results = database(plpy), segment_functions.get_trainer(gd), []
        try:
            for job in (
                None,
                *argument_checks.check_type(
                    "jobs", argument_checks.parse_object("spec", spec).get("jobs"), list
                ),
            ):
                if job is not None:
                    asked = privileged_requests.add_sources(
                        db, argument_checks.check_type("a job", job, dict)
                    )
                    segment_functions.begin_job(gd, link, asked)
                results.append(segment_functions.finish_job(gd, link))
                if responses.find_diverged(results[-1].get("metrics", {})):
                    break
        except BaseException:
            for result in results:  # nobody hears of them
                usage_ledger.get_ledger(gd).restore(result["cost"])
            raise
        return strict_json.dumps({"results": results})

    return raise_to_sql(plpy, series)


def metric_results(plpy: Any, gd: Globals, spec: str) -> str:
    """Final values of metrics."""

    def results() -> str:
        asked = privileged_requests.add_sources(
            database(plpy), strict_json.restore(argument_checks.parse_object("spec", spec))
        )
        return strict_json.dumps(
            segment_functions.get_trainer(gd).call(request_schema.build_request("results", asked))
        )

    return raise_to_sql(plpy, results)


def buffer_features(plpy: Any, gd: Globals, spec: str | None, inputs: list[bytes] | None) -> Buffer:
    """What a layer gives for the rows of a buffer; `spec` names both, and has the shapes of the
    inputs.
    """

    def computed() -> Buffer:
        arrays = [
            argument_checks.check_type("an input", part, bytes)
            for part in argument_checks.require("inputs", inputs)
        ]
        return segment_functions.compute_features(
            segment_functions.get_trainer(gd), argument_checks.parse_object("spec", spec), arrays
        )

    return raise_to_sql(plpy, computed)


def predict_begin(plpy: Any, gd: Globals, spec: str) -> None:
    """Begin to collect rows for predictions."""
    raise_to_sql(
        plpy, lambda: prediction_rows.begin_prediction(gd, segment_functions.get_trainer(gd), spec)
    )


def predict_add(
    plpy: Any, gd: Globals, id: str | None, inputs: list[bytes | None] | None
) -> PredictedBlock | None:
    """Take a row; now and then the predictions of a block."""
    return raise_to_sql(plpy, lambda: prediction_rows.current_prediction(gd).add(id, inputs))


def predict_rest(plpy: Any, gd: Globals) -> PredictedBlock | None:
    """Send the last rows; the predictions of the block before."""
    return raise_to_sql(plpy, lambda: prediction_rows.current_prediction(gd).flush())


def pack_block(plpy: Any, gd: Globals, spec: str | None, data: list[bytes] | None) -> str | None:
    """Send a block of rows to be packed; JSON of the buffer before, where this one begins
    another.
    """

    def start() -> None:
        _started(plpy, gd, TrainerOptions(framework="none"))

    def packed() -> str | None:
        ready = database(plpy).platform.ensure_packer(
            segment_functions.has_trainer(gd), spec is not None, start
        )
        about = (
            packed_rows.send_block(gd, segment_functions.get_trainer(gd), spec, data)
            if ready
            else None
        )
        if progress.KEY in gd:
            progress.current_progress(gd).add(
                database(plpy), "packed", packed_rows.count_block_rows(gd)
            )
        return about

    return raise_to_sql(plpy, packed)


def packed_array(plpy: Any, gd: Globals, place: int | None) -> bytes:
    """An array of the buffer that pack_block has told of."""
    return raise_to_sql(
        plpy,
        lambda: packed_rows.fetch_array(
            gd, segment_functions.get_trainer(gd), argument_checks.check_integer("place", place)
        ),
    )


def trainer_stop(plpy: Any, gd: Globals) -> None:
    """End the trainer of this session, if there is one."""
    raise_to_sql(plpy, lambda: segment_functions.stop_trainer(gd))


def gpu_count(plpy: Any, gd: Globals) -> int:
    """How many GPUs of this machine trainers may use."""
    return raise_to_sql(plpy, lambda: len(settings.usable_gpus(settings.read(database(plpy)))))
