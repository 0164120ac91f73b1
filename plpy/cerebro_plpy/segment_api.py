"""One function per SQL function that runs on a segment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cerebro_plpy import blocks, settings, strict_json, visit
from cerebro_plpy.blocks import Predicted
from cerebro_plpy.db import Database, raise_to_sql
from cerebro_plpy.link import Buffer
from cerebro_plpy.settings import TrainerRequest

Globals = dict[str, Any]


def trainer_start(plpy: Any, session: Globals, spec: str) -> str:
    """Start the trainer that `spec` (the fields of TrainerRequest) asks for; its report as JSON."""
    return raise_to_sql(plpy, lambda: _started(plpy, session, TrainerRequest(**json.loads(spec))))


def trainer_report(plpy: Any, session: Globals, framework: str) -> str:
    """Start a trainer as a run would; its report as JSON."""
    return raise_to_sql(plpy, lambda: _started(plpy, session, TrainerRequest(framework=framework)))


def _started(plpy: Any, session: Globals, request: TrainerRequest) -> str:
    # The settings are read here, not passed in: whoever may call this must not choose what is executed.
    db = Database(plpy)
    spec = settings.trainer_spec(settings.read(db), request)
    return json.dumps(visit.start_trainer(db.check_interrupts, session, spec).hello)


def dataset_open(plpy: Any, session: Globals, dataset: str, cache_bytes: int) -> None:
    """Announce a data set."""
    request = {"do": "open", "dataset": dataset, "cache_bytes": cache_bytes}
    raise_to_sql(plpy, lambda: visit.trainer(session).send(request))


def dataset_add(
    plpy: Any, session: Globals, dataset: str, pass_no: int, buffer_id: int, shapes: str | None, part: bytes
) -> int:
    """Pass a part of a packed row on; its length."""
    return raise_to_sql(plpy, lambda: visit.add_part(visit.trainer(session), dataset, pass_no, buffer_id, shapes, part))


def dataset_close(plpy: Any, session: Globals, dataset: str) -> str:
    """End a data set; JSON with buffers, rows, bytes and cached."""
    request = {"do": "close", "dataset": dataset}
    return raise_to_sql(plpy, lambda: json.dumps(visit.trainer(session).ask(request)))


def state_add(plpy: Any, session: Globals, part: int, chunk: bytes) -> int:
    """Pass one chunk of a state on; its length."""
    raise_to_sql(plpy, lambda: visit.add_state(session, part, chunk))
    return len(chunk)


def state_chunks(plpy: Any, session: Globals, chunk_bytes: int) -> Iterator[Buffer]:
    """The state that the last job left, in chunks."""
    chunks = raise_to_sql(plpy, lambda: visit.state_chunks(visit.trainer(session), chunk_bytes))
    while True:
        chunk = raise_to_sql(plpy, lambda: next(chunks, None))
        if chunk is None:
            return
        yield chunk


def job_begin(plpy: Any, session: Globals, spec: str) -> str:
    """Begin a job."""
    return raise_to_sql(plpy, lambda: json.dumps(visit.trainer(session).ask({"do": "begin", **json.loads(spec)})))


def job_finish(plpy: Any, session: Globals) -> str:
    """End a job; its result as JSON."""
    return raise_to_sql(plpy, lambda: strict_json.dumps(visit.trainer(session).ask({"do": "finish"})))


def metric_results(plpy: Any, session: Globals, spec: str) -> str:
    """Final values of metrics."""
    request = {"do": "results", **strict_json.restored(spec)}
    return raise_to_sql(plpy, lambda: strict_json.dumps(visit.trainer(session).ask(request)))


def predict_begin(plpy: Any, session: Globals, spec: str) -> None:
    """Begin to collect rows for predictions."""
    raise_to_sql(plpy, lambda: blocks.begin(session, visit.trainer(session), spec))


def predict_row(plpy: Any, session: Globals, id: str | None, row: bytes | None) -> Predicted | None:
    """Take a row; now and then the predictions of a block."""
    return raise_to_sql(plpy, lambda: session[blocks.KEY].add(id, row))  # type: ignore[no-any-return]


def predict_rest(plpy: Any, session: Globals) -> Predicted | None:
    """Send the last rows; the predictions of the block before."""
    return raise_to_sql(plpy, session[blocks.KEY].next)  # type: ignore[no-any-return]


def pack_rows(plpy: Any, session: Globals, spec: str | None, data: list[bytes] | None) -> list[Buffer] | None:
    """Send a block of rows to be packed; the packed arrays of the block before."""
    return raise_to_sql(plpy, lambda: visit.pack_rows(session, spec, data))
