"""Keys, lanes and curves of a watched run: commands and drawings depend on values alone."""

from __future__ import annotations

import os
import pty
import signal
import termios
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cerebro_db.console.key_bindings import Action, Command, KeyState, press_key
from cerebro_db.console.keyboard import ENTER, ESCAPE, open_keyboard, parse_keys
from cerebro_db.console.screen import Snapshot, choose_rows, draw_screen
from cerebro_db.display.sparklines import GAP, LEVELS, make_sparkline
from cerebro_db.display.timeline import choose_window, make_lanes
from cerebro_db.records import Point, Progress, Span, Standing

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
HOSTILE = "\x1b[2J\x07[bold]$x$\u202e"
CONFIGS = [3, 1, 2]
KEYS = st.sampled_from(
    ["up", "down", "j", "k", "s", "c", "+", "p", "x", "z", ENTER, ESCAPE, "erase", "{", "}", "é"]
)


def press_keys(
    keys: list[str], configs: list[int] = CONFIGS, paused: bool = False
) -> list[KeyState]:
    """Return the state after each key."""
    states = [KeyState()]
    for key in keys:
        states.append(press_key(states[-1], key, configs, paused))
    return states[1:]


def commands(keys: list[str], paused: bool = False) -> list[Command]:
    return [state.command for state in press_keys(keys, paused=paused) if state.command is not None]


@given(st.text())
def test_whatever_a_terminal_sends_is_keys(text: str) -> None:
    assert all(key.isprintable() and key for key in parse_keys(text))


def test_keys_come_apart() -> None:
    assert parse_keys("\x1b[A\x1bOBs\x1b[5~\x1b[1;5C\x1bx") == ["up", "down", "s", "escape", "x"]


@given(st.lists(KEYS))
def test_a_command_concerns_an_existing_config_and_cancelling_takes_two_presses(
    keys: list[str],
) -> None:
    for number, state in enumerate(press_keys(keys)):
        assert state.selected in CONFIGS
        if state.command is not None and state.command.action is Action.CANCEL_RUN:
            assert keys[number - 1 : number + 1] == ["x", "x"]
        if state.command is not None and state.command.mst_key is not None:
            assert state.command.mst_key == state.selected
    assert not any(
        state.command
        for state in press_keys(keys, [])
        if state.command and state.command.mst_key is not None
    )


@pytest.mark.parametrize(
    "keys, expected",
    [
        (["s"], [Command(Action.STOP, 3)]),
        (["j", "down", "down", "c"], [Command(Action.CONTINUE, 2)]),
        (["j", "k", "up", "c"], [Command(Action.CONTINUE, 3)]),
        (["p"], [Command(Action.PAUSE_RUN)]),
        (["x", "j", "x"], []),
        (["x", "x"], [Command(Action.CANCEL_RUN)]),
        (
            ["j", "+", *'{"lr": 1}q', "erase", ENTER, "q"],
            [Command(Action.CLONE, 1, {"lr": 1}), Command(Action.QUIT)],
        ),
        (["+", "s", "x", "x", ESCAPE, "s"], [Command(Action.STOP, 3)]),
        (["+", *"[1]", ENTER], []),
        (["+", *"{lr", ENTER], []),
        (["+", "closed"], [Command(Action.QUIT)]),
    ],
)
def test_keys_trigger_commands(keys: list[str], expected: list[Command]) -> None:
    assert commands(keys) == expected


def test_an_invalid_change_has_a_note() -> None:
    assert "is not JSON" in press_keys(["+", *"{lr", ENTER])[-1].note
    assert "is no object" in press_keys(["+", *"[1]", ENTER])[-1].note
    assert commands(["p"], paused=True) == [Command(Action.CONTINUE_RUN)]


def test_a_missing_selected_config_is_replaced_by_the_first() -> None:
    assert press_key(KeyState(selected=9), "s", CONFIGS, False).command == Command(Action.STOP, 3)


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
    started_at = MOMENT + timedelta(seconds=start)
    ended_at = None if seconds is None else started_at + timedelta(seconds=seconds)
    return Span(
        run_id=1,
        segment_id=segment,
        mst_key=key,
        epoch=1,
        started_at=started_at,
        ended_at=ended_at,
        kind="train",
        status="running" if seconds is None else "completed",
    )


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
    lanes = make_lanes(spans, now, choose_window(spans), width)
    assert [*lanes] == sorted({span.segment_id for span in spans})
    for segment, cells in lanes.items():
        assert len(cells) == width
        assert {cell.mst_key for cell in cells if cell} <= {
            span.mst_key for span in spans if span.segment_id == segment
        }


def test_a_running_span_ends_now() -> None:
    now = MOMENT + timedelta(seconds=10)
    lanes = make_lanes([span(0, 1, 0, 5), span(0, 2, 5, None)], now, timedelta(seconds=10), 10)
    assert [cell and cell.mst_key for cell in lanes[0]] == [1] * 5 + [2] * 5


@given(st.lists(st.integers(1, 99), unique=True), st.integers(3, 9), st.data())
def test_the_selected_config_is_visible(configs: list[int], rows: int, data: st.DataObject) -> None:
    selected = data.draw(st.sampled_from(configs)) if configs else None
    visible = configs[choose_rows(configs, selected, rows)]
    assert len(visible) == min(rows, len(configs)) and (selected is None or selected in visible)


def make_snapshot(configs: int) -> Snapshot:
    progress = Progress(
        run_id=1,
        name=HOSTILE,
        owner="ann",
        status="running",
        epoch=1,
        epochs=2,
        visits_done=1,
        visits_total=4,
        configs_running=1,
        configs_failed=0,
        best_mst_key=None,
        best_value=None,
        elapsed=timedelta(1),
        eta=None,
        queue_position=None,
        share=0.25,
    )
    board = [
        Standing(
            run_id=1,
            rank=key,
            mst_key=key,
            params={"a": f"{HOSTILE}{key}"},
            epochs=1,
            status="running",
            dataset="validation",
            metric=HOSTILE,
            value=0.5,
            training_time=None,
            reason=HOSTILE,
        )
        for key in range(1, configs + 1)
    ]
    points = [
        Point(
            run_id=1, mst_key=1, epoch=1, dataset="validation", name=HOSTILE, value=0.5, time=MOMENT
        )
    ]
    return Snapshot(
        progress, board, points, [span(segment, 1, 0, 1) for segment in range(12)], HOSTILE
    )


@pytest.mark.parametrize("size", [(40, 30), (80, 40), (200, 50)])
@pytest.mark.parametrize(
    "state",
    [KeyState(), KeyState(selected=2), KeyState(change_text=HOSTILE), KeyState(note=HOSTILE)],
)
def test_a_frame_fits_and_texts_of_users_command_nothing(
    size: tuple[int, int], state: KeyState
) -> None:
    output = StringIO()
    console = Console(file=output, width=size[0], height=size[1], color_system=None)
    console.print(draw_screen(make_snapshot(40), state, console))
    lines = output.getvalue().split("\n")[:-1]
    assert len(lines) <= size[1] and all(
        line.isprintable() and len(line) <= size[0] for line in lines
    )
    assert lines[-1].startswith("arrows choose") and lines[0].startswith("run 1 running")
    bar = next(number for number, line in enumerate(lines) if line.startswith("━"))
    assert lines[bar + 1].startswith("segment 0"), "the bar has a line of its own"


def test_on_80_columns_a_watcher_sees_best_template_parameters_and_metric() -> None:
    snapshot = make_snapshot(3)
    progress = replace(
        snapshot.progress, name="first", best_mst_key=12, best_value=0.91, eta=timedelta(seconds=90)
    )
    board = [
        replace(
            standing,
            template="resmlp",
            metric="balanced_accuracy",
            params={"lr": standing.mst_key / 8, "width": 256, "depth": standing.mst_key},
        )
        for standing in snapshot.standings
    ]
    output = StringIO()
    console = Console(file=output, width=80, height=30, color_system=None)
    seen = Snapshot(progress, board, snapshot.points, snapshot.spans)
    console.print(draw_screen(seen, KeyState(selected=2), console))
    text = output.getvalue()
    assert "best: mst_key=12 0.9100" in " ".join(text.split())
    assert "resmlp lr=0.125" in text and "config 2: resmlp lr=0.25, depth=2" in text
    assert "validation" in text and "balanced_accuracy" in text


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    controller, terminal = pty.openpty()
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize("how", [None, RuntimeError(), KeyboardInterrupt(), signal.SIGTERM])
def test_a_terminal_is_as_before_however_it_ends(terminal: tuple[int, int], how: Any) -> None:
    controller, descriptor = terminal
    settings = termios.tcgetattr(descriptor)
    handler = signal.getsignal(signal.SIGTERM)

    def read_keys() -> list[str]:
        with open_keyboard(descriptor) as keyboard:
            assert termios.tcgetattr(descriptor) != settings
            os.write(controller, b"s\x1b[B")
            keys = keyboard.wait(60)
            if isinstance(how, BaseException):
                raise how
            if how is not None:
                os.kill(os.getpid(), how)
            return keys

    if how is None:
        assert read_keys() == ["s", "down"]
    else:
        with pytest.raises(type(how) if isinstance(how, BaseException) else SystemExit):
            read_keys()
    assert termios.tcgetattr(descriptor) == settings
    assert signal.getsignal(signal.SIGTERM) is handler
