"""Texts as the numbers of their words, by SQL that has nothing of the rows: the same for training
and prediction.

A word is what stands between blanks and signs of ASCII, whose capitals count as small letters;
other characters belong to words as they are. So neither the locale nor the version of a server, nor
the collation of a column decides what a word is. Its number is a hash: what words there are need
not be known, and two of them may share one.

Signs become blanks by as many replacements as there are signs: each is a search for a byte. A
regular expression took three times as long, and `translate` nine times.
"""

from __future__ import annotations

import string

APOSTROPHE = "'"
"""It divides nothing: "don't" is a word."""
SIGNS = "".join(sorted({*string.punctuation, *string.whitespace} - {APOSTROPHE, "_", " "}))
MOST_WORDS = 256
"""Of a text no more are taken."""
CHARACTERS = 16
"""Of a text so many for each word that is wanted are looked at, so that a very long one takes no
longer than others.
"""
POSITIVE = (1 << 31) - 1


def numbers(text: str, words: int, buckets: int) -> str:
    """The numbers of the first so many words, from 1 to `buckets`, and then zeros, as an integer[];
    of NULL zeros.

    `text` is SQL for a text, without placeholders.
    """
    found = (
        f"ARRAY(SELECT {number(buckets)} FROM {listed(text, words)} AS w (word) WHERE w.word <> '' "
        f"LIMIT {words})"
    )
    return f"({found} OPERATOR(pg_catalog.||) pg_catalog.array_fill(0, ARRAY[{words}]))[1:{words}]"


def number(buckets: int) -> str:
    """SQL for the number of the word `w.word`, from 1 to `buckets`."""
    return (
        f"((pg_catalog.hashtextextended(w.word, 0) & {POSITIVE}::bigint) % "
        f"{buckets}::bigint)::integer + 1"
    )


def listed(text: str, words: int) -> str:
    """The words as rows, in their order, at least so many of them if there are; some are empty."""
    found = (
        f'pg_catalog.lower(pg_catalog.left({text}, {CHARACTERS * words}) COLLATE pg_catalog."C")'
    )
    for sign in (APOSTROPHE, *SIGNS):
        found = (
            f"pg_catalog.replace({found}, pg_catalog.chr({ord(sign)}), "
            f"'{' ' * (sign != APOSTROPHE)}')"
        )
    return f"pg_catalog.unnest(pg_catalog.string_to_array({found}, ' '))"
