"""What a segment's functions do: pass rows and state to the trainer of this session, and take
results.

Everything comes as arguments and goes back as results. No table is read or written here, because a
function on a Greenplum segment may not do so; the statement around the function does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from cerebro_plpy import limits
from cerebro_plpy.database import effective_role
from cerebro_plpy.errors import DataCorrupted, DatatypeMismatch, InvalidParameter, ObjectNotReady
from cerebro_plpy.trainer_client import (
    argument_checks,
    ownership,
    packed_rows,
    prediction_rows,
    request_schema,
    trainer_lock,
    usage_ledger,
)
from cerebro_plpy.trainer_client.connection import Buffer, Link
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

KEY = "cerebro_trainer"
PART = "cerebro_state_part"  # the number of the chunk of a state that came last
CHUNKS = "cerebro_state_chunks"  # those that are still to be sent
SEALED = "cerebro_state_sealed"  # whether this session must not see what is in them
COLLECTED_BYTES, COLLECTED_CHUNKS = limits.CHUNK.maximum, 1024
FRAME_BYTES = (
    1 << 20
)  # of a state: weights may come in one value, and a trainer has no room for two states
ELEMENT_TYPES = {("x", 4): "float32", ("y", 4): "float32", ("y", 2): "int16", ("w", 4): "float32"}
ROLES = {"x": "input", "y": "target", "w": "weight"}
Globals = dict[str, Any]


def start_trainer(check: Callable[[], None], gd: Globals, spec: TrainerSpec) -> Link:
    """The trainer of this session; one that the same role started alike and that is still alive is
    used again.

    `check` is called while waiting for the trainer; it raises when the statement is cancelled.
    """
    trainer_lock.take(gd)
    link: Link | None = gd.get(KEY)
    for left in (
        packed_rows.PACKING,
        packed_rows.PACKED,
        CHUNKS,
        PART,
        SEALED,
        prediction_rows.KEY,
    ):
        gd.pop(left, None)
    if link is not None and link.spec == spec and link.alive() and ownership.owned(gd):
        link.send(request_schema.request("reset"))
        return link
    if link is not None:
        link.close()
        usage_ledger.of(gd).gone(link)
    link = Link(spec, check, who=effective_role.session_roles() if spec.kept else None)
    if spec.on_gpu and all(
        name.upper().startswith("CPU") for name in link.hello.get("devices", ())
    ):
        link.close()
        raise ObjectNotReady(
            f"the trainer finds no GPU {spec.gpu}: its {spec.framework} has "
            f"{', '.join(link.hello.get('devices', ()))}",
            hint="Install the framework with CUDA for the interpreter that trainer_python in "
            "cerebro.setting names, or leave use_gpus out.",
        )
    gd[KEY] = link
    ownership.claim(gd)
    return link


def begin_trainer(check: Callable[[], None], gd: Globals, spec: TrainerSpec) -> None:
    """Start a trainer for this session without waiting for it: its first use does."""
    stop_trainer(gd)
    gd[KEY] = Link(spec, check, wait=False)
    ownership.claim(gd)


def has_trainer(gd: Globals) -> bool:
    """Whether an earlier statement of this session started a trainer."""
    return KEY in gd


def trainer_spec(gd: Globals, framework: str) -> TrainerSpec | None:
    """How the trainer of this session was started, if it has this framework: who asks for one like
    it gets the same.
    """
    link: Link | None = gd.get(KEY)
    return link.spec if link is not None and link.spec.framework == framework else None


def rest(gd: Globals, seconds: int) -> None:
    """A call is over: the trainer of this session, if there is one, drops data and state, and ends
    when no other call comes in that time.

    Only here does that time begin: within a call a trainer waits as long as it takes, such as for a
    visit elsewhere.
    """
    trainer_lock.take(gd)
    link: Link | None = gd.get(KEY)
    if link is None or not seconds or not link.alive():
        stop_trainer(gd)
    else:
        link.send(request_schema.request("reset", idle_seconds=seconds))
        link.rest(seconds)
        link.watch.clock.taken()
    usage_ledger.begin(gd)


def stop_trainer(gd: Globals) -> None:
    """End the trainer of this session, if there is one."""
    trainer_lock.take(gd)
    for left in (packed_rows.PACKING, packed_rows.PACKED):
        gd.pop(left, None)
    link: Link | None = gd.pop(KEY, None)
    if link is not None:
        link.close()
        usage_ledger.of(gd).gone(link)


def trainer(gd: Globals, *, sealed: bool = False) -> Link:
    """The trainer that an earlier statement of this session started, told all that there was to
    tell it.

    It serves the role that started it; what is `sealed` is given to it by another one, and nothing
    is given back.
    """
    link: Link | None = gd.get(KEY)
    if link is None:
        raise ObjectNotReady(
            "no trainer runs in this session",
            hint="Start one with cerebro.trainer_start in the same session.",
        )
    if not sealed:
        ownership.check(gd)
    trainer_lock.take(gd)
    link.greet()
    chunks, of_sealed = gd.pop(CHUNKS, None), gd.pop(SEALED, False)
    if chunks:
        state = b"".join(chunks)
        for begin in range(0, max(1, len(state)), FRAME_BYTES):
            link.send(
                request_schema.request("state", sealed=of_sealed),
                state[begin : begin + FRAME_BYTES],
            )
    return link


def add_part(
    link: Link, dataset: str, number: int, buffer_id: int, shapes: str | None, part: bytes
) -> int:
    """Pass on a part of a row of a packed table; its length. Inputs come first, then targets, then
    weights.

    `shapes` comes with the first part of the row: JSON with the numbers of inputs and of weights,
    the shape of each array and its size in bytes.
    """
    if shapes is not None:
        arrays, size = _arrays(argument_checks.record("shapes", shapes))
        of_row = {"dataset": dataset, "buffer_id": buffer_id, "pass": number, "arrays": arrays}
        link.send_head(request_schema.request("buffer", of_row), size)
    link.send_part(part)
    return len(part)


def _arrays(told: Mapping[str, Any]) -> tuple[list[dict[str, object]], int]:
    """What the trainer is told of the arrays of a row, and their size in bytes."""
    shapes, sizes = (
        argument_checks.kind(name, told.get(name), list) for name in ("shapes", "sizes")
    )
    inputs, weights = (
        argument_checks.whole(name, told.get(name, 0)) for name in ("inputs", "weights")
    )
    if len(shapes) != len(sizes):
        raise InvalidParameter(
            f"{len(shapes)} shapes came with {len(sizes)} sizes", hint=argument_checks.HINT
        )
    arrays: list[dict[str, object]] = []
    for number, (shape, size) in enumerate(zip(shapes, sizes)):
        role = "x" if number < inputs else "w" if number >= len(shapes) - weights else "y"
        told_size = None if size is None else argument_checks.whole("a size", size)
        arrays.append(
            {"role": role, "dtype": element_type(role, _lengths(shape), told_size), "shape": shape}
        )
    return arrays, sum(sizes)


def _lengths(shape: Any) -> list[int] | None:
    if shape is None or (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        return shape
    raise DatatypeMismatch(
        f"the shape of a packed array is {shape!r:.100}; expected the number of its rows, and the "
        "shape of one",
        hint="Pack the table again with training_preprocessor_dl().",
    )


def element_type(role: str, shape: list[int] | None, size: int | None) -> str:
    """The element type of a packed array, told by its size in bytes.

    >>> element_type("y", [3, 2], 12)
    'int16'
    """
    count = prod(shape or (0,))
    kind = ELEMENT_TYPES.get((role, size // count)) if count and size else None
    if kind is None or not size or size % count:
        raise DatatypeMismatch(
            f"a packed {ROLES[role]} of shape {shape} has {size} bytes;"
            " expected 4 for each element, or 2 for an encoded class",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    return kind


def load_rows(
    link: Link, dataset: str, shapes: Sequence[Sequence[int]], parts: Sequence[bytes]
) -> None:
    """Bring rows into the trainer as a data set of one buffer: the arrays of their inputs, and that
    of their target.
    """
    sizes = [len(part) for part in parts]
    arrays, size = _arrays(
        {"inputs": len(parts) - 1, "shapes": list(map(list, shapes)), "sizes": sizes}
    )
    link.send(request_schema.request("open", dataset=dataset, cache_bytes=size))
    link.send(request_schema.request("buffer", dataset=dataset, buffer_id=0, arrays=arrays), *parts)
    link.ask(request_schema.request("close", dataset=dataset))


def add_state(gd: Globals, part: int, chunk: bytes, *, sealed: bool = False) -> None:
    """Pass one chunk of a state on, several at a time because they are small; parts count from 1.

    Where one is sealed, so are those that are sent with it.
    """
    expected = gd.get(PART, 0) + 1
    if not sealed:
        ownership.check(gd)
    if part not in (1, expected):
        raise DataCorrupted(
            f"part {part} of a state came where part {expected} was expected",
            hint="The table that holds the state was changed; train again.",
        )
    gd[PART] = part
    chunks = gd.setdefault(CHUNKS, [])
    chunks.append(chunk)
    usage_ledger.of(gd).read_bytes += len(chunk)
    gd[SEALED] = sealed or gd.get(SEALED, False)
    if len(chunks) * len(chunk) >= COLLECTED_BYTES or len(chunks) >= COLLECTED_CHUNKS:
        trainer(gd, sealed=sealed)


def state_chunks(link: Link, chunk_bytes: int, key: str, part: str) -> Iterator[Buffer]:
    """The state of that name, which a job has left, or a part of it, in chunks of that size, the
    last as small as it is."""
    size = argument_checks.whole("chunk_bytes", chunk_bytes, 1)
    asked = request_schema.request(
        "state_get", key=key, chunk_bytes=COLLECTED_BYTES // size * size, part=part
    )
    for frame in link.chunks(asked):
        for begin in range(0, len(frame), chunk_bytes):
            yield frame[begin : begin + chunk_bytes]


def row_outputs(link: Link, units: int, chunk_bytes: int) -> Iterator[Buffer]:
    """Yield the lines that a job `outputs` has left, of a target and so many units each, in chunks
    of whole rows.
    """
    sizes = {
        "units": argument_checks.whole("units", units, 1),
        "chunk_bytes": argument_checks.whole("chunk_bytes", chunk_bytes, 1),
    }
    return link.series(request_schema.request("outputs", sizes))


def spent(gd: Globals) -> dict[str, Any]:
    """What the trainer and this session have cost since somebody was told last; also where the
    trainer is gone.
    """
    link: Link | None = gd.get(KEY)
    return usage_ledger.of(gd).told(link)


def features(link: Link, asked: Mapping[str, Any], inputs: list[bytes]) -> Buffer:
    """What a layer gives for the rows of a buffer, as float32, under the state of the open job."""
    sizes = [len(part) for part in inputs]
    arrays, _ = _arrays({"shapes": asked.get("shapes"), "sizes": sizes, "inputs": len(inputs)})
    link.post(request_schema.request("features", asked, arrays=arrays), *inputs)
    return link.reply()[1]


def begin(gd: Globals, link: Link, asked: Mapping[str, Any]) -> request_schema.Header:
    """Begin a job that the session asks for; what is compiled for it is there for its later calls,
    too.
    """
    usage_ledger.of(gd).job()
    begun = link.ask(request_schema.request("begin", asked, sealed=False))
    if isinstance(asked.get("compilation"), str):
        link.hello["compilations"] = sorted({*link.hello["compilations"], asked["compilation"]})
    return begun


def finished(gd: Globals, link: Link) -> request_schema.Header:
    """The result of the open job, which is done now, unless it has been since `job_start`; how much
    memory is left to the trainer, and what it all has cost."""
    result = link.answer() if link.unanswered else link.ask(request_schema.request("finish"))
    return {**result, "room": link.watch.room(link.pid), "cost": spent(gd)}
