"""A split is stored as its text, which is read again as the same split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.rows.split import (
    SHARE,
    Split,
    check_split_column,
    read_split,
    side_conditions,
)
from cerebro_plpy.preprocessing.rows.split_words import (
    BY_TEST,
    BY_VALIDATION,
    OLD_TRAINING,
    OLD_VALIDATION,
    list_words,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from('aB "by test words'),
    min_size=1,
    max_size=12,
)
WORDS = st.sampled_from((None, BY_TEST, BY_VALIDATION))
SPLITS = st.one_of(
    st.booleans().map(lambda copies: Split("random", 0.25, None, copies=copies)),
    NAMES.map(lambda name: Split("last", 0.25, name)),
    NAMES.map(lambda name: Split("group", SHARE, name)),
    st.tuples(NAMES, WORDS).map(lambda pair: Split("column", SHARE, pair[0], words=pair[1])),
)


@given(SPLITS)
def test_a_split_is_read_as_it_was_written(split: Split) -> None:
    assert read_split("train", str(split)) == split
    assert split.agrees_with(read_split("train", str(split)))


def test_a_split_of_an_older_release_keeps_its_words() -> None:
    """Only these, with t and f; and so each row of its versions stays on its side."""
    split = read_split("train", 'column "side"')
    assert split.words is None
    columns = [RawColumn("side", "text", "text", False)]
    sides = side_conditions(split, columns, 1)
    assert sides.training.values[-1] == list(OLD_TRAINING) == ["training", "train", "false", "f"]
    assert sides.validation.values[-1] == list(OLD_VALIDATION)
    assert "translate" not in sides.training.text


def test_no_word_is_of_both_sides() -> None:
    for words in (None, BY_TEST, BY_VALIDATION):
        training, validation = list_words(words)
        assert not {*training} & {*validation}


def test_a_call_that_names_a_column_goes_on_with_its_words() -> None:
    split = read_split("train", "column side")
    for words in (None, BY_TEST, BY_VALIDATION):
        assert split.agrees_with(split._replace(words=words))
    assert not split.agrees_with(split._replace(column="other"))


def test_only_a_column_has_words() -> None:
    with pytest.raises(InvalidParameter, match="split is"):
        read_split("train", "group side by test words")


def test_a_hint_writes_the_whole_split() -> None:
    columns = [RawColumn("Fare.Paid", "integer", "integer", False)]
    with pytest.raises(InvalidName) as dotted:
        read_split("train", "last 0.2 by Fare.Paid")
    assert dotted.value.hint == """Write split => 'last 0.2 by "Fare.Paid"'."""
    with pytest.raises(UndefinedColumn) as other_case:
        check_split_column("train", columns, read_split("train", 'group "fare.paid"'))
    assert other_case.value.hint == """Write split => 'group "Fare.Paid"'."""
