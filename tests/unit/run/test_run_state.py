"""Where configurations stand when their run is given more epochs."""

from __future__ import annotations

from bare_states import bare_state
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.run.loop.commands import keep_other_epochs
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import Plan, Visit

LONGER, HELD, LEFT, LIMITED = 1, 2, 3, 4
"""Who is given more epochs, who is held by somebody, who is left alone, and who has a limit of its
own.
"""
SEGMENTS = st.integers(1, 3).map(lambda number: tuple(range(number)))
EPOCHS = st.integers(1, 3)


def make(state: RunState, key: int, most: int | None = None) -> list[Visit]:
    """Make the visits that a configuration may begin, in the order of segments: so many at the
    most.
    """
    made: list[Visit] = []
    while (progress := state.progress[key]).startable_segments and len(made) != most:
        made.append(Visit(progress.epoch, key, min(progress.startable_segments), progress.kind))
        state.progress[key] = schedule.begin(progress, (made[-1],))
        state.complete((made[-1],))
    return made


@given(SEGMENTS, EPOCHS, EPOCHS, st.integers(0, 12), st.booleans())
def test_who_is_given_more_epochs_does_what_a_longer_run_does(
    segments: tuple[int, ...], epochs: int, more: int, before: int, evaluates: bool
) -> None:
    """Others come to the end that they had, wherever they stood."""
    workers, last = dict.fromkeys(segments, 0), epochs + more
    longer = Plan(last, segments, workers, frozenset(range(1, last + 1) if evaluates else ()))
    short = Plan(epochs, segments, workers, longer.evaluate_epochs & {*range(epochs + 1)})
    keys = (LONGER, HELD, LEFT, LIMITED)
    state = bare_state(short, {key: schedule.start(short, key) for key in keys})
    state.pause_config(HELD)
    state.set_max_epoch(LIMITED, 1)
    made = {key: make(state, key, before) for key in keys}
    decisions = keep_other_epochs(state, {LONGER: last})
    assert [(each.mst_key, each.max_epoch) for each in decisions] == [(LEFT, epochs)]
    state.grow_plan(last, longer.evaluate_epochs)
    state.extend(LONGER, last)
    state.resume_config(HELD)
    alone = bare_state(longer, {LONGER: schedule.start(longer, LONGER)})
    assert made[LONGER] + make(state, LONGER) == make(alone, LONGER)
    for key, end in ((HELD, epochs), (LEFT, epochs), (LIMITED, 1)):
        assert {visit.epoch for visit in made[key] + make(state, key)} == {*range(1, end + 1)}
