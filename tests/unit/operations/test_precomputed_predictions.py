"""Predictions that wait in a file: all of them come back, and to nobody else."""

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
from cerebro_plpy.operations.predict.predict_table import Block
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
    """A caller whose transactions can be told apart; nothing else is asked of it."""

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
    """What a session keeps."""
    made: dict[str, Any] = {}
    yield made
    for _, file in made[precomputed_predictions.FILES_KEY]:
        file.close()


def ahead(session: Any, gd: dict[str, Any], blocks: list[Block]) -> str:
    """Keep these blocks, as if they had been predicted."""

    def source(*_: object, shared: bool) -> Iterator[Block]:
        return iter(blocks)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(precomputed_predictions, "predict_source", source)
        return precomputed_predictions.predict_ahead(session, gd, ModelName("m", None), ("t", None))


@given(BLOCKS)
def test_what_was_predicted_is_read_as_often_as_one_likes(
    gd: dict[str, Any], blocks: list[Block]
) -> None:
    told = ahead(Session(), gd, blocks)
    readers = [precomputed_predictions.read_predictions(told) for _ in range(2)]
    first = [next(reader, None) for reader in readers]  # each reads on where it was
    assert all(
        [start, *reader] == [*blocks, *([] if blocks else [None])]
        for start, reader in zip(first, readers, strict=True)
    )


def test_files_have_no_name_and_are_private(gd: dict[str, Any], folder: Path) -> None:
    pid, number, _ = ahead(Session(), gd, [(None, ["1"], b"{a}", None, None, None)]).split()
    about = os.stat(f"/proc/{pid}/fd/{number}")
    assert not list(folder.iterdir()) and about.st_nlink == 0 and about.st_mode & 0o77 == 0


def test_those_of_earlier_transactions_and_too_many_go(gd: dict[str, Any]) -> None:
    session = Session()
    session.transaction += 1
    told = [ahead(session, gd, []) for _ in range(precomputed_predictions.MAX_FILES + 1)]
    with pytest.raises(ObjectNotReady):
        precomputed_predictions.read_predictions(told[0])
    assert [list(precomputed_predictions.read_predictions(each)) for each in told[1:]] == [
        []
    ] * precomputed_predictions.MAX_FILES
    session.transaction += 1
    newest = ahead(session, gd, [])
    assert (
        len(gd[precomputed_predictions.FILES_KEY]) == 1
        and list(precomputed_predictions.read_predictions(newest)) == []
    )


def test_no_other_file_is_read(gd: dict[str, Any], folder: Path) -> None:
    pid, number, secret = ahead(Session(), gd, []).split()
    named, other = (folder / "named").open("w+b"), tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
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
        for told in wrong:
            with pytest.raises(ObjectNotReady, match="is gone"):
                precomputed_predictions.read_predictions(told)
    os.close(reading)
    os.close(writing)
