"""A property test that takes too long ends by Hang, wherever its signal comes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from hangs import Hang, start_timer, stop_timer
from hypothesis import given, settings
from hypothesis import strategies as st

HOUR = 3600
EXAMPLES = 5
NUMBERS = st.integers(0, 2**40)


@pytest.fixture
def timer() -> Iterator[None]:
    """A timer whose signal the test sends."""
    start_timer(HOUR)
    yield
    stop_timer()


class Interruption:
    """A function that passes numbers on, and sends the signal when it has done so a few times."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, number: int) -> int:
        self.calls += 1
        if self.calls == EXAMPLES:
            signal.raise_signal(signal.SIGALRM)
        return number


@st.composite
def drawn_twice(draw: st.DrawFn, interrupt: Callable[[int], int]) -> int:
    """A number after which another one is drawn."""
    interrupt(draw(NUMBERS))
    return draw(NUMBERS)


@pytest.mark.parametrize("form", ["mapped", "filtered", "composite"])
@pytest.mark.parametrize("inside", [False, True], ids=["argument", "drawn in the body"])
def test_a_signal_in_a_draw_ends_the_body(timer: None, form: str, inside: bool) -> None:
    interrupt = Interruption()
    strategy = {
        "mapped": NUMBERS.map(interrupt),
        "filtered": NUMBERS.filter(lambda number: interrupt(number) >= 0),
        "composite": drawn_twice(interrupt),
    }[form]

    @settings(database=None)
    @given(st.data() if inside else strategy)
    def run_until_interrupted(drawn: st.DataObject | int) -> None:
        if isinstance(drawn, st.DataObject):
            drawn.draw(strategy)
        while interrupt.calls >= EXAMPLES:
            signal.pause()

    with pytest.raises(Hang):
        run_until_interrupted()


def test_a_signal_in_the_body_ends_it(timer: None) -> None:
    interrupt = Interruption()

    @settings(database=None)
    @given(NUMBERS)
    def run_until_interrupted(number: int) -> None:
        interrupt(number)

    with pytest.raises(Hang):
        run_until_interrupted()
    assert interrupt.calls == EXAMPLES
