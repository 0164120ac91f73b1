"""Predictions made before the statement that wants them, for servers where a statement cannot ask
the database any more once its parts are under way.

They lie in a file that has no name, so it ends with its session at the latest. Another process of
the server that works for the same statement reads it by what this session tells of it, and nobody
can who was not told.
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
from typing import IO, Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.predict.predict_table import Block, predict_source
from cerebro_plpy.tables.models.granted_versions import ModelName

KEPT = "cerebro_predicted"
MOST_KEPT = 64
"""Files of a session: a statement may have several predictions, and read each of them more than
once.
"""
HEAD = b"cerebro_db predictions\n"
SECRET_BYTES = 16
LENGTH = struct.Struct(">q")
ABSENT = -1
_TOLD = re.compile(r"(?P<pid>[0-9]{1,10}) (?P<fd>[0-9]{1,6}) (?P<secret>[0-9a-f]{32})")


def predict_ahead(
    db: Database, gd: dict[str, Any], wanted: ModelName, arguments: tuple[str | None, str | None]
) -> str:
    """Predict all rows; what `predicted` has to be told to read them."""
    kept: list[tuple[object, IO[bytes]]] = gd.setdefault(KEPT, [])
    transaction = db.value(sql("predict.transaction"))
    while kept and (kept[0][0] != transaction or len(kept) >= MOST_KEPT):
        kept.pop(0)[1].close()  # nothing reads what an earlier transaction predicted
    file, secret = tempfile.TemporaryFile(dir="."), secrets.token_bytes(SECRET_BYTES)  # noqa: SIM115
    try:
        file.write(HEAD + secret)
        with db.platform.uninterrupted():
            for block in predict_source(db, gd, wanted, arguments, shared=False):
                _write(file, block)
        file.flush()
    except BaseException:
        file.close()
        raise
    kept.append((transaction, file))
    return f"{os.getpid()} {file.fileno()} {secret.hex()}"


def predicted(told: str | None) -> Iterator[Block]:
    """The blocks that were predicted; asks the database nothing. What is wrong with a call is told
    here.
    """
    found = _TOLD.fullmatch(told or "")
    file = (
        _opened(f"/proc/{found['pid']}/fd/{found['fd']}", bytes.fromhex(found["secret"]))
        if found
        else None
    )
    if file is None:
        raise ObjectNotReady(
            "predict error: what was predicted for this statement is gone.",
            hint=f"A session keeps {MOST_KEPT} predictions of a transaction. Make tables of them "
            "by CREATE TABLE AS.",
        )
    return _read(file)


def _opened(path: str, secret: bytes) -> IO[bytes] | None:
    """The file of that path, behind its head; None where it is not one of these with that
    secret.
    """
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink:
            return None
        file = open(path, "rb")  # noqa: SIM115
    except OSError:
        return None
    if not hmac.compare_digest(file.read(len(HEAD) + SECRET_BYTES), HEAD + secret):
        file.close()
        return None
    return file


def _write(file: IO[bytes], block: Block) -> None:
    margin, ids, *columns = block
    for part in (json.dumps([margin, ids]).encode(), *columns):
        file.write(LENGTH.pack(ABSENT if part is None else len(part)))
        file.write(part or b"")


def _read(file: IO[bytes]) -> Iterator[Block]:
    with file:
        while (about := _part(file)) is not None:
            margin, ids = json.loads(about)
            yield margin, ids, _part(file), _part(file), _part(file), _part(file)


def _part(file: IO[bytes]) -> bytes | None:
    """The next part; None where it is absent, or the file has ended."""
    length = file.read(LENGTH.size)
    size = LENGTH.unpack(length)[0] if length else ABSENT
    return None if size == ABSENT else file.read(size)
