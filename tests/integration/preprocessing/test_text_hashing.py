"""What SQL makes of a text is what a few lines of Python say of it, whatever is written there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.text import MOST_BUCKETS, Text
from cerebro_plpy.preprocessing.learning.text_statistics import WordStatistics, read_word_statistics
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import text_hashing
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

PIECES = (
    "The",
    "film",
    "don't",
    "'",
    "''",
    "Straße",
    "ÉTÉ",
    "x1",
    "a_b",
    "😀",
    "日本語",
    "\u00a0",
    "naïve",
    "İ",
)
SIGNS = (
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "-",
    ". ",
    "!?",
    '"',
    "\\",
    "%s",
    "{}",
    "$1",
    "\x01",
    "\x7f",
    "\u2019",
)
TEXTS = st.lists(st.sampled_from((*PIECES, *SIGNS)) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5
), max_size=14).map("".join)  # fmt: skip
NAMES = st.sampled_from(["note", 'odd "%s" {}', "a\nb"])


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    return Session(bench)


def described(text: str | None, most: int) -> list[str]:
    """The words of a text: small letters and all that is not of ASCII, between blanks and signs."""
    looked_at = (text or "")[: 16 * most]
    lowered = "".join(each.lower() if each.isascii() else each for each in looked_at if each != "'")
    plain = "".join(
        each if each.isalnum() or each == "_" or not _sign(each) else " " for each in lowered
    )
    return [word for word in plain.split(" ") if word][:most]


def _sign(character: str) -> bool:
    return character in "\t\n\v\f\r" or "!" <= character <= "~"


def numbered(session: Session, found: Sequence[str], buckets: int) -> list[int]:
    if not found:
        return []
    ((numbers,),) = session.run(
        'SELECT array_agg(((hashtextextended(u.w COLLATE "C", 0) & 2147483647) % %s + 1)::integer '
        "ORDER BY u.n) FROM unnest(%s::text[]) WITH ORDINALITY u (w, n)",
        (buckets, list(found)),
    )
    return list(numbers)


def encoded(
    session: Session, feature: Text, texts: Sequence[str | None], collation: str = '"C"'
) -> list[list[int]]:
    column = quote_identifier(feature.column)
    value = feature.value("t")
    source = (
        f"(SELECT v.x COLLATE {collation} AS {column} FROM json_array_elements_text(%s::json) v "
        "(x))"
    )
    rows = session.run(
        f"SELECT {value.text} FROM {source} t", (*value.values, json.dumps(list(texts)))
    )
    return [row[0] for row in rows]


@trials(60)
@given(
    st.lists(TEXTS | st.none(), min_size=1, max_size=8),
    st.integers(1, 12),
    st.integers(1, 5000),
    NAMES,
)
def test_texts_are_the_numbers_of_their_words(
    session: Session, texts: list[str | None], most: int, buckets: int, name: str
) -> None:
    found = encoded(session, Text(name, most, buckets), texts)
    for text, row in zip(texts, found, strict=True):
        numbers = numbered(session, described(text, most), buckets)
        assert row == [*numbers, *[0] * (most - len(numbers))]


def test_a_word_has_its_number_for_good(session: Session) -> None:
    """Models that were trained elsewhere, and before, rely on it."""
    texts = ["Hello, world! hello", "日本語 don't", "", None]
    assert encoded(session, Text("note", 4, 1000), texts) == [
        [698, 73, 698, 0], [317, 930, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0],
    ]  # fmt: skip


def test_a_very_long_text_is_looked_at_where_it_begins(session: Session) -> None:
    texts = ["word " * 200_000, "x" * 1_000_000, " " * 1_000_000 + "late"]
    found = encoded(session, Text("note", 8, 1000), texts)
    (number,) = set(found[0])
    assert number > 0 and found[1][1:] == found[2][1:] == [0] * 7 and found[1][0] > 0 == found[2][0]


@pytest.mark.postgresql("a collation by which strings may be equal that differ")
def test_the_collation_of_a_column_has_no_say(session: Session, bench: Workbench) -> None:
    bench.rows(
        "CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    texts = ["Été ÉTÉ ete", "I i \u0130 \u0131", "a-b"]
    expected = encoded(session, Text("note", 4, 1000), texts)
    for collation in ("alike", '"default"', 'pg_catalog."und-x-icu"'):
        assert encoded(session, Text("note", 4, 1000), texts, collation) == expected


def test_what_training_rows_say_of_texts(session: Session, bench: Workbench) -> None:
    """As many words as nearly all have, the words that are there again, and in how many texts each
    is.

    Rows that are held back say nothing.
    """
    bench.rows(
        "CREATE TABLE letters AS SELECT n AS id, CASE WHEN n <= 100 THEN repeat('Same, ', n % 10 "
        "+ 1) || 'own' || n ELSE repeat('late ', 99) END AS note FROM generate_series(1, 120) n"
    )
    column, order = (
        RawColumn("note", "text", "text", False),
        Expression("hashint8extended(t.id, 0)"),
    )
    training = Source("letters", Expression("t.id <= %s", (100,)), order)
    found = read_word_statistics(session, training, column, 100)
    assert found[:3] == (11, 1, 100)
    having = dict(found.frequencies)
    same, own = numbered(session, ["same", "own1"], MOST_BUCKETS)
    assert having[same] == 100 and having[own] == 1 and sum(having.values()) == 200
    rarities = found.rarities
    same, own = numbered(session, ["same", "own1"], found.buckets)
    assert found.buckets == len(rarities) == 256 and rarities[same - 1] == 0
    assert rarities[own - 1] == round(8 * math.log2(101 / (1 + sum(
        texts for number, texts in having.items() if (number - own) % 256 == 0
    ))))  # fmt: skip
    nothing = Source("letters", Expression("t.id > 1000"), order)
    assert read_word_statistics(session, nothing, column, 0) == WordStatistics(0, 0, 0, ())
    everything = read_word_statistics(
        session, training._replace(side=Expression("true")), column, 120
    )
    assert everything.words == 99 <= text_hashing.MOST_WORDS
