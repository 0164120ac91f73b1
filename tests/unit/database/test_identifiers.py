"""SQL names: the same reading as PostgreSQL's."""

from __future__ import annotations

from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database.sql.identifiers import (
    MAX_BYTES,
    check_name,
    quote_identifier,
    quote_qualified,
    split_columns,
    split_qualified,
)
from cerebro_plpy.errors import InvalidName

ANY_NAME = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=15)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        (" A ,b_1$, _C\n", ("a", "b_1$", "_c")),
        ('"A b","x""y", c', ("A b", 'x"y', "c")),
        ('"a,b" , "."', ("a,b", ".")),
        ("Größe,ÄRGER", ("größe", "Ärger")),
    ],
)
def test_column_lists(text: str, names: tuple[str, ...]) -> None:
    assert split_columns(text) == names


@pytest.mark.parametrize(
    ("text", "parts"),
    [("Iris", ("iris",)), ("public.Iris", ("public", "iris")), ('"My s"."t.1"', ("My s", "t.1"))],
)
def test_qualified_names(text: str, parts: tuple[str, ...]) -> None:
    assert split_qualified(text) == parts


def test_this_database_may_stand_in_front_and_no_other() -> None:
    assert split_qualified('"My db".public.Iris', "My db") == ("public", "iris")
    for text, database in (
        ("other.public.iris", "my"),
        ("my.iris.x.y", "my"),
        ("my.public.iris", None),
    ):
        with pytest.raises(InvalidName, match="parts"):
            split_qualified(text, database)


@pytest.mark.parametrize(
    "text",
    ["", " ", "a,", ",a", "a b", "1a", '"a', 'a"b"', '""', "a;b", "a-b", "a.b", "x" * 64, "ä" * 32],
)
def test_refused_column_lists(text: str) -> None:
    with pytest.raises(InvalidName):
        split_columns(text)


@pytest.mark.parametrize("text", ["a.b.c", "a.", ".a", "a b.c", "", "t; DROP TABLE x"])
def test_refused_qualified_names(text: str) -> None:
    with pytest.raises(InvalidName):
        split_qualified(text)


@given(st.lists(ANY_NAME, min_size=1, max_size=4))
def test_quoted_names_come_back_as_they_were(names: list[str]) -> None:
    assert split_columns(",".join(map(quote_identifier, names))) == tuple(names)
    assert split_qualified(quote_qualified(tuple(names[:2]))) == tuple(names[:2])


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        names = split_columns(text)
    except InvalidName:
        return
    assert names and all(0 < len(name.encode()) <= MAX_BYTES for name in names)


def test_the_limit_counts_bytes() -> None:
    check_name("x" * MAX_BYTES)
    check_name("ä" * 31)
    with pytest.raises(InvalidName, match="64 bytes"):
        check_name("ä" * 32)


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_no_name_can_be(name: str) -> None:
    with pytest.raises(InvalidName):
        quote_identifier(name)


def test_plain_names_are_of_the_signs_that_postgresql_takes() -> None:
    """All beyond ASCII is a letter to it, whatever Python says."""
    letters = {*ascii_letters, "_", *map(chr, (*range(0x80, 0x300), 0xFFFF, 0x10FFFF))}
    others = {*map(chr, range(1, 0x80))} - letters
    for sign in letters:
        assert split_columns(2 * sign) == (2 * (sign.lower() if sign.isascii() else sign),)
    assert {sign for sign in others if _reads(f"a{sign}b")} == {*"$0123456789,"}
    assert {sign for sign in others if _reads(f"{sign}b")} == {*" \t\n\r\f\v"}


def _reads(text: str) -> bool:
    try:
        return bool(split_columns(text))
    except InvalidName:
        return False
