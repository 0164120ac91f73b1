"""Charts show every value that there is, once, and are files, never windows."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.display.axis_limits import choose_limits
from cerebro_db.display.charts import (
    MAX_LEGEND_CONFIGS,
    draw_gantt_chart,
    draw_learning_curves,
    make_curves,
)
from cerebro_db.display.gantt import make_gantt_chart
from cerebro_db.records import Point, Span

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
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


def span(
    segment_id: int,
    mst_key: int,
    start: float,
    seconds: float | None,
    kind: str = "train",
    pid: int | None = None,
) -> Span:
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
        worker_pid=pid,
    )


def points(configs: int) -> list[Point]:
    return [
        Point(
            run_id=1,
            mst_key=key,
            epoch=epoch,
            dataset=dataset,
            name=name,
            value=1.0 / epoch,
            time=MOMENT,
        )
        for key in range(1, configs + 1)
        for epoch in (1, 2, 3)
        for dataset in ("training", "validation")
        for name in ("accuracy", "loss")
    ]


@pytest.mark.parametrize("name", ["$\\frac{$", "a\x1b[2J\n", "$x$"])
def test_names_of_metrics_are_no_formulas(name: str, tmp_path: Path) -> None:
    lines = [
        Point(run_id=1, mst_key=1, epoch=1, dataset="training", name=name, value=1.0, time=MOMENT)
    ]
    assert draw_learning_curves(lines, tmp_path / "curves.png").stat().st_size


@given(POINTS)
def test_every_value_is_in_one_curve_in_the_order_of_epochs(points: list[Point]) -> None:
    lines = make_curves(points)
    drawn = Counter(
        (line.mst_key, epoch, line.dataset, line.name, value)
        for line in lines
        for epoch, value in zip(line.epochs, line.values, strict=True)
    )
    assert drawn == Counter(
        (p.mst_key, p.epoch, p.dataset, p.name, p.value) for p in points if p.value is not None
    )
    assert all(list(line.epochs) == sorted(line.epochs) for line in lines)
    assert len({(line.mst_key, line.dataset, line.name) for line in lines}) == len(lines)


def test_bars_start_with_the_first_span_and_spans_without_an_end_have_none() -> None:
    spans = [span(0, 1, 2.0, 0.5), span(1, 2, 1.0, None), span(1, 2, 0.0, 2.5)]
    assert [(bar.start, bar.length) for bar in make_gantt_chart(spans).bars] == [
        (0.0, 2.5),
        (2.0, 0.5),
    ]


def test_rows_are_workers_each_with_its_segments() -> None:
    """Four segments of two workers; an evaluation is by the worker of its segment."""
    visits = [span(number, 1, number // 2, 0.5, pid=100 + number % 2) for number in range(4)]
    shown = make_gantt_chart([*visits, span(2, 1, 3, 1, "evaluate"), span(3, 1, 3, 1, "evaluate")])
    assert {(bar.segment_id, bar.row) for bar in shown.bars} == {(0, 0), (1, 1), (2, 0), (3, 1)}
    assert not shown.breaks


def test_a_resumed_run_goes_on_in_the_same_rows_after_a_mark() -> None:
    before = [span(0, 1, 0, 10, pid=1), span(1, 2, 0, 9, pid=2), span(0, 2, 9.5, 0.4, "evaluate")]
    after = [span(0, 2, 3600, 5, pid=3), span(1, 1, 3601, 5, pid=4)]
    shown = make_gantt_chart([*before, *after])
    assert {bar.row for bar in shown.bars} == {0, 1}
    assert shown.breaks == [(10.0, timedelta(seconds=3590))]
    assert [bar.start for bar in shown.bars] == [0, 0, 9.5, 10, 11]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(0, 99), st.floats(0.1, 9), st.integers(1, 5)),
        max_size=12,
    )
)
def test_no_two_workers_share_a_row_at_a_time(parts: list[tuple[int, float, float, int]]) -> None:
    spans = [span(segment, 1, start, seconds, pid=pid) for segment, start, seconds, pid in parts]
    shown = make_gantt_chart(spans)
    assert len(shown.bars) == len(spans)
    assert all(bar.start >= 0 for bar in shown.bars)
    stays = {
        pid: [one for one in spans if one.worker_pid == pid]
        for pid in {one.worker_pid for one in spans}
    }
    at_once = max(
        (
            sum(
                min(o.started_at for o in its)
                <= one.started_at
                < max(o.ended_at or MOMENT for o in its)
                for its in stays.values()
            )
            for one in spans
        ),
        default=0,
    )
    assert len({bar.row for bar in shown.bars}) <= at_once


VALUES = st.dictionaries(
    st.integers(1, 9), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5), min_size=1
)


@given(VALUES)
def test_the_best_config_and_half_of_all_are_in_the_frame(values: dict[int, list[float]]) -> None:
    best = min(values)
    shown = choose_limits(values, best)
    assert best not in shown.outside and 2 * len(shown.outside) <= len(values)
    if shown.outside:
        assert shown.low is not None and shown.high is not None
        inside = [value for key, its in values.items() if key not in shown.outside for value in its]
        assert shown.low < min(inside) and max(inside) < shown.high


def test_one_config_that_diverged_flattens_no_other() -> None:
    values = {key: [0.9 / key, 0.5 / key] for key in range(1, 16)} | {16: [2.3, 1e9]}
    shown = choose_limits(values, 15)
    assert shown.outside == (16,) and shown.high is not None and shown.high < 1
    assert choose_limits({1: [1000.0, 0.5], 2: [900.0, 0.4]}, 2).is_logarithmic
    assert choose_limits({1: [0.1, 0.99], 2: [0.001, 0.01]}, 1) == (None, None, (), False), (
        "an accuracy is shown as it is"
    )


@pytest.mark.parametrize("configs", [0, MAX_LEGEND_CONFIGS, MAX_LEGEND_CONFIGS + 1])
def test_learning_curves_are_a_png_file(tmp_path: Path, configs: int) -> None:
    params = {key: "lr=$0.1^{, <b>" for key in range(configs + 1)}
    path = draw_learning_curves(
        points(configs), tmp_path / "new/curves.png", best=1, params=params, title="$x^{"
    )
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [
            span(0, 1, 0, 1),
            span(3, 2, 0, 1, "evaluate"),
            span(3, 2, 1, None),
            span(3, 2, 9, 1, pid=4),
        ],
    ],
)
def test_a_gantt_chart_is_a_png_file(tmp_path: Path, spans: list[Span]) -> None:
    assert draw_gantt_chart(spans, tmp_path / "segments.png").read_bytes().startswith(b"\x89PNG")


def test_the_client_opens_no_window_and_imports_no_framework() -> None:
    """In an interpreter of its own, as other tests may import what must not be imported here."""
    program = (
        "import sys, cerebro_db.demo.walkthrough, cerebro_db.display.watch\n"
        "refused = {'matplotlib.pyplot', 'tensorflow', 'keras', 'cerebro_plpy', "
        "'cerebro_trainer'}\n"
        "print(*(refused & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
