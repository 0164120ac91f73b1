"""Texts as hashed words, by SQL that learns nothing from rows.

Words stand between blanks and punctuation of ASCII, and capital letters of ASCII are folded; other
characters are kept. So words depend neither on the locale or version of a server nor on the
collation of a column. The number of a word is a hash; two words may share one.

One replacement for each punctuation mark makes it a blank: a search for a byte. A regular
expression took three times as long, and `translate` nine times.
"""

from __future__ import annotations

import string

APOSTROPHE = "'"
"""It does not separate words: "don't" is one."""
SEPARATORS = "".join(sorted({*string.punctuation, *string.whitespace} - {APOSTROPHE, "_", " "}))
MOST_WORDS = 256
CHARACTERS_PER_WORD = 16
"""Characters of a text that are read for each word, so that a very long text takes no longer."""
POSITIVE = (1 << 31) - 1


def numbers(text: str, words: int, buckets: int) -> str:
    """Return the numbers of the first words, from 1 to `buckets`, then zeros, as an integer[].

    Args:
        text: SQL for a text, without placeholders; NULL has zeros only.
    """
    hashes = (
        f"ARRAY(SELECT {number(buckets)} FROM {words_as_rows(text, words)} AS w (word) WHERE "
        "w.word <> '' "
        f"LIMIT {words})"
    )
    return f"({hashes} OPERATOR(pg_catalog.||) pg_catalog.array_fill(0, ARRAY[{words}]))[1:{words}]"


def number(buckets: int) -> str:
    """Return SQL for the number of the word `w.word`, from 1 to `buckets`."""
    return (
        f"((pg_catalog.hashtextextended(w.word, 0) & {POSITIVE}::bigint) % "
        f"{buckets}::bigint)::integer + 1"
    )


def words_as_rows(text: str, words: int) -> str:
    """Return SQL for the words as rows in their order; some are empty."""
    start = f"pg_catalog.left({text}, {CHARACTERS_PER_WORD * words})"
    folded = f'pg_catalog.lower({start} COLLATE pg_catalog."C")'
    for sign in (APOSTROPHE, *SEPARATORS):
        replacement = "" if sign == APOSTROPHE else " "
        folded = f"pg_catalog.replace({folded}, pg_catalog.chr({ord(sign)}), '{replacement}')"
    return f"pg_catalog.unnest(pg_catalog.string_to_array({folded}, ' '))"
