"""Predictions in an unnamed file: all of them are read, and only with their reference."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.predict import precomputed_predictions
from cerebro_plpy.operations.predict.predict_table import Block, RowsArguments
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.tables.models.granted_versions import ModelName

COLUMN = st.one_of(st.none(), st.binary())
BLOCKS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.floats(0, 1e300)),
        st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8")))),
        COLUMN, COLUMN, COLUMN, COLUMN,
    )
)  # fmt: skip


class Session:
    """A caller whose transactions can be distinguished."""

    platform = Postgres()

    def __init__(self) -> None:
        self.transaction = 1

    def value(self, statement: str) -> int:
        return self.transaction

    def configured(self, **values: str) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def gd() -> Iterator[dict[str, Any]]:
    """Global data of a session; its files are closed at the end."""
    data: dict[str, Any] = {}
    yield data
    for _, file in data[precomputed_predictions.FILES_KEY]:
        file.close()


def store(session: Any, gd: dict[str, Any], blocks: list[Block]) -> str:
    """Store blocks as if they had been predicted; return their reference."""

    def predict(*_: object, shared: bool) -> Iterator[Block]:
        return iter(blocks)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(precomputed_predictions, "predict_source", predict)
        return precomputed_predictions.predict_ahead(
            session, gd, ModelName("m", None), RowsArguments("t")
        )


@given(BLOCKS)
def test_predictions_can_be_read_repeatedly(gd: dict[str, Any], blocks: list[Block]) -> None:
    reference = store(Session(), gd, blocks)
    readers = [precomputed_predictions.read_predictions(reference) for _ in range(2)]
    first = [next(reader, None) for reader in readers]  # each reader has a position of its own
    assert all(
        [start, *reader] == [*blocks, *([] if blocks else [None])]
        for start, reader in zip(first, readers, strict=True)
    )


def test_files_have_no_name_and_are_private(gd: dict[str, Any], folder: Path) -> None:
    pid, number, _ = store(Session(), gd, [(None, ["1"], b"{a}", None, None, None)]).split()
    status = os.stat(f"/proc/{pid}/fd/{number}")
    assert not list(folder.iterdir()) and status.st_nlink == 0 and status.st_mode & 0o77 == 0


def test_files_of_earlier_transactions_and_beyond_the_limit_are_closed(gd: dict[str, Any]) -> None:
    session = Session()
    session.transaction += 1
    references = [store(session, gd, []) for _ in range(precomputed_predictions.MAX_FILES + 1)]
    with pytest.raises(ObjectNotReady):
        precomputed_predictions.read_predictions(references[0])
    for reference in references[1:]:
        assert list(precomputed_predictions.read_predictions(reference)) == []
    session.transaction += 1
    newest = store(session, gd, [])
    assert len(gd[precomputed_predictions.FILES_KEY]) == 1
    assert list(precomputed_predictions.read_predictions(newest)) == []


def test_no_other_file_is_read(gd: dict[str, Any], folder: Path) -> None:
    pid, number, secret = store(Session(), gd, []).split()
    named = (folder / "named").open("w+b")
    other = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    reading, writing = os.pipe()
    with named, other:
        for file in (named, other):
            file.write(
                precomputed_predictions.MAGIC
                + (bytes.fromhex(secret) if file is named else b"?" * 16)
            )
            file.flush()
        wrong: list[str | None] = [
            None, "", "1 2", f"{pid} {number}", f"{pid} {number} {'0' * 32}",
            f"{pid} {number} {secret}0",
            f"{pid} {number} {secret}\n", f"{pid} {named.fileno()} {secret}",
            f"{pid} {other.fileno()} {secret}",
            f"{pid} {reading} {secret}", f"{pid} 999999 {secret}", f"9999999999 {number} {secret}",
            f"{pid} ../exe {secret}",
            f"{pid} {number} {secret.upper() if secret.upper() != secret else 'x' * 32}",
        ]  # fmt: skip
        for reference in wrong:
            with pytest.raises(ObjectNotReady, match="are gone"):
                precomputed_predictions.read_predictions(reference)
    os.close(reading)
    os.close(writing)
