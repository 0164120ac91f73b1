"""Charts of parameters and models: places follow from values alone, and texts of users stay
texts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from cerebro_db.display.axes import MIN_LOG_RATIO, MISSING, make_axes, make_axis
from cerebro_db.display.board_list import Board
from cerebro_db.display.chart_style import (
    COLOURS,
    HATCHES,
    LINE_STYLES,
    choose_colour,
    choose_hatch,
    choose_line_style,
    make_label,
)
from cerebro_db.display.charts import (
    MAX_LEGEND_CONFIGS,
    draw_gantt_chart,
    draw_learning_curves,
)
from cerebro_db.display.curve_list import Curves
from cerebro_db.display.model_charts import (
    Confusion,
    draw_confusion,
    draw_importance,
    list_importances,
    make_confusion,
)
from cerebro_db.display.parallel import draw_parallel
from cerebro_db.records import Parameter, Point, Span, Standing
from cerebro_db.result_set import Records

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
HOSTILE = ["$\\frac{$", "a\x1b[2J\n", "$x$", "<b>", "", "\u202egnp", "%s & _"]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6)
ANYTHING = (
    st.none()
    | NUMBERS
    | st.text(max_size=5)
    | st.booleans()
    | st.just(math.nan)
    | st.just([1, "a"])
)


def standing(key: int, value: float | None) -> Standing:
    return Standing(
        run_id=1, rank=key, mst_key=key, params={}, epochs=1, status="completed",
        dataset="validation",
        metric="loss", value=value, training_time=None, reason=None,
    )  # fmt: skip


def parameter(key: int, name: str, value: object) -> Parameter:
    return Parameter(run_id=1, mst_key=key, name=name, value=value)


@given(st.dictionaries(st.integers(1, 9), ANYTHING))
def test_every_config_has_a_place_on_every_axis(values: dict[int, object]) -> None:
    shown = make_axis("x", values)
    assert shown.positions.keys() == values.keys()
    assert all(place == MISSING or 0 <= place <= 1 for place in shown.positions.values())
    assert [tick.position for tick in shown.ticks] == sorted(tick.position for tick in shown.ticks)


@given(st.dictionaries(st.integers(1, 9), NUMBERS, min_size=1))
def test_numbers_keep_their_order(values: dict[int, float]) -> None:
    places = make_axis("x", values).positions
    ordered = sorted(values, key=lambda key: values[key])
    assert [places[key] for key in ordered] == sorted(places.values())


def test_an_axis_over_two_decades_is_logarithmic() -> None:
    assert make_axis("lr", {1: 1, 2: 10, 3: MIN_LOG_RATIO}).positions[2] == pytest.approx(0.5)
    assert make_axis("lr", {1: 1, 2: 10, 3: MIN_LOG_RATIO - 1}).positions[2] == pytest.approx(
        9 / (MIN_LOG_RATIO - 2)
    )
    assert make_axis("lr", {1: 0, 2: 10, 3: 1000}).positions[2] == pytest.approx(0.01)


def test_axes_are_parameters_that_differ_and_the_metric() -> None:
    board = [standing(1, 0.5), standing(2, None)]
    found = [parameter(key, "lr", key) for key in (1, 2)] + [
        parameter(key, "b", 8) for key in (1, 2)
    ]
    assert [each.name for each in make_axes(board, found)] == ["lr", "validation loss"]
    assert [each.name for each in make_axes(board[:1], found[:1])] == ["lr", "validation loss"]
    assert make_axes(board, found)[-1].positions[2] == MISSING
    drawn = [
        replace(one, template=name) for one, name in zip(board, ("linear", "resnet"), strict=True)
    ]
    assert [each.name for each in make_axes(drawn, found)] == [
        "template",
        "lr",
        "validation loss",
    ]
    only = make_axes(board, [parameter(2, "dropout", 0.1)])
    assert only[0].positions == {1: MISSING, 2: 0.5}


def test_configs_of_one_colour_look_different() -> None:
    keys = range(len(COLOURS) * len(LINE_STYLES))
    assert (
        len({(choose_colour(key), choose_line_style(key)) for key in keys})
        == len({(choose_colour(key), choose_hatch(key)) for key in keys})
        == len(keys)
    )
    assert len(HATCHES) == len(LINE_STYLES)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_texts_of_users_are_drawn_as_they_are(tmp_path: Path, suffix: str) -> None:
    board = [standing(key, None if key == 3 else float(key)) for key in range(1, 8)]
    found = [parameter(key, name, name[key % 2 :]) for key in range(1, 8) for name in HOSTILE]
    draw_parallel(board, found, tmp_path / f"parallel.{suffix}", title=HOSTILE[0])
    rows = [{"column_name": name, "importance": 0.1, "importance_error": 0.01} for name in HOSTILE]
    draw_importance(
        list_importances(rows),
        tmp_path / f"importance.{suffix}",
        metric="$x$",
        title=HOSTILE[1],
    )
    cells = [
        {
            "group_values": None,
            "metric": "confusion",
            "class": name,
            "predicted": HOSTILE[0],
            "value": 1.0,
            "rows": 2,
        }
        for name in HOSTILE
    ]
    draw_confusion(make_confusion(cells), tmp_path / f"confusion.{suffix}", title=HOSTILE[2])
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(files) == 3
    assert all(
        file.startswith(b"\x89PNG") if suffix == "png" else b"</svg>" in file for file in files
    )


def test_nothing_to_draw_is_no_error(tmp_path: Path) -> None:
    assert draw_parallel([], [], tmp_path / "parallel.png").exists()


@given(st.text(max_size=60))
def test_labels_are_short_and_command_nothing(text: str) -> None:
    assert make_label(text).isprintable() and 0 < len(make_label(text)) <= 28


def test_a_confusion_matrix_has_all_rows_and_leaves_groups_out() -> None:
    def cell(
        actual: str, predicted: str, rows: int, group: object = None, metric: str = "confusion"
    ) -> dict[str, object]:
        return {
            "group_values": group,
            "metric": metric,
            "class": actual,
            "predicted": predicted,
            "value": 0.5,
            "rows": rows,
        }

    found = make_confusion(
        [
            cell("a", "a", 3),
            cell("a", "b", 2),
            cell("b", "b", 4),
            cell("a", "a", 9, {"g": 1}),
            cell("a", "a", 9, metric="auc"),
        ]
    )
    assert found.classes == ("a", "b")
    assert found.rows == [[3, 2], [0, 4]]


LONG = "a species with a long name (of the kind that a book on birds has), adult"


def draw_all(folder: Path) -> list[Path]:
    """Draw each chart with as many and as long texts as there may be."""
    configs = range(1, MAX_LEGEND_CONFIGS + 1)
    params = {key: ", ".join(f"parameter_{n}={key / 7:.6g}" for n in range(12)) for key in configs}
    point = {"run_id": 1, "dataset": "validation", "name": "loss", "time": MOMENT}
    points = [Point(**point, mst_key=key, epoch=1, value=key) for key in configs]  # type: ignore[arg-type]
    spans = [
        Span(
            run_id=1,
            segment_id=0,
            mst_key=key,
            epoch=1,
            started_at=MOMENT + timedelta(seconds=key),
            ended_at=MOMENT + timedelta(seconds=key + 1),
            kind="train",
            status="completed",
        )
        for key in configs
    ]
    board = [standing(key, float(key)) for key in configs]
    values = [parameter(key, f"name {n} of a parameter", key) for key in configs for n in range(15)]
    classes = [f"{number} {LONG}" for number in range(3)]
    confusion = Confusion(tuple(classes), [[0.0] * 3] * 3, [[0] * 3] * 3)
    return [
        draw_learning_curves(points, folder / "curves.png", best=3, params=params, title="run 1"),
        draw_gantt_chart(spans, folder / "lanes.png", params=params, title="run 1"),
        draw_parallel(board, values, folder / "parallel.png", title="run 1"),
        draw_confusion(confusion, folder / "confusion.png", title="model"),
    ]


def test_nothing_is_cut_at_a_border_and_no_border_is_wide(tmp_path: Path) -> None:
    """All ink of a chart, its legend included, ends just before the borders of the file."""
    for path in draw_all(tmp_path):
        is_ink = np.any(imread(path)[..., :3] < 1, axis=2)
        rows = np.flatnonzero(np.any(is_ink, axis=1))
        columns = np.flatnonzero(np.any(is_ink, axis=0))
        borders = {
            rows[0],
            columns[0],
            is_ink.shape[0] - 1 - rows[-1],
            is_ink.shape[1] - 1 - columns[-1],
        }
        assert min(borders) > 5 and max(borders) < 60, path.name
        assert is_ink.shape[1] <= 2700, path.name


def test_a_notebook_shows_curves_as_a_chart_or_else_as_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = Point(
        run_id=1, mst_key=1, epoch=1, dataset="training", name="loss", time=MOMENT, value=0.5
    )
    board = Board(Records([standing(1, 0.5)], ["rank"]))
    curves = Curves(Records([point], ["epoch", "value"]), lambda: board)
    png = curves._repr_png_()
    assert png is not None and png.startswith(b"\x89PNG") and curves._repr_html_() is None
    monkeypatch.setattr("cerebro_db.display.curve_list.find_spec", lambda name: None)
    html = curves._repr_html_()
    assert html is not None and "<td>0.5</td>" in html
