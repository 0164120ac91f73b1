"""Predictions made before the statement that reads them.

On some servers a running statement cannot query the database any more. Its predictions are
therefore written to an unnamed file, which is removed with the session at the latest. Another
process of the server that works for the same statement reads the file by the reference that this
session passes to it; without the reference the file cannot be read.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
import struct
import tempfile
from collections.abc import Iterator
from typing import IO

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.predict.predict_table import (
    Block,
    RowsArguments,
    predict_source,
)
from cerebro_plpy.tables.models.granted_versions import ModelName

FILES_KEY = "cerebro_predicted"
MAX_FILES = 64
"""Open files of a session: a statement may have several predictions and read each repeatedly."""
MAGIC = b"cerebro_db predictions\n"
SECRET_BYTES = 16
LENGTH = struct.Struct(">q")
NULL_LENGTH = -1
_REFERENCE = re.compile(r"(?P<pid>[0-9]{1,10}) (?P<fd>[0-9]{1,6}) (?P<secret>[0-9a-f]{32})")


def predict_ahead(db: Database, gd: Globals, model: ModelName, arguments: RowsArguments) -> str:
    """Predict all rows of a source; return the reference with which `read_predictions` reads them.

    Args:
        arguments: the source, and what identifies its rows.
    """
    files: list[tuple[object, IO[bytes]]] = gd.setdefault(FILES_KEY, [])
    transaction = db.value(sql("predict.transaction"))
    while files and (files[0][0] != transaction or len(files) >= MAX_FILES):
        files.pop(0)[1].close()  # predictions of an earlier transaction are not read any more
    file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115
    secret = secrets.token_bytes(SECRET_BYTES)
    try:
        file.write(MAGIC + secret)
        with db.platform.uninterrupted():
            for block in predict_source(db, gd, model, arguments, shared=False):
                _write_block(file, block)
        file.flush()
    except BaseException:
        file.close()
        raise
    files.append((transaction, file))
    return f"{os.getpid()} {file.fileno()} {secret.hex()}"


def read_predictions(reference: str | None) -> Iterator[Block]:
    """Return the blocks of predictions, without a query.

    Raises:
        ObjectNotReady: the file of the reference does not exist any more. This is raised by the
            call, not by the iterator.
    """
    match = _REFERENCE.fullmatch(reference or "")
    file = None
    if match is not None:
        path = f"/proc/{match['pid']}/fd/{match['fd']}"
        file = _open_file(path, bytes.fromhex(match["secret"]))
    if file is None:
        raise ObjectNotReady(
            "predict error: the predictions of this statement are gone.",
            hint=f"A session keeps {MAX_FILES} predictions of a transaction. Make tables of them "
            "by CREATE TABLE AS.",
        )
    return _read_blocks(file)


def _open_file(path: str, secret: bytes) -> IO[bytes] | None:
    """Open a file of predictions behind its head; return None if it is not one with this secret."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink:
            return None
        file = open(path, "rb")  # noqa: SIM115
    except OSError:
        return None
    if not hmac.compare_digest(file.read(len(MAGIC) + SECRET_BYTES), MAGIC + secret):
        file.close()
        return None
    return file


def _write_block(file: IO[bytes], block: Block) -> None:
    margin, ids, *columns = block
    for part in (json.dumps([margin, ids]).encode(), *columns):
        length = NULL_LENGTH
        if part is not None:
            length = len(part)
        file.write(LENGTH.pack(length) + (part or b""))


def _read_blocks(file: IO[bytes]) -> Iterator[Block]:
    with file:
        while (head := _read_part(file)) is not None:
            margin, ids = json.loads(head)
            yield (
                margin,
                ids,
                _read_part(file),
                _read_part(file),
                _read_part(file),
                _read_part(file),
            )


def _read_part(file: IO[bytes]) -> bytes | None:
    """Return the next part; None if it is NULL or the file has ended."""
    length = file.read(LENGTH.size)
    if not length:
        return None
    (size,) = LENGTH.unpack(length)
    if size == NULL_LENGTH:
        return None
    return file.read(size)
