"""Laws of fair shares: slots within quotas, equal demands alike, stable shares, no starvation."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st
from one_by_one import shares_one_by_one
from trials import trials

from cerebro_plpy.scheduling.quota.fair_share import (
    PATIENCE_SECONDS,
    Demand,
    Quota,
    Role,
    divide_slots,
)

ROLES = 4
limits = st.builds(Quota, st.none() | st.integers(1, 12), st.none() | st.integers(5, 40))


@st.composite
def an_entry(draw: st.DrawFn) -> Demand:
    least = draw(st.integers(1, 3))
    most = least + draw(st.integers(0, 4))
    held = draw(st.sampled_from([0, least, most]))
    return Demand(draw(st.integers(0, ROLES - 1)), least, most, draw(st.integers(1, 5)), held)


entries = st.lists(an_entry(), max_size=12)
standings = st.fixed_dictionaries(
    {number: st.builds(Role, limits, st.floats(0, 1000), st.booleans()) for number in range(ROLES)}
)


def within(limit: Quota, found: list[Demand], taken: list[int]) -> bool:
    """Return True if these slots are within a quota."""
    configs = sum(entry.configs for entry, places in zip(found, taken, strict=True) if places)
    return (limit.trainers is None or sum(taken) <= limit.trainers) and (
        limit.configs is None or configs <= limit.configs
    )


def possible(entry: Demand, limit: Quota) -> bool:
    """Return True if the run could work without other runs."""
    return within(limit, [entry], [entry.min_slots])


@given(entries, standings, limits)
def test_nothing_is_given_beyond_the_limits(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    taken = divide_slots(found, roles, server)
    assert within(server, found, taken)
    for number, role in roles.items():
        own = [
            (entry, places)
            for entry, places in zip(found, taken, strict=True)
            if entry.role == number
        ]
        assert within(role.quota, [entry for entry, _ in own], [places for _, places in own])
        assert not (role.is_paused and any(places for _, places in own))
    assert all(
        places in (0, *range(entry.min_slots, entry.max_slots + 1))
        for entry, places in zip(found, taken, strict=True)
    )


@given(entries, standings)
def test_without_limits_everybody_has_what_is_of_use(
    found: list[Demand], roles: dict[int, Role]
) -> None:
    free = {number: Role(used=role.used) for number, role in roles.items()}
    assert divide_slots(found, free, Quota()) == [entry.max_slots for entry in found]


@given(
    st.integers(1, 8),
    st.integers(1, 16),
    st.integers(1, 6),
    st.lists(st.floats(0, 100), min_size=8, max_size=8),
)
def test_equal_demands_get_shares_that_differ_by_one_at_most(
    roles: int, capacity: int, most: int, used: list[float]
) -> None:
    found = [Demand(role, 1, most, 1) for role in range(roles)]
    taken = divide_slots(
        found, {role: Role(used=used[role]) for role in range(roles)}, Quota(capacity)
    )
    assert max(taken) - min(taken) <= 1
    assert sum(taken) == min(capacity, roles * most), "nothing lies idle"


@given(entries, standings, limits)
def test_within_a_role_who_came_first_is_served_first(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    taken = divide_slots(found, roles, server)
    for number, role in roles.items():
        own = [
            (entry, places)
            for entry, places in zip(found, taken, strict=True)
            if entry.role == number and possible(entry, role.quota) and possible(entry, server)
        ]
        waits = [not places for _, places in own]
        assert waits == sorted(waits), "nobody is passed by one that came later"


@given(entries, standings, limits)
def test_who_cannot_give_places_back_keeps_them(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    steady = [entry._replace(is_static=True) for entry in found]
    taken = divide_slots(steady, roles, server)
    assert all(
        not entry.current_slots or places == entry.current_slots
        for entry, places in zip(steady, taken, strict=True)
    )


@given(entries, standings, limits)
def test_who_could_not_even_work_alone_is_not_waited_for(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    """Such a run has started before a quota was lowered."""
    able = [possible(entry, roles[entry.role].quota) and possible(entry, server) for entry in found]
    taken = divide_slots(found, roles, server)
    others = divide_slots(
        [entry for entry, works in zip(found, able, strict=True) if works], roles, server
    )
    assert taken == [others.pop(0) if works else 0 for works in able]


@example(
    [Demand(0, 1, 1, 1), Demand(0, 1, 1, 1), Demand(1, 2, 2, 1, 2)],
    {0: Role(), 1: Role()},
    Quota(1),
)
@example(
    [
        Demand(1, 1, 1, 1),
        Demand(2, 2, 3, 1),
        Demand(0, 2, 2, 1),
        Demand(0, 1, 1, 1, 1),
        Demand(2, 1, 1, 1, 1),
    ],
    {0: Role(), 1: Role(), 2: Role()},
    Quota(3),
)
@given(entries, standings, limits)
def test_what_was_divided_stays_as_it_is(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    """A role that has slots is preferred to one that is equal otherwise."""
    level = {number: role._replace(used=0.0) for number, role in roles.items()}
    taken = divide_slots(found, level, server)
    held = [
        entry._replace(current_slots=places) for entry, places in zip(found, taken, strict=True)
    ]
    assert divide_slots(held, level, server) == taken


@given(st.integers(2, 9), st.integers(1, 4), st.integers(1, 3))
@trials(30)
def test_roles_take_turns_where_there_are_fewer_places(
    roles: int, capacity: int, runs: int
) -> None:
    """In simulated steps of a second, all roles get equal time, in slices longer than a step."""
    found = [Demand(role, 1, 2, 1) for role in range(roles) for _ in range(runs)]
    used, changes, steps = Counter[int](), 0, 600
    held = [0] * len(found)
    for _ in range(steps):
        now = [
            entry._replace(current_slots=places) for entry, places in zip(found, held, strict=True)
        ]
        taken = divide_slots(
            now, {role: Role(used=used[role]) for role in range(roles)}, Quota(capacity)
        )
        changes += sum(1 for before, after in zip(held, taken, strict=True) if after < before)
        held = taken
        for entry, places in zip(found, held, strict=True):
            used[entry.role] += places
    assert max(used[role] for role in range(roles)) - min(
        used[role] for role in range(roles)
    ) <= 2 * (PATIENCE_SECONDS + capacity)
    assert changes <= steps * capacity / PATIENCE_SECONDS + roles * 2


SMALL = st.integers(0, 7)


@st.composite
def any_entry(draw: st.DrawFn) -> Demand:
    """Draw a demand of any small numbers, including those that runs never write."""
    configs, held = draw(st.integers(1, 4)), draw(SMALL)
    least = draw(st.integers(1, 4))
    return Demand(
        draw(st.integers(0, ROLES - 1)), least, draw(SMALL), configs, held, draw(st.booleans())
    )


used_seconds = st.sampled_from([0.0, 1.0, PATIENCE_SECONDS, PATIENCE_SECONDS + 1.0, 20.0])
any_standings = st.fixed_dictionaries(
    {
        number: st.builds(Role, limits, used_seconds, st.sampled_from([False, False, False, True]))
        for number in range(ROLES)
    }
)


@given(st.lists(any_entry(), max_size=10), any_standings, limits)
@trials(100)
def test_places_are_divided_as_if_one_after_another_were_given(
    found: list[Demand], roles: dict[int, Role], server: Quota
) -> None:
    assert divide_slots(found, roles, server) == shares_one_by_one(found, roles, server)


MOST = 2**31 - 1


def test_no_number_of_a_run_makes_the_division_longer() -> None:
    """Granted one by one, these slots would take hours."""
    own = Demand(0, 1, 4, 2)
    greedy = Demand(1, 1, MOST, 1)
    roles = {0: Role(), 1: Role(), 2: Role()}
    assert divide_slots([own, greedy], roles, Quota()) == [4, MOST]
    assert divide_slots([own, greedy], roles, Quota(trainers=MOST)) == [4, MOST - 4]
    other = greedy._replace(role=2)
    assert divide_slots([own, greedy, other], roles, Quota(trainers=MOST)) == [
        4,
        MOST // 2 - 1,
        MOST // 2 - 2,
    ]
    steady = Demand(1, 1, MOST, 1, MOST, is_static=True)
    assert divide_slots([own, steady], roles, Quota()) == [4, MOST]
