"""Runs are listed in the width of a terminal, and no error is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.display.run_list import RunList
from cerebro_db.records import Run
from cerebro_db.result_set import Records

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def run(number: int, name: str | None, error: str | None, seconds: int | None) -> Run:
    status = "completed" if error is None else "failed"
    return Run(
        run_id=number,
        name=name,
        owner="ann",
        status=status,
        spec={},
        started_at=START,
        ended_at=None if seconds is None else START + timedelta(seconds=seconds),
        error=error,
        epochs=7,
        segments=[0],
        pid=1,
        software={},
    )


RUNS = st.builds(
    run,
    st.integers(1, 9999),
    st.none() | st.text("abc _", max_size=40),
    st.none() | st.text("abc \n<", max_size=300),
    st.none() | st.integers(0, 10**5),
)


@given(st.lists(RUNS, max_size=5), st.sampled_from([60, 80, 200]))
def test_a_list_fits_and_no_error_is_lost(runs: list[Run], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        shown = repr(RunList(Records(runs, ["run_id"])))
    assert max(map(len, shown.splitlines())) <= width
    if width >= 80:
        assert all(word in shown.splitlines()[0] for word in ("run_id", "name", "status"))
        assert "…" not in shown and shown.count("2030-01-02 03:04") == len(runs)
    text = "".join(shown.split())
    for entry in runs:
        assert "".join((entry.error or "").split()) in text


def test_a_run_has_a_line_with_its_duration_and_an_error_below() -> None:
    runs = [run(2, "b", "division by\nzero <1>", 3700), run(1, None, None, None)]
    listed = RunList(Records(runs, ["run_id"]))
    lines = [line.split() for line in repr(listed).splitlines()]
    assert lines[0] == ["run_id", "name", "owner", "status", "started_at", "duration", "epochs"]
    assert lines[2] == ["2", "b", "ann", "failed", "2030-01-02", "03:04", "1:01:40", "7"]
    assert lines[3] == ["1", "ann", "completed", "2030-01-02", "03:04", "7"]
    assert " ".join(lines[4]) == "run 2 failed: division by zero <1>"
    assert "<p>run 2 failed: division by zero &lt;1&gt;</p>" in listed._repr_html_()
