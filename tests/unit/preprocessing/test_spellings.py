"""Remarks about values that differ by capitals and blanks alone, and about blank classes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.remarks.column_remarks import (
    CLEANING,
    ColumnRemark,
    merge_remarks,
    remark_collations,
)
from cerebro_plpy.preprocessing.remarks.spellings import (
    MOST_NAMED,
    group_spellings,
    remark_categories,
    remark_classes,
)
from cerebro_plpy.preprocessing.rows.class_counts import ClassCounts, SideCounts
from cerebro_plpy.preprocessing.values.columns import RawColumn

ANSWER = RawColumn("Answer", "text", "text", False)
WORDS = st.lists(st.text("abc ", max_size=4), max_size=8, unique=True)


def counts_of(**rows: int) -> ClassCounts:
    """Counts by class, of training and of validation rows."""
    return ClassCounts(tuple(SideCounts(name, count, 1) for name, count in rows.items()))


@given(WORDS, st.sampled_from([str.upper, str.capitalize, lambda word: f" {word}\t"]))
def test_a_value_and_its_other_spelling_are_one(words: list[str], respell: object) -> None:
    assert callable(respell)
    distinct = {word.strip(): word for word in words if word.strip()}
    assert group_spellings([*distinct.values(), ""]) == []
    values = [*distinct.values(), *map(respell, distinct.values())]
    groups = group_spellings(list(dict.fromkeys(values)))
    changed = [word for word in distinct.values() if respell(word) != word]
    assert groups == [[word, respell(word)] for word in changed]


def test_classes_are_named_with_their_rows_and_the_cast() -> None:
    counts = counts_of(Yes=8, yes=3, no=4, **{"yes ": 1})
    (remark,) = merge_remarks(remark_classes(ANSWER, counts))
    assert "3 of its classes" in remark.text
    assert "'Yes' (9 rows), 'yes' (4 rows), 'yes ' (2 rows)" in remark.text
    assert 'lower(btrim("Answer")) AS "Answer"' in remark.text and remark.is_notice


def test_a_blank_class_is_named_with_its_rows() -> None:
    (remark,) = merge_remarks(remark_classes(ANSWER, counts_of(a=5, **{"": 6, " ": 1})))
    assert "'' and ' ' is a class, of 9 rows" in remark.text
    assert """nullif(btrim("Answer"), '') AS "Answer\"""" in remark.text


def test_a_column_has_one_remark_and_few_names() -> None:
    values = [name for n in range(MOST_NAMED) for name in (f"v{n}", f"V{n}")]
    (remark,) = remark_categories(ANSWER, values)
    assert remark.text.count("'") == 2 * MOST_NAMED and f"and {MOST_NAMED} more" in remark.text


def test_values_of_other_types_are_no_spellings() -> None:
    enum = ANSWER._replace(compared="public.answer")
    assert [*remark_categories(enum, ["a", "A"]), *remark_classes(enum, counts_of(a=1, A=1))] == []


@given(st.lists(st.sampled_from([*CLEANING]), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_a_column_shows_one_expression(steps: list[str], is_cast: bool, is_notice: bool) -> None:
    """A remark that reads texts as other values is the only one, unless it is for plans alone."""
    written = [ColumnRemark("Answer", f"found {step}", cleaning=(step,)) for step in steps]
    cast = ColumnRemark("Answer", "write a cast", is_notice, is_cast)
    other = ColumnRemark("other", "told")
    merged = merge_remarks([*written, other, cast])
    assert {other, cast} < {*merged} or (is_cast and is_notice)
    shown = [remark.text for remark in merged if ' AS "Answer"' in remark.text]
    assert len(shown) == (0 if is_cast and is_notice else 1)
    for text in shown:
        assert all(f"found {step}" in text for step in steps)
        assert all(CLEANING[step].partition("{")[0] in text for step in steps)


def test_all_that_is_found_is_mended_by_one_expression() -> None:
    """Both a blank class and spellings, under a collation that knows no capitals."""
    column = ANSWER._replace(is_folded=True)
    counts = counts_of(Yes=8, yes=3, no=4, **{"yes ": 1, " ": 2})
    remarks = [*remark_classes(column, counts), *remark_collations([column], ["Answer"])]
    (remark,) = merge_remarks(remarks)
    expression = """nullif(lower(btrim("Answer")), '') AS "Answer" """
    assert f"To make them one and make blanks NULL, write {expression}" in remark.text
