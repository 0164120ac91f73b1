"""Fewer workers with wider trainers are chosen only where simulated runs bear out that they are done sooner."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.hopping.placement import share_segments
from cerebro_plpy.hopping.policies import Longest
from cerebro_plpy.hopping.schedule import ConfigProgress, Kind, Plan, begin, complete, start
from cerebro_plpy.hopping.tours import Reach, choose
from cerebro_plpy.hopping.widths import SHORT, WORTH, Work, promise, span, workers

EPOCHS = 2
SECONDS = st.integers(1, 1000).map(float)


def simulated(seconds: list[float], segments: int, count: int) -> float:
    """What so many workers take for configs that take so long each: the schedule as it is, with simulated visits."""
    numbers = tuple(range(segments))
    plan = Plan(EPOCHS, numbers, share_segments(numbers, range(count)), frozenset())
    configs: dict[int, ConfigProgress] = {key: start(plan, key) for key in range(len(seconds))}
    visits: dict[tuple[int, Kind], float] = {
        (key, "train"): each / segments / EPOCHS for key, each in enumerate(seconds)
    }
    idle, now, events = set(range(count)), 0.0, list[tuple[float, int]]()
    under_way = {}
    while True:
        for worker, tour in choose(plan, configs, tuple(idle), Longest(visits), lambda _: Reach(1)):
            idle.remove(worker)
            configs[tour[0].mst_key] = begin(configs[tour[0].mst_key], tour)
            under_way[worker] = tour
            heapq.heappush(events, (now + visits[tour[0].mst_key, "train"], worker))
        if not events:
            return now
        now, worker = heapq.heappop(events)
        idle.add(worker)
        tour = under_way.pop(worker)
        configs[tour[0].mst_key] = complete(plan, configs[tour[0].mst_key], tour)


@given(st.lists(SECONDS, min_size=1, max_size=7), st.integers(1, 6), st.data())
def test_no_run_is_done_sooner_than_its_span(seconds: list[float], segments: int, data: st.DataObject) -> None:
    """And with one worker it takes just as long."""
    count = data.draw(st.integers(1, segments))
    took = simulated(seconds, segments, count)
    assert took >= span(seconds, 1 / count) * (1 - 1e-9)
    assert took <= (sum(seconds) * math.ceil(segments / count) / segments + max(seconds)) * (1 + 1e-9)
    assert count > 1 or math.isclose(took, span(seconds, 1.0))


WIDTHS = {number: 8 // number for number in range(1, 5)}
SOME = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0])
FORMS = st.fixed_dictionaries({"one": SOME}, optional={"two": SOME})
SPEEDS = st.fixed_dictionaries({width: FORMS for width in WIDTHS.values()})
WORKS = st.lists(st.builds(Work, st.integers(1, 20), SPEEDS), min_size=1, max_size=5)
KNOWN = st.sets(st.sampled_from([*WIDTHS.values()]), min_size=2)
"""The widths of which anything is known."""


def needs(work: Work, width: int, other: int) -> float:
    """Seconds for all rows at a width, by the fastest form that was tried at both."""
    known = [s for form, s in work.speeds.get(width, {}).items() if form in work.speeds.get(other, {})]
    return work.rows * min(known, default=math.inf)


@given(WORKS, KNOWN, st.integers(2, 4), st.integers(4, 8))
def test_the_choice_is_the_best_of_all_numbers(every: list[Work], known: set[int], usual: int, segments: int) -> None:
    """By brute force: what each of them comes to, worker by worker."""
    works = [work._replace(speeds=only(work.speeds, known)) for work in every]
    found = {}
    for number in range(1, usual):
        before = [needs(work, WIDTHS[usual], WIDTHS[number]) for work in works]
        after = [needs(work, WIDTHS[number], WIDTHS[usual]) for work in works]
        most = max(sum(segment % number == worker for segment in range(segments)) for worker in range(number))
        least = max([*before, sum(before) / usual])
        if SHORT < least < math.inf:
            found[number] = max([*after, sum(after) * most / segments]) / least
    for number in range(1, usual):
        assert math.isclose(promise(works, segments, WIDTHS, (usual, number)), found.get(number, math.inf))
    widths = {number: WIDTHS[number] for number in range(1, usual + 1)}
    chosen = workers(works, segments, widths, usual)
    best = min(found.values(), default=math.inf)
    if math.isclose(best, WORTH):
        return
    assert (chosen == usual) == (best > WORTH)
    assert chosen == usual or math.isclose(found[chosen], best)


@given(WORKS, st.integers(2, 4), st.integers(4, 8))
def test_one_worker_is_chosen_only_where_a_simulated_run_is_done_sooner(
    works: list[Work], usual: int, segments: int
) -> None:
    widths = {1: WIDTHS[1], usual: WIDTHS[usual]}
    if workers(works, segments, widths, usual) == 1:
        before = [needs(work, WIDTHS[usual], WIDTHS[1]) for work in works]
        after = [needs(work, WIDTHS[1], WIDTHS[usual]) for work in works]
        assert simulated(after, segments, 1) <= WORTH * simulated(before, segments, usual) * (1 + 1e-9)


@given(WORKS, st.integers(1, 4))
def test_where_nothing_is_known_of_other_widths_the_usual_number_stays(works: list[Work], usual: int) -> None:
    known = [work._replace(speeds=only(work.speeds, {WIDTHS[usual]})) for work in works]
    widths = {number: width for number, width in WIDTHS.items() if number == usual or width != WIDTHS[usual]}
    assert workers(known, 4, widths, usual) == usual
    unknown = [works[0]._replace(speeds={}), *works[1:]]
    assert workers(unknown, 4, WIDTHS, usual) == usual
    others = [number for number in WIDTHS if number != usual]
    assert all(math.isinf(promise(unknown, 4, WIDTHS, (usual, number))) for number in others)


def only(speeds: Mapping[int, Mapping[str, float]], widths: set[int]) -> dict[int, Mapping[str, float]]:
    """What is known of these widths."""
    return {each: forms for each, forms in speeds.items() if each in widths}


def test_a_form_that_was_tried_at_one_width_alone_says_nothing() -> None:
    long, short = (Work(rows, {1: {"slow": 1.0}, 2: {"slow": 0.9, "fast": 0.1}}) for rows in (90, 1))
    assert workers([long, short], 2, {1: 2, 2: 1}, 2) == 2
    tried = [work._replace(speeds={1: {"slow": 1.0, "fast": 0.2}, 2: work.speeds[2]}) for work in (long, short)]
    assert workers(tried, 2, {1: 2, 2: 1}, 2) == 1
    assert workers([work._replace(rows=work.rows // 3) for work in tried], 2, {1: 2, 2: 1}, 2) == 2, "it is over soon"
