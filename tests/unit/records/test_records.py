"""Our data classes are those of the standard library: the same classes, made by both, do the
same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy import records


class Pair(NamedTuple):
    """What is no record, and may hold one."""

    left: object
    right: object


def classes(made_by: ModuleType) -> SimpleNamespace:
    """The same classes, by the standard library or by ours."""
    dataclass, field = made_by.dataclass, made_by.field

    @dataclass(frozen=True)
    class Point:
        """Frozen, and with a check."""

        kind: ClassVar[str] = "point"
        x: object
        y: object = 2
        seen: list[object] = field(default_factory=list)
        note: str = field(default="", compare=False, metadata={"least": 1})

        def __post_init__(self) -> None:
            if self.x == 7:
                raise ValueError("x is 7")

        @property
        def both(self) -> object:
            return self.x, self.y

    @dataclass(frozen=True)
    class Place(Point):
        """Another one with more fields, one of which has another default now."""

        y: object = 3
        z: object = None

        def __repr__(self) -> str:
            return "a place"

    @dataclass
    class Account:
        """One that changes."""

        owner: object
        sum: object = 0

    @dataclass(eq=False)
    class Session:
        """One that is nothing but itself."""

        number: object

    return SimpleNamespace(Point=Point, Place=Place, Account=Account, Session=Session)


THEIRS, OURS = classes(dataclasses), classes(records)
NAMES = [*vars(OURS)]
VALUES = st.sampled_from([1, 1.0, 7, "a", None, (), (1, "a"), Pair(1, (2,))]) | st.lists(
    st.integers(0, 2), max_size=2
)
ARGUMENTS = st.lists(VALUES, max_size=6)
NAMED = st.dictionaries(
    st.sampled_from(["x", "y", "z", "seen", "note", "owner", "sum", "number"]), VALUES, max_size=4
)


def outcome(work: Callable[..., Any], *values: Any, **named: Any) -> tuple[object, Any]:
    """What comes of it: a value, or which error."""
    try:
        return None, work(*values, **named)
    except (TypeError, ValueError) as error:
        return type(error), None


@given(st.sampled_from(NAMES), ARGUMENTS, NAMED, ARGUMENTS, NAMED)
def test_they_take_refuse_show_and_compare_the_same(
    name: str,
    first: list[Any],
    named: Mapping[str, Any],
    second: list[Any],
    other: Mapping[str, Any],
) -> None:
    kinds = getattr(THEIRS, name), getattr(OURS, name)
    made = [[outcome(kind, *first, **named), outcome(kind, *second, **other)] for kind in kinds]
    assert [error for error, _ in made[0]] == [error for error, _ in made[1]]
    (theirs, beside_theirs), (ours, beside_ours) = ([record for _, record in both] for both in made)
    if ours is None:
        return
    assert vars(ours) == vars(theirs) and list(vars(ours)) == list(vars(theirs))
    assert repr(ours) == repr(theirs)
    assert (ours == beside_ours) == (theirs == beside_theirs)
    assert ours != theirs and ours != vars(ours)
    assert outcome(hash, ours)[0] == outcome(hash, theirs)[0]
    if ours == beside_ours:
        assert outcome(hash, ours) == outcome(hash, beside_ours)
    assert records.asdict(ours) == dataclasses.asdict(theirs)
    changed = [
        outcome(by.replace, one, **other) for by, one in ((dataclasses, theirs), (records, ours))
    ]
    assert changed[0][0] == changed[1][0]
    if changed[0][1] is not None:
        assert vars(changed[1][1]) == vars(changed[0][1])


@pytest.mark.parametrize("name", NAMES)
def test_their_fields_are_the_same(name: str) -> None:
    theirs, ours = getattr(THEIRS, name), getattr(OURS, name)
    about = [
        [(each.name, each.type, each.compare, dict(each.metadata)) for each in by.fields(kind)]
        for by, kind in ((dataclasses, theirs), (records, ours))
    ]
    assert about[0] == about[1]
    names = [name for name, *_ in about[0] if hasattr(theirs, name)]
    assert [name for name, *_ in about[1] if hasattr(ours, name)] == names
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]


def test_what_is_frozen_does_not_change() -> None:
    for kind in (THEIRS.Point, OURS.Point, THEIRS.Place, OURS.Place):
        record = kind(1)
        for change, *values in ((setattr, "x", 1), (setattr, "new", 1), (delattr, "x")):
            with pytest.raises(AttributeError):
                change(record, *values)
        assert record.both == (1, kind(1).y) and not hasattr(record, "new")


def test_records_in_records_become_plain_values() -> None:
    made = []
    for by, kinds in ((dataclasses, THEIRS), (records, OURS)):
        inner = kinds.Point(1, seen=[kinds.Account("a")])
        made.append(by.asdict(kinds.Place([inner], {"k": (inner, Pair(inner, 2))})))
    assert made[0] == made[1]
    assert isinstance(made[1]["y"]["k"][1], Pair)


def test_an_own_default_of_each_is_its_own() -> None:
    first, second = OURS.Point(1), OURS.Point(1)
    first.seen.append(1)
    assert second.seen == []
