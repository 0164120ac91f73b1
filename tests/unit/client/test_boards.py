"""What a run looks like on a terminal."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from run_progress import RUNNING

from cerebro_db.display.board_list import Board, measure_bars
from cerebro_db.display.boards import (
    WIDTH,
    describe_differences,
    escape_text,
    find_newest_losses,
    format_progress,
    make_console,
    make_leaderboard_table,
    make_progress_key,
    split_settings,
)
from cerebro_db.records import Point, Standing
from cerebro_db.result_set import Records

NAMES = st.sampled_from(["lr", "momentum", "batch_size", "epochs", "loss"])
SCALARS = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["'a,b'", '"(,"', "None", "True"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: f"Adam({','.join(items)})"),
    ),
    max_leaves=6,
)
SETTINGS = st.tuples(NAMES, VALUES).map("=".join)
MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
PROGRESS = replace(RUNNING, epochs=5, visits_total=80)


def standing(mst_key: int, rank: int, value: float | None, status: str = "completed") -> Standing:
    return Standing(
        run_id=3,
        rank=rank,
        mst_key=mst_key,
        params={"model_id": mst_key, "fit_params": "epochs=1"},
        epochs=2,
        status=status,
        dataset="validation",
        metric="accuracy",
        value=value,
        training_time=timedelta(seconds=1.25),
        reason=None,
    )


def loss(mst_key: int, epoch: int, value: float | None) -> Point:
    return Point(
        run_id=3,
        mst_key=mst_key,
        epoch=epoch,
        dataset="validation",
        name="loss",
        value=value,
        time=MOMENT,
    )


@given(st.lists(SETTINGS, max_size=6))
def test_settings_that_were_joined_are_split_again(settings: list[str]) -> None:
    assert split_settings(", ".join(settings)) == settings


@given(st.lists(st.lists(SETTINGS, max_size=4, unique=True), min_size=2, max_size=5))
def test_configs_are_told_by_what_not_all_of_them_share(configs: list[list[str]]) -> None:
    params = [{"fit_params": ",".join(settings)} for settings in configs]
    unquoted = [[setting.replace("'", "") for setting in settings] for settings in configs]
    shared = set.intersection(*map(set, unquoted))
    for settings, text in zip(unquoted, describe_differences(params), strict=True):
        assert text == ", ".join(setting for setting in settings if setting not in shared)


def test_a_single_config_is_told_by_everything() -> None:
    assert describe_differences([{"model_id": 1, "fit_params": "epochs=1"}]) == [
        "model_id=1, epochs=1"
    ]
    assert describe_differences([{"compile_params": "optimizer='SGD(lr=1)',loss='mse'"}]) == [
        "SGD(lr=1), loss=mse"
    ]
    assert describe_differences([]) == []
    assert describe_differences([{"lr": 0.1 / 3, "depth": 3}, {"lr": 0.1, "depth": 3}]) == [
        "lr=0.0333333",
        "lr=0.1",
    ]


def test_the_newest_loss_that_was_computed_counts() -> None:
    points = [loss(1, 2, 0.5), loss(1, 1, 0.9), loss(1, 3, None)]
    of_training = replace(loss(2, 1, 0.1), dataset="training")
    assert find_newest_losses([*points, of_training], "validation") == {1: 0.5}


def test_a_leaderboard_shows_rank_config_metric_loss_and_seconds() -> None:
    console = Console(width=100, record=True, file=StringIO())
    board = [standing(7, 1, 0.98765), standing(4, 2, None, status="failed")]
    console.print(make_leaderboard_table(board, [loss(7, 2, 0.12345)]))
    lines = [line.split() for line in console.export_text().splitlines() if line.strip()]
    assert lines[0] == ["rank", "mst_key", "params", "validation", "accuracy", "loss", "seconds"]
    assert lines[2] == ["1", "7", "model_id=7", "0.9877", "0.1235", "1.2"]
    assert lines[3] == ["2", "4", "model_id=4", "failed", "1.2"]


def test_on_80_columns_a_config_takes_two_lines() -> None:
    """What an ordinary search varies; nothing of it is lost."""
    params = [
        {
            "model_id": 1 + number % 2,
            "compile_params": f"optimizer='Adam(learning_rate={10.0**-number})',loss='mse'",
            "fit_params": f"batch_size={8 * number},epochs=1",
        }
        for number in range(1, 6)
    ]
    board = [
        replace(standing(number, number, 0.5), params=its) for number, its in enumerate(params, 1)
    ]
    console = Console(width=80, record=True, file=StringIO())
    console.print(make_leaderboard_table(board, [], console.width))
    lines = [line.rstrip() for line in console.export_text().splitlines() if line.strip()]
    assert len(lines) <= 3 + 2 * len(board) and max(map(len, lines)) <= 80
    assert "learning_rate=1e-05" in "".join("".join(lines).split())


def test_a_leaderboard_that_was_asked_for_is_shown_as_one() -> None:
    board = Board(
        Records([standing(7, 1, 0.98765), standing(4, 2, None, status="failed")], ["rank"])
    )
    lines = [line.split() for line in repr(board).splitlines()]
    assert lines[0] == [
        "rank",
        "mst_key",
        "params",
        "validation",
        "accuracy",
        "status",
        "epochs",
        "seconds",
    ]
    assert lines[2] == ["1", "7", "model_id=7", "0.9877", "completed", "2", "1.2"]
    assert lines[3] == ["2", "4", "model_id=4", "failed", "2", "1.2"]
    assert "<td>model_id=4</td>" in board._repr_html_()
    assert repr(Board(Records([], ["rank"]))).split()[:2] == ["rank", "mst_key"]


@pytest.mark.parametrize("width", [80, 200, None])
def test_output_that_is_piped_has_the_width_of_the_variable(
    width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    assert make_console().width == (width or WIDTH)


@pytest.mark.parametrize("width", [80, 200])
def test_every_board_names_the_template(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    plain = [standing(7, 1, 0.9), standing(4, 2, 0.8)]
    board = [replace(plain[0], template="resmlp"), replace(plain[1], template="lab.nets:12")]
    for standings, words in ((board, ["resmlp", "lab.nets:12"]), (plain, [])):
        console = Console(width=width, record=True, file=StringIO())
        console.print(make_leaderboard_table(standings, [], width))
        html = Board(Records(standings, ["rank"]))._repr_html_()
        for text in (console.export_text(), repr(Board(Records(standings, ["rank"]))), html):
            assert ("template" in text) == bool(words)
            assert all(word in text for word in words)


@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.sampled_from([None, float("nan"), float("inf")]),
        max_size=6,
    ),
    st.booleans(),
    st.integers(1, 2),
)
def test_a_better_value_never_has_a_shorter_bar(
    values: list[float | None], smaller_is_better: bool, groups: int
) -> None:
    finite = sorted(
        {value for value in values if value is not None and math.isfinite(value)},
        reverse=not smaller_is_better,
    )
    ranks = {value: rank for rank, value in enumerate(finite, 1)}
    by_key = dict(enumerate(values * groups))
    board = [
        replace(
            standing(key, ranks.get(value, len(values) + 1), value),  # type: ignore[arg-type]
            group_value=str(key // len(values)),
        )
        for key, value in by_key.items()
    ]
    lengths = measure_bars(board)
    assert {*lengths} == {key for key, value in by_key.items() if value in ranks}
    ordered = sorted(lengths, key=lambda key: ranks[by_key[key]])  # type: ignore[index]
    bars = [lengths[key] for key in ordered]
    assert bars == sorted(bars, reverse=True) and all(0 <= bar <= 1 for bar in bars)
    assert not bars or bars[0] == 1


def test_a_half_error_has_a_whole_bar_and_a_double_one_half_of_it() -> None:
    errors = [standing(1, 1, 2.84), standing(2, 2, 5.68), standing(3, 3, None)]
    assert measure_bars(errors) == {1: 1.0, 2: 0.5}
    scores = [standing(1, 1, 0.8), standing(2, 2, 0.2)]
    assert measure_bars(scores) == {1: 1.0, 2: 0.25}
    html = Board(Records(errors, ["rank"]))._repr_html_()
    assert html.count("<meter") == 2 and '<meter value="0.5"></meter> 5.6800' in html


@given(st.integers(1, 5), st.sampled_from([40, 60, 80, 100, 300]))
def test_a_board_fits_the_terminal(count: int, width: int) -> None:
    fields = {name: 0.123 for name in ("lr", "width", "depth", "dropout", "batch_size")}
    board = [
        replace(
            standing(key, key, 0.5),
            template="realmlp",
            params={"numbers": "periodic", **fields, "k": key},
        )
        for key in range(1, count + 1)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        lines = repr(Board(Records(board, ["rank"]))).splitlines()
    assert max(map(len, lines)) <= width
    if width >= 80:
        headings = {"rank", "mst_key", "template", "params", "validation", "accuracy"}
        assert headings <= set(" ".join(lines[:2]).split())
        assert [line.split()[:3] for line in lines if "realmlp" in line] == [
            [str(key), str(key), "realmlp"] for key in range(1, count + 1)
        ]
        assert sum("0.5000" in line for line in lines) == count and "…" not in "".join(lines)
    shows_seconds = "seconds" in " ".join(lines[:2])
    assert shows_seconds if width == 300 else width > 40 or not shows_seconds


HOSTILE = st.text(
    st.characters(codec="utf-8") | st.sampled_from("[]/\x1b\x9b\x07\r\n\u202e\u2028"),
    min_size=1,
    max_size=12,
)
TRICKS = (
    "[bold red]",
    "[/]",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b2J",
    "\u202egnp.exe",
    "a\rb",
    "[link=file:///etc]x[/link]",
)


@given(HOSTILE | st.sampled_from(TRICKS), st.sampled_from(["a text", "a key", "no record"]))
def test_what_users_write_is_shown_as_data(text: str, kind: str) -> None:
    """Neither marked up nor obeyed by the terminal: whoever looks at another's run sees it as it
    is.
    """
    params: object = {
        "a text": {"compile_params": text, "x": "y"},
        "a key": {text: 1},
        "no record": text,
    }[kind]
    board = [replace(standing(7, 1, 0.5), params=params, metric=text, dataset=text)]  # type: ignore[arg-type]
    console = Console(width=1000, file=(shown := StringIO()), color_system=None)
    console.print(make_leaderboard_table(board, []))
    assert all(letter.isprintable() or letter == "\n" for letter in shown.getvalue())
    assert escape_text(f"{text} {text}".strip()).plain.strip() in shown.getvalue()


def test_a_line_of_progress_says_only_what_is_known() -> None:
    assert format_progress(PROGRESS) == (
        "run 3 running, training, epoch 1 of 5, visit 0 of 80, elapsed 0:00:01, eta ?"
    )
    waits = format_progress(replace(PROGRESS, status="queued", phase=None, queue_position=2))
    assert waits == "run 3 queued, position 2, epoch 1 of 5, visit 0 of 80, elapsed 0:00:01"
    ended = replace(
        PROGRESS,
        status="completed",
        phase=None,
        epoch=5,
        visits_done=80,
        best_mst_key=7,
        best_value=0.9,
    )
    assert format_progress(ended) == (
        "run 3 completed, epoch 5 of 5, visit 80 of 80, elapsed 0:00:01, best: mst_key=7 0.9000"
    )


@given(st.integers(1, 500))
def test_a_run_has_a_bounded_number_of_lines(total: int) -> None:
    marks = {
        make_progress_key(replace(PROGRESS, visits_done=done, visits_total=total))
        for done in range(total + 1)
    }
    assert len(marks) <= 21
