"""The functions on a segment: pass rows and states to this session's trainer, and return results.

All data are arguments and results. No table is read or written here, because a function on a
Greenplum segment must not do so; the statement around the function does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from cerebro_plpy import limits
from cerebro_plpy.database import effective_role
from cerebro_plpy.database.platform_protocol import Check, Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import DataCorrupted, DatatypeMismatch, InvalidParameter, ObjectNotReady
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.trainer_client import (
    argument_checks,
    ownership,
    packed_rows,
    prediction_rows,
    request_schema,
    trainer_lock,
    usage_ledger,
)
from cerebro_plpy.trainer_client.connection import Buffer, TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

KEY = "cerebro_trainer"
PART = "cerebro_state_part"  # the number of the last chunk of a state
CHUNKS = "cerebro_state_chunks"  # chunks that are still to be sent
SEALED = "cerebro_state_sealed"  # True if this session must not see the content of these chunks
MAX_COLLECTED_BYTES = limits.CHUNK.maximum
MAX_COLLECTED_CHUNKS = 1024
# Frame size of a state: weights may be one value, but a trainer has no memory for two states.
FRAME_BYTES = 1 << 20
ELEMENT_TYPES = {("x", 4): "float32", ("y", 4): "float32", ("y", 2): "int16", ("w", 4): "float32"}
ROLES = {"x": "input", "y": "target", "w": "weight"}


def start_trainer(check: Check, gd: Globals, spec: TrainerSpec) -> TrainerConnection:
    """Return the trainer of this session, which is reused if the same role started an equal one.

    Args:
        check: is called while waiting for the trainer; raises if the statement is cancelled.
    """
    trainer_lock.preempt(gd)
    link = _find_link(gd)
    stale_keys = (
        packed_rows.PACKING,
        packed_rows.PACKED,
        CHUNKS,
        PART,
        SEALED,
        prediction_rows.KEY,
    )
    for key in stale_keys:
        gd.pop(key, None)
    if link is not None:
        if link.spec == spec and link.is_alive() and ownership.is_owner(gd):
            link.send(request_schema.build_request("reset"))
            return link
        link.close()
        usage_ledger.get_ledger(gd).end_trainer(link)
    roles = effective_role.session_roles() if spec.is_reusable else None
    link = TrainerConnection(spec, check, roles=roles)
    devices = link.hello.get("devices", ())
    if spec.uses_gpu and all(name.upper().startswith("CPU") for name in devices):
        link.close()
        raise ObjectNotReady(
            f"the trainer finds no GPU {spec.gpu}: its {spec.framework} has {', '.join(devices)}",
            hint="Install the framework with CUDA for the interpreter that trainer_python in "
            "cerebro.setting names, or leave use_gpus out.",
        )
    gd[KEY] = link
    ownership.claim(gd)
    return link


def _find_link(gd: Globals) -> TrainerConnection | None:
    """Return the trainer of this session, if one was started."""
    link: TrainerConnection | None = gd.get(KEY)
    return link


def begin_trainer(check: Check, gd: Globals, spec: TrainerSpec) -> None:
    """Start a trainer for this session without waiting for it: its first use waits."""
    stop_trainer(gd)
    gd[KEY] = TrainerConnection(spec, check, wait=False)
    ownership.claim(gd)


def has_trainer(gd: Globals) -> bool:
    """Return True if an earlier statement of this session started a trainer."""
    return KEY in gd


def find_spec(gd: Globals, framework: str) -> TrainerSpec | None:
    """Return the spec of this session's trainer if it has this framework.

    A request for an equal trainer gets the same one.
    """
    link = _find_link(gd)
    return link.spec if link is not None and link.spec.framework == framework else None


def park_trainer(gd: Globals, seconds: int) -> None:
    """Let the trainer of this session drop data and state, and wait for the next call.

    The trainer ends if no call comes in these seconds. Within a call it waits without a limit, for
    instance for a visit on another worker.
    """
    trainer_lock.preempt(gd)
    link = _find_link(gd)
    if link is None or not seconds or not link.is_alive():
        stop_trainer(gd)
    else:
        link.send(request_schema.build_request("reset", idle_seconds=seconds))
        link.park(seconds)
        link.watch.clock.take_seconds()
    usage_ledger.reset(gd)


def stop_trainer(gd: Globals) -> None:
    """End the trainer of this session, if there is one."""
    trainer_lock.preempt(gd)
    for key in (packed_rows.PACKING, packed_rows.PACKED):
        gd.pop(key, None)
    link: TrainerConnection | None = gd.pop(KEY, None)
    if link is not None:
        link.close()
        usage_ledger.get_ledger(gd).end_trainer(link)


def get_trainer(gd: Globals, *, sealed: bool = False) -> TrainerConnection:
    """Return the trainer of this session, after sending it the collected chunks of a state.

    Args:
        sealed: allow a role other than the trainer's owner, which only sends data.
    """
    link = _find_link(gd)
    if link is None:
        raise ObjectNotReady(
            "no trainer runs in this session",
            hint="Start one with cerebro_internal.trainer_start in the same session.",
        )
    if not sealed:
        ownership.check_owner(gd)
    trainer_lock.preempt(gd)
    link.greet()
    chunks = gd.pop(CHUNKS, None)
    has_sealed_chunks = gd.pop(SEALED, False)
    if chunks:
        state = b"".join(chunks)
        header = request_schema.build_request("state", sealed=has_sealed_chunks)
        for begin in range(0, max(1, len(state)), FRAME_BYTES):
            link.send(header, state[begin : begin + FRAME_BYTES])
    return link


def add_part(
    link: TrainerConnection,
    dataset: str,
    number: int,
    buffer_id: int,
    shapes: str | None,
    part: bytes,
) -> int:
    """Send a part of a row of a packed table; return its length.

    Inputs come first, then targets, then weights.

    Args:
        number: number of the pass.
        shapes: only for the first part of the row: JSON with the numbers of inputs and weights,
            and the shape and the size in bytes of each array.
    """
    if shapes is not None:
        arrays, size = _describe_arrays(argument_checks.parse_object("shapes", shapes))
        row = {"dataset": dataset, "buffer_id": buffer_id, "pass": number, "arrays": arrays}
        link.send_head(request_schema.build_request("buffer", row), size)
    link.send_part(part)
    return len(part)


def _describe_arrays(fields: Mapping[str, Any]) -> tuple[list[dict[str, object]], int]:
    """Return the description of the arrays of a row for the trainer, and their size in bytes."""
    shapes = argument_checks.read_field(fields, "shapes", list)
    sizes = argument_checks.read_field(fields, "sizes", list)
    inputs = argument_checks.check_integer("inputs", fields.get("inputs", 0))
    weights = argument_checks.check_integer("weights", fields.get("weights", 0))
    if len(shapes) != len(sizes):
        raise InvalidParameter(
            f"{count_nouns(len(shapes), 'shape')} came with {count_nouns(len(sizes), 'size')}",
            hint=argument_checks.HINT,
        )
    arrays: list[dict[str, object]] = []
    for number, (shape, size) in enumerate(zip(shapes, sizes)):
        role = "y"
        if number < inputs:
            role = "x"
        elif number >= len(shapes) - weights:
            role = "w"
        size_bytes = None if size is None else argument_checks.check_integer("a size", size)
        dtype = element_type(role, _check_shape(shape), size_bytes)
        arrays.append({"role": role, "dtype": dtype, "shape": shape})
    return arrays, sum(sizes)


def _check_shape(shape: Any) -> list[int] | None:
    if shape is None or (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        return shape
    raise DatatypeMismatch(
        f"the shape of a packed array is {shape!r:.100}; expected the number of its rows, and the "
        "shape of one",
        hint="Pack the table again with training_preprocessor_dl().",
    )


def element_type(role: str, shape: list[int] | None, size: int | None) -> str:
    """Return the element type of a packed array, which follows from its size in bytes.

    >>> element_type("y", [3, 2], 12)
    'int16'
    """
    count = prod(shape or (0,))
    dtype = ELEMENT_TYPES.get((role, size // count)) if count and size else None
    if dtype is None or not size or size % count:
        raise DatatypeMismatch(
            f"a packed {ROLES[role]} of shape {shape} has {count_nouns(size or 0, 'byte')};"
            " expected 4 for each element, or 2 for an encoded class",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    return dtype


def load_rows(
    link: TrainerConnection,
    dataset: str,
    shapes: Sequence[Sequence[int]],
    parts: Sequence[bytes],
) -> None:
    """Load rows into the trainer as a data set of one buffer.

    Args:
        parts: the arrays of the inputs, and that of the target.
    """
    sizes = [len(part) for part in parts]
    arrays, size = _describe_arrays(
        {"inputs": len(parts) - 1, "shapes": list(map(list, shapes)), "sizes": sizes}
    )
    link.send(request_schema.build_request("open", dataset=dataset, cache_bytes=size))
    buffer = request_schema.build_request("buffer", dataset=dataset, buffer_id=0, arrays=arrays)
    link.send(buffer, *parts)
    link.call(request_schema.build_request("close", dataset=dataset))


def add_state(gd: Globals, part: int, chunk: bytes, *, sealed: bool = False) -> None:
    """Add a chunk of a state; several small chunks are sent to the trainer together.

    If one of them is sealed, all are sent as sealed.

    Args:
        part: number of the chunk, from 1.
    """
    expected = gd.get(PART, 0) + 1
    if not sealed:
        ownership.check_owner(gd)
    if part not in (1, expected):
        raise DataCorrupted(
            f"part {part} of a state came where part {expected} was expected",
            hint="The table that holds the state was changed; train again.",
        )
    gd[PART] = part
    chunks = gd.setdefault(CHUNKS, [])
    chunks.append(chunk)
    usage_ledger.get_ledger(gd).read_bytes += len(chunk)
    gd[SEALED] = sealed or gd.get(SEALED, False)
    if len(chunks) * len(chunk) >= MAX_COLLECTED_BYTES or len(chunks) >= MAX_COLLECTED_CHUNKS:
        get_trainer(gd, sealed=sealed)


def stream_state(
    link: TrainerConnection, chunk_bytes: int, key: str, part: str
) -> Iterator[Buffer]:
    """Yield the chunks of a state that a job has created; the last chunk may be smaller.

    Args:
        key: name of the state.
        part: part of the state, see docs/internals/wire.md.
    """
    size = argument_checks.check_integer("chunk_bytes", chunk_bytes, 1)
    header = request_schema.build_request(
        "state_get", key=key, chunk_bytes=MAX_COLLECTED_BYTES // size * size, part=part
    )
    for frame in link.stream_chunks(header):
        for begin in range(0, len(frame), chunk_bytes):
            yield frame[begin : begin + chunk_bytes]


def stream_outputs(link: TrainerConnection, units: int, chunk_bytes: int) -> Iterator[Buffer]:
    """Yield the result of a job `outputs` in chunks of whole rows.

    Args:
        units: number of outputs of a row, which follow its target.
    """
    sizes = {
        "units": argument_checks.check_integer("units", units, 1),
        "chunk_bytes": argument_checks.check_integer("chunk_bytes", chunk_bytes, 1),
    }
    return link.stream_reply(request_schema.build_request("outputs", sizes))


def take_cost(gd: Globals) -> JsonObject:
    """Return the unreported cost of this session and its trainer, which may have ended."""
    return usage_ledger.get_ledger(gd).take_cost(_find_link(gd))


def compute_features(
    link: TrainerConnection, request: Mapping[str, Any], inputs: list[bytes]
) -> Buffer:
    """Return the outputs of a layer for the rows of a buffer, as float32, for the open job."""
    sizes = [len(part) for part in inputs]
    arrays, _ = _describe_arrays(
        {"shapes": request.get("shapes"), "sizes": sizes, "inputs": len(inputs)}
    )
    link.post(request_schema.build_request("features", request, arrays=arrays), *inputs)
    return link.receive_reply()[1]


def begin_job(
    gd: Globals, link: TrainerConnection, request: Mapping[str, Any]
) -> request_schema.Header:
    """Begin a job; record the code that is compiled for it, which later calls can use."""
    usage_ledger.get_ledger(gd).begin_job()
    result = link.call(request_schema.build_request("begin", request, sealed=False))
    compilation = request.get("compilation")
    if isinstance(compilation, str):
        link.hello["compilations"] = sorted({*link.hello["compilations"], compilation})
    return result


def finish_job(gd: Globals, link: TrainerConnection) -> request_schema.Header:
    """Do the open job, or complete one that `job_start` has started.

    Returns:
        The result, the free memory of the trainer in bytes, and the cost.
    """
    if link.has_pending_reply:
        result = link.receive_result()
    else:
        result = link.call(request_schema.build_request("finish"))
    return {**result, "room": link.watch.read_free_bytes(link.pid), "cost": take_cost(gd)}
