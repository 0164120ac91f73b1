"""Compiled code that sessions leave for each other: by default, or none where an administrator
wants none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from workbench import Row, Workbench, setting

ELSEWHERE = "there each segment has a folder"
REPORT = "SELECT cerebro.trainer_report('none')"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> Iterator[None]:
    """A packed table of one segment, and a config."""
    bench.pack("whole", 1)
    bench.configure(
        "one", ["optimizer='Adam()',loss='categorical_crossentropy',metrics=['accuracy']"]
    )
    yield


@pytest.fixture
def usual(bench: Workbench, shared_superuser: Workbench) -> Iterator[Path]:
    """Where this server's code lies where nothing is set."""
    with setting(bench, "compilation_cache", None):
        yield Path(shared_superuser.value(REPORT)["compilation_cache"])


def trained(bench: Workbench, output: str, **how: object) -> tuple[int, list[Row]]:
    """The run and the model of a new session, so that no trainer of an earlier one serves it."""
    with closing(Workbench(bench.url)) as session:
        run = session.fit("whole", output, "one", 2, backend="jax", **how)
        session.rows(
            "SELECT madlib_predict(%s, 'points', 'id', 'x', %s, mst_key => 1)",
            output,
            f"{output}_rows",
        )
        return run, session.rows(f"SELECT md5(model_weights) FROM {output}")


def kept(folder: Path) -> dict[Path, int]:
    """What is there, and which file it is: what is compiled anew is another."""
    return {path: path.stat().st_ino for path in folder.glob("*/*")}


@pytest.mark.long
@pytest.mark.postgresql(ELSEWHERE)
def test_by_default_the_next_session_finds_what_one_compiled(bench: Workbench, usual: Path) -> None:
    run, model = trained(bench, "first", seed=3)
    files = kept(usual)
    assert files
    assert trained(bench, "second", schedule="replay", replay_run=run)[1] == model
    assert kept(usual) == files
    with setting(bench, "compilation_cache", ""):
        assert trained(bench, "third", schedule="replay", replay_run=run)[1] == model
    assert kept(usual) == files


@pytest.mark.postgresql(ELSEWHERE)
def test_the_default_is_a_private_folder_of_this_server(
    shared_superuser: Workbench, usual: Path
) -> None:
    data = Path(shared_superuser.value("SHOW data_directory"))
    assert not usual.is_relative_to(data)
    for path in (usual, usual.parent):
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (data.stat().st_uid, 0o700)


def test_where_it_lies_is_told_superusers_alone(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    found: dict[str, Any] = shared_superuser.value(REPORT)
    assert "compilation_cache" in found
    assert not {key for key in bench.value(REPORT) if key.startswith("compilation_cache")}


def test_an_empty_text_means_none(bench: Workbench, shared_superuser: Workbench) -> None:
    with setting(bench, "compilation_cache", ""):
        found = shared_superuser.value(REPORT)
    assert (found["compilation_cache"], found["compilation_cache_problem"]) == (None, None)
