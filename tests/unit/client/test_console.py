"""Keys, lanes and curves of a watched run: what is drawn and asked follows from values alone."""

from __future__ import annotations

import os
import pty
import signal
import termios
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cerebro_db.console.key_bindings import Act, Action, Pad, press
from cerebro_db.console.keyboard import ENTER, ESCAPE, keyboard, pressed
from cerebro_db.console.screen import Look, frame, window
from cerebro_db.display.sparklines import GAP, LEVELS, make_sparkline
from cerebro_db.display.timeline import choose_window, make_lanes
from cerebro_db.records import Point, Progress, Span, Standing

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
HOSTILE = "\x1b[2J\x07[bold]$x$\u202e"
CONFIGS = [3, 1, 2]
KEYS = st.sampled_from(
    ["up", "down", "j", "k", "s", "c", "+", "p", "x", "z", ENTER, ESCAPE, "erase", "{", "}", "é"]
)


def played(keys: list[str], configs: list[int] = CONFIGS, paused: bool = False) -> list[Pad]:
    """The pads after each key."""
    found = [Pad()]
    for key in keys:
        found.append(press(found[-1], key, configs, paused))
    return found[1:]


def acts(keys: list[str], paused: bool = False) -> list[Act]:
    return [pad.act for pad in played(keys, paused=paused) if pad.act is not None]


@given(st.text())
def test_whatever_a_terminal_sends_is_keys(told: str) -> None:
    assert all(key.isprintable() and key for key in pressed(told))


def test_keys_come_apart() -> None:
    assert pressed("\x1b[A\x1bOBs\x1b[5~\x1b[1;5C\x1bx") == ["up", "down", "s", "escape", "x"]


@given(st.lists(KEYS))
def test_an_act_is_about_a_config_that_there_is_and_the_run_is_cancelled_after_two_presses(
    keys: list[str],
) -> None:
    for number, pad in enumerate(played(keys)):
        assert pad.chosen in CONFIGS
        if pad.act is not None and pad.act.action is Action.CANCEL_RUN:
            assert keys[number - 1 : number + 1] == ["x", "x"]
        if pad.act is not None and pad.act.mst_key is not None:
            assert pad.act.mst_key == pad.chosen
    assert not any(pad.act for pad in played(keys, []) if pad.act and pad.act.mst_key is not None)


@pytest.mark.parametrize(
    "keys, found",
    [
        (["s"], [Act(Action.STOP, 3)]),
        (["j", "down", "down", "c"], [Act(Action.CONTINUE, 2)]),
        (["j", "k", "up", "c"], [Act(Action.CONTINUE, 3)]),
        (["p"], [Act(Action.PAUSE_RUN)]),
        (["x", "j", "x"], []),
        (["x", "x"], [Act(Action.CANCEL_RUN)]),
        (
            ["j", "+", *'{"lr": 1}q', "erase", ENTER, "q"],
            [Act(Action.CLONE, 1, {"lr": 1}), Act(Action.QUIT)],
        ),
        (["+", "s", "x", "x", ESCAPE, "s"], [Act(Action.STOP, 3)]),
        (["+", *"[1]", ENTER], []),
        (["+", *"{lr", ENTER], []),
        (["+", "closed"], [Act(Action.QUIT)]),
    ],
)
def test_what_keys_ask_for(keys: list[str], found: list[Act]) -> None:
    assert acts(keys) == found


def test_what_is_wrong_with_a_change_is_told() -> None:
    assert "is not JSON" in played(["+", *"{lr", ENTER])[-1].note
    assert "is no object" in played(["+", *"[1]", ENTER])[-1].note
    assert acts(["p"], paused=True) == [Act(Action.CONTINUE_RUN)]


def test_a_chosen_config_that_is_gone_is_replaced_by_the_first() -> None:
    assert press(Pad(chosen=9), "s", CONFIGS, False).act == Act(Action.STOP, 3)


@given(st.lists(st.none() | st.floats()), st.integers(0, 20))
def test_a_sparkline_has_a_letter_for_each_value(values: list[float | None], width: int) -> None:
    line = make_sparkline(values, width)
    assert len(line) == min(len(values), width) and set(line) <= {*LEVELS, GAP}


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=20))
def test_a_sparkline_rises_with_its_values(values: list[float]) -> None:
    line = make_sparkline(values, 20)
    ordered = [letter for _, letter in sorted(zip(values, line, strict=True))]
    assert ordered == sorted(ordered, key=LEVELS.index)


def span(segment: int, key: int, start: float, seconds: float | None) -> Span:
    begun = MOMENT + timedelta(seconds=start)
    ended = None if seconds is None else begun + timedelta(seconds=seconds)
    return Span(run_id=1, segment_id=segment, mst_key=key, epoch=1, started_at=begun,
    ended_at=ended, kind="train",
                status="running" if seconds is None else "completed")  # fmt: skip


SPANS = st.lists(
    st.builds(
        span, st.integers(0, 3), st.integers(1, 12), st.floats(0, 99), st.none() | st.floats(0, 99)
    ),
    max_size=9,
)


@given(SPANS, st.floats(1, 200), st.integers(1, 40))
def test_lanes_have_the_cells_of_their_own_segment(
    spans: list[Span], at: float, width: int
) -> None:
    now = MOMENT + timedelta(seconds=at)
    found = make_lanes(spans, now, choose_window(spans), width)
    assert [*found] == sorted({span.segment_id for span in spans})
    for segment, cells in found.items():
        assert len(cells) == width
        assert {cell.mst_key for cell in cells if cell} <= {
            one.mst_key for one in spans if one.segment_id == segment
        }


def test_what_goes_on_reaches_until_now() -> None:
    now = MOMENT + timedelta(seconds=10)
    found = make_lanes([span(0, 1, 0, 5), span(0, 2, 5, None)], now, timedelta(seconds=10), 10)
    assert [cell and cell.mst_key for cell in found[0]] == [1] * 5 + [2] * 5


@given(st.lists(st.integers(1, 99), unique=True), st.integers(3, 9), st.data())
def test_the_chosen_config_is_in_view(configs: list[int], rows: int, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(configs)) if configs else None
    shown = configs[window(configs, chosen, rows)]
    assert len(shown) == min(rows, len(configs)) and (chosen is None or chosen in shown)


def look(configs: int) -> Look:
    progress = Progress(
        run_id=1, name=HOSTILE, owner="ann", status="running", epoch=1, epochs=2, visits_done=1,
        visits_total=4,
        configs_running=1, configs_failed=0, best_mst_key=None, best_value=None,
        elapsed=timedelta(1), eta=None,
        queue_position=None,
    )  # fmt: skip
    board = [
        Standing(run_id=1, rank=key, mst_key=key, params={"a": f"{HOSTILE}{key}"}, epochs=1,
        status="running",
                 dataset="validation", metric=HOSTILE, value=0.5, training_time=None,
                 reason=HOSTILE)
        for key in range(1, configs + 1)
    ]  # fmt: skip
    points = [
        Point(
            run_id=1, mst_key=1, epoch=1, dataset="validation", name=HOSTILE, value=0.5, time=MOMENT
        )
    ]
    return Look(progress, board, points, [span(segment, 1, 0, 1) for segment in range(12)], HOSTILE)


@pytest.mark.parametrize("size", [(40, 30), (80, 40), (200, 50)])
@pytest.mark.parametrize("pad", [Pad(), Pad(chosen=2), Pad(typed=HOSTILE), Pad(note=HOSTILE)])
def test_a_frame_fits_and_texts_of_users_command_nothing(size: tuple[int, int], pad: Pad) -> None:
    told = StringIO()
    console = Console(file=told, width=size[0], height=size[1], color_system=None)
    console.print(frame(look(40), pad, console))
    lines = told.getvalue().split("\n")[:-1]
    assert len(lines) <= size[1] and all(
        line.isprintable() and len(line) <= size[0] for line in lines
    )
    assert lines[-1].startswith("arrows choose") and lines[0].startswith("run 1 running")
    assert lines[2].startswith("segment 0"), "the bar has a line of its own"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    controller, terminal = pty.openpty()
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize("how", [None, RuntimeError(), KeyboardInterrupt(), signal.SIGTERM])
def test_a_terminal_is_as_before_however_it_ends(terminal: tuple[int, int], how: Any) -> None:
    controller, descriptor = terminal
    before, asked = termios.tcgetattr(descriptor), signal.getsignal(signal.SIGTERM)

    def held() -> list[str]:
        with keyboard(descriptor) as keys:
            assert termios.tcgetattr(descriptor) != before
            os.write(controller, b"s\x1b[B")
            found = keys.wait(60)
            if isinstance(how, BaseException):
                raise how
            if how is not None:
                os.kill(os.getpid(), how)
            return found

    if how is None:
        assert held() == ["s", "down"]
    else:
        with pytest.raises(type(how) if isinstance(how, BaseException) else SystemExit):
            held()
    assert termios.tcgetattr(descriptor) == before and signal.getsignal(signal.SIGTERM) is asked
