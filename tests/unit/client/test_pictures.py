"""Charts show every value that there is, once, and are files, never windows."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.records import Point, Span
from cerebro_db.show.pictures import FEW, bars, curves, draw_learning_curves, draw_occupancy

MOMENT = datetime(2030, 1, 1, tzinfo=timezone.utc)
POINTS = st.lists(
    st.builds(
        Point,
        run_id=st.just(1),
        mst_key=st.integers(1, 4),
        epoch=st.integers(1, 9),
        dataset=st.sampled_from(["training", "validation"]),
        name=st.sampled_from(["loss", "accuracy"]),
        value=st.none() | st.floats(0, 9),
        time=st.just(MOMENT),
    ),
    unique_by=lambda point: (point.mst_key, point.epoch, point.dataset, point.name),
)


def span(segment_id: int, mst_key: int, start: float, seconds: float | None, kind: str = "train") -> Span:
    started = MOMENT + timedelta(seconds=start)
    return Span(
        run_id=1,
        segment_id=segment_id,
        mst_key=mst_key,
        epoch=1,
        started_at=started,
        ended_at=None if seconds is None else started + timedelta(seconds=seconds),
        kind=kind,
        status="running" if seconds is None else "completed",
    )


def points(configs: int) -> list[Point]:
    return [
        Point(run_id=1, mst_key=key, epoch=epoch, dataset=dataset, name=name, value=1.0 / epoch, time=MOMENT)
        for key in range(1, configs + 1)
        for epoch in (1, 2, 3)
        for dataset in ("training", "validation")
        for name in ("accuracy", "loss")
    ]


@given(POINTS)
def test_every_value_is_in_one_curve_in_the_order_of_epochs(points: list[Point]) -> None:
    lines = curves(points)
    drawn = Counter(
        (line.mst_key, epoch, line.dataset, line.name, value)
        for line in lines
        for epoch, value in zip(line.epochs, line.values, strict=True)
    )
    assert drawn == Counter((p.mst_key, p.epoch, p.dataset, p.name, p.value) for p in points if p.value is not None)
    assert all(list(line.epochs) == sorted(line.epochs) for line in lines)
    assert len({(line.mst_key, line.dataset, line.name) for line in lines}) == len(lines)


def test_bars_start_with_the_first_span_and_end_now_where_they_have_no_end() -> None:
    spans = [span(0, 1, 2.0, 0.5), span(1, 2, 1.0, None)]
    assert [(bar.start, bar.length) for bar in bars(spans)] == [(1.0, 0.5)]
    now = MOMENT + timedelta(seconds=4)
    assert [(bar.start, bar.length) for bar in bars(spans, now)] == [(1.0, 0.5), (0.0, 3.0)]


@pytest.mark.parametrize("configs", [0, 1, FEW, FEW + 1])
def test_learning_curves_are_a_png_file(tmp_path: Path, configs: int) -> None:
    path = draw_learning_curves(points(configs), tmp_path / "new" / "curves.png", best=1)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("spans", [[], [span(0, 1, 0, 1), span(3, 2, 0, 1, "evaluate"), span(3, 2, 1, None)]])
def test_occupancy_is_a_png_file(tmp_path: Path, spans: list[Span]) -> None:
    assert draw_occupancy(spans, tmp_path / "segments.png").read_bytes().startswith(b"\x89PNG")


def test_the_client_opens_no_window_and_imports_no_framework() -> None:
    """In an interpreter of its own, as other tests may import what must not be imported here."""
    program = (
        "import sys, cerebro_db.demo.walkthrough, cerebro_db.show.watch\n"
        "refused = {'matplotlib.pyplot', 'tensorflow', 'keras', 'cerebro_plpy', 'cerebro_trainer'}\n"
        "print(*(refused & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
