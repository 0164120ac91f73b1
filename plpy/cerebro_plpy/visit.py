"""What a segment's functions do: pass rows and state to the trainer of this session, and take results.

Everything comes as arguments and goes back as results. No table is read or written here, because a
function on a Greenplum segment may not do so; the statement around the function does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import prod
from typing import Any

from cerebro_plpy import resources
from cerebro_plpy.errors import DataCorrupted, DatatypeMismatch, ObjectNotReady
from cerebro_plpy.launch import TrainerSpec
from cerebro_plpy.link import Buffer, Link

KEY = "cerebro_trainer"
PACKING = "cerebro_packing"  # the number of the buffer that is being packed
PART = "cerebro_state_part"  # the number of the chunk of a state that came last
CHUNKS = "cerebro_state_chunks"  # those that are still to be sent
COLLECTED_BYTES = 1 << 20
ELEMENT_TYPES = {("x", 4): "float32", ("y", 4): "float32", ("y", 2): "int16"}
Globals = dict[str, Any]


def start_trainer(check: Callable[[], None], session: Globals, spec: TrainerSpec) -> Link:
    """The trainer of this session; one that was started alike and is still alive is used again.

    `check` is called while waiting for the trainer; it raises when the statement is cancelled.
    """
    link: Link | None = session.get(KEY)
    for left in (PACKING, CHUNKS):
        session.pop(left, None)
    if link is not None and link.spec == spec and link.alive():
        link.send({"do": "reset"})
        return link
    if link is not None:
        link.close()
    link = Link(spec, check)
    if spec.gpu != resources.NO_GPU and all(name.upper().startswith("CPU") for name in link.hello.get("devices", ())):
        link.close()
        raise ObjectNotReady(
            f"the trainer finds no GPU {spec.gpu}: its {spec.framework} has {', '.join(link.hello.get('devices', ()))}",
            hint="Install the framework with CUDA for the interpreter that trainer_python in cerebro.setting names, or"
            " leave use_gpus out.",
        )
    session[KEY] = link
    return link


def begin_trainer(check: Callable[[], None], session: Globals, spec: TrainerSpec) -> None:
    """Start a trainer for this session without waiting for it: its first use does."""
    stop_trainer(session)
    session.pop(PACKING, None)
    session[KEY] = Link(spec, check, wait=False)


def stop_trainer(session: Globals) -> None:
    """End the trainer of this session, if there is one."""
    link: Link | None = session.pop(KEY, None)
    if link is not None:
        link.close()


def trainer(session: Globals) -> Link:
    """The trainer that an earlier statement of this session started, told all that there was to tell it."""
    link: Link | None = session.get(KEY)
    if link is None:
        raise ObjectNotReady(
            "no trainer runs in this session", hint="Start one with cerebro.trainer_start in the same session."
        )
    link.greet()
    chunks = session.pop(CHUNKS, None)
    if chunks:
        link.send({"do": "state"}, b"".join(chunks))
    return link


def add_part(link: Link, dataset: str, number: int, buffer_id: int, shapes: str | None, part: bytes) -> int:
    """Pass on a part of a row of a packed table; its length. Inputs come first, then targets.

    `shapes` comes with the first part of the row: JSON with the number of inputs, the shape of each array and
    its size in bytes.
    """
    if shapes is not None:
        parsed = json.loads(shapes)
        roles = ["x"] * parsed["inputs"] + ["y"] * (len(parsed["sizes"]) - parsed["inputs"])
        arrays = [
            {"role": role, "dtype": element_type(role, shape, size), "shape": shape}
            for role, shape, size in zip(roles, parsed["shapes"], parsed["sizes"])
        ]
        header = {"do": "buffer", "dataset": dataset, "buffer_id": buffer_id, "pass": number, "arrays": arrays}
        link.send_head(header, sum(parsed["sizes"]))
    link.send_part(part)
    return len(part)


def element_type(role: str, shape: list[int] | None, size: int | None) -> str:
    """The element type of a packed array, told by its size in bytes.

    >>> element_type("y", [3, 2], 12)
    'int16'
    """
    count = prod(shape or (0,))
    kind = ELEMENT_TYPES.get((role, size // count)) if count and size else None
    if kind is None or not size or size % count:
        raise DatatypeMismatch(
            f"a packed {'input' if role == 'x' else 'target'} of shape {shape} has {size} bytes;"
            " expected 4 for each element, or 2 for an encoded class",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    return kind


def add_state(session: Globals, part: int, chunk: bytes) -> None:
    """Pass one chunk of a state on, several at a time because they are small; parts count from 1."""
    expected = session.get(PART, 0) + 1
    if part not in (1, expected):
        raise DataCorrupted(
            f"part {part} of a state came where part {expected} was expected",
            hint="The table that holds the state was changed; train again.",
        )
    session[PART] = part
    chunks = session.setdefault(CHUNKS, [])
    chunks.append(chunk)
    if len(chunks) * len(chunk) >= COLLECTED_BYTES:
        trainer(session)


def state_chunks(link: Link, chunk_bytes: int) -> Iterator[Buffer]:
    """The state of the job that ended last, in chunks of that size, the last as small as it is."""
    for frame in link.chunks({"do": "state_get", "chunk_bytes": COLLECTED_BYTES // chunk_bytes * chunk_bytes}):
        for begin in range(0, len(frame), chunk_bytes):
            yield frame[begin : begin + chunk_bytes]


def pack_rows(session: Globals, spec: str | None, data: list[bytes] | None) -> list[Buffer] | None:
    """Send rows to be packed, without waiting; None at the end. Returns what became of the rows sent before.

    So the packer works while the database writes one buffer and collects the rows of the next. What is returned
    are the number of the buffer and its shapes as JSON, and its arrays.
    """
    link = trainer(session)
    packed = _packed(link, session.pop(PACKING)) if PACKING in session else None
    if spec is not None and data is not None:
        header = json.loads(spec)
        link.send({"do": "pack", **header, "lengths": [len(part) for part in data]}, *data)
        session[PACKING] = header["buffer_id"]
    return packed


def _packed(link: Link, buffer_id: int) -> list[Buffer]:
    header, payload = link.receive()
    done = link.accepted(header)
    starts = accumulate(done["lengths"], initial=0)
    about = json.dumps({"buffer_id": buffer_id, "shapes": done["shapes"]}).encode()
    return [about, *(payload[start : start + length] for start, length in zip(starts, done["lengths"]))]
