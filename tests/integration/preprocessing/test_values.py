"""Values and arrays of any number of dimensions reach PostgreSQL unchanged, whichever way a
statement takes them.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.sessions.worker_sessions import adapt
from cerebro_plpy.database.sql.literals import literal, parameter_type

SENT_BY_SPI = """
    CREATE FUNCTION public.sent(value json) RETURNS text LANGUAGE plpython3u AS $$
import json
from cerebro_plpy.database.sessions.spi import Database
return Database(plpy, None).value("SELECT (%s)::pg_catalog.text", json.loads(value))
$$"""
ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double precision": st.floats(),
    "pg_catalog.text": st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5
    )
    | st.sampled_from(["NULL", "", '"', "\\", "{}", ","]),
    "pg_catalog.bytea": st.binary(max_size=4),
}
SHAPES = st.lists(st.integers(1, 3), max_size=3)


def nested(elements: st.SearchStrategy[Any], shape: list[int]) -> st.SearchStrategy[Any]:
    """An array of that shape, of lists and of tuples."""
    found = elements
    for length in reversed(shape):
        found = st.lists(found, min_size=length, max_size=length) | st.tuples(*[found] * length)
    return found


def plain(value: Any) -> Any:
    """A value as it can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1.0, value))
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.fixture(scope="module")
def sent(bench: Workbench, shared_superuser: Workbench) -> Workbench:
    shared_superuser.rows(SENT_BY_SPI)
    return shared_superuser


@pytest.mark.parametrize("type_name", ELEMENTS)
@trials(40)
@given(data=st.data())
def test_any_array_comes_back_as_it_went(
    sent: Workbench, type_name: str, data: st.DataObject
) -> None:
    shape = data.draw(SHAPES)
    value = data.draw(nested(ELEMENTS[type_name] | st.none(), shape))
    sql_type = type_name + "[]" * bool(shape)
    known = parameter_type(value)
    assert known in (sql_type, "pg_catalog.text" + "[]" * bool(shape)), (
        "text where each element is NULL"
    )
    inlined = f"SELECT {literal(value)}::{known}::{sql_type}, {literal(value)}::{sql_type}"
    assert [plain(each) for each in sent.row(inlined)] == [plain(value)] * 2
    assert plain(sent.value(f"SELECT %s::{sql_type}", adapt(value))) == plain(value)
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        return  # JSON has no such value
    assert sent.value("SELECT public.sent(%s)", text) == sent.value(
        f"SELECT ({literal(value)}::{known})::text"
    )


def test_a_zero_in_an_array_keeps_its_sign(sent: Workbench) -> None:
    assert plain(sent.value("SELECT %s::double precision[]", adapt([-0.0, 0.0]))) == plain(
        [-0.0, 0.0]
    )


@pytest.mark.parametrize("value", [[], [[]], [[], []], ()])
def test_an_array_without_elements_is_empty(sent: Workbench, value: object) -> None:
    assert sent.value(f"SELECT {literal(value)}::real[]") == []


def test_numbers_of_several_types_are_read_as_the_widest(sent: Workbench) -> None:
    assert sent.value(f"SELECT {literal([1, None, 2.5])}") == [1.0, None, 2.5]
    assert sent.value(f"SELECT 1 -{literal(-32768)}::smallint") == 32769
