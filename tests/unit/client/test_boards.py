"""What a run looks like on a terminal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from run_progress import RUNNING

from cerebro_db.display.board_list import Board
from cerebro_db.display.boards import (
    describe_differences,
    escape_text,
    find_newest_losses,
    format_progress,
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
        "run 3 running, epoch 1 of 5, visit 0 of 80, elapsed 0:00:01, eta ?"
    )
    waits = format_progress(replace(PROGRESS, status="queued", queue_position=2))
    assert waits == "run 3 queued, position 2, epoch 1 of 5, visit 0 of 80, elapsed 0:00:01"
    ended = replace(
        PROGRESS, status="completed", epoch=5, visits_done=80, best_mst_key=7, best_value=0.9
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
