"""A hint about a name gives the text to write, which is read as exactly that name."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from cerebro_plpy.database.sql.identifiers import MAX_BYTES, split_columns
from cerebro_plpy.database.sql.spelling import (
    MAX_LISTED,
    match_name,
    match_names,
    spell_name,
    spell_names,
    suggest_columns,
    suggest_name,
    suggest_similar,
)

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("aBc_$1.\"', ()"),
    min_size=1,
    max_size=12,
).filter(lambda name: len(name.encode()) <= MAX_BYTES)
WRITTEN = re.compile(r"Write \w+ => '((?:[^']|'')*)'\.")


def written(hint: str) -> str:
    """Return the text that a hint writes for an argument."""
    match = WRITTEN.fullmatch(hint)
    assert match is not None, hint
    return match[1].replace("''", "'")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_name_is_read_as_it_is_spelled(names: list[str]) -> None:
    assert split_columns(spell_names(names)) == tuple(names)
    assert all(split_columns(spell_name(name)) == (name,) for name in names)


@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold), st.data())
def test_names_in_another_case_are_written_as_the_table_has_them(
    names: list[str], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    cased = [name.swapcase() for name in chosen]
    assume([*map(str.casefold, cased)] == [*map(str.casefold, chosen)])
    text = ", ".join('"' + name.replace('"', '""') + '"' for name in cased)
    assert match_names(text, names) == chosen
    assert split_columns(written(suggest_columns("columns", text, names))) == tuple(chosen)
    if len(chosen) == 1 and text not in names:
        assert written(suggest_name("target", text, names)) == chosen[0]


def test_names_that_differ_in_case_only_are_not_guessed() -> None:
    assert match_name("ROW", ["Row", "row"]) is None
    assert match_name("Row", ["Row", "row"]) == "Row"
    assert suggest_columns("columns", "ROW", ["Row", "row"]) == 'Did you mean "Row" or row?'


def test_a_long_list_is_cut() -> None:
    names = [f"c{number}" for number in range(MAX_LISTED + 2)]
    hint = suggest_similar("zzz", names)
    assert hint.startswith("Its columns are: c0, c1, ")
    assert hint.endswith(f"c{MAX_LISTED - 1}, and 2 more.")
