"""Texts as the numbers of their words: the hash that PostgreSQL's `hashtextextended` gives them."""

from __future__ import annotations

import string
from functools import lru_cache

SIGNS = str.maketrans(
    {**dict.fromkeys({*string.punctuation, *string.whitespace} - {"_"}, " "), "'": ""}
)
CAPITALS = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
CHARACTERS, POSITIVE = 16, (1 << 31) - 1
WORD, LENGTH = 0xFFFFFFFF, 12


def numbers(text: str, words: int, buckets: int) -> list[int]:
    """The numbers of the first words of a text, and then zeros."""
    plain = text[: CHARACTERS * words].translate(CAPITALS).translate(SIGNS)
    found = [number(word, buckets) for word in plain.split(" ") if word][:words]
    return found + [0] * (words - len(found))


def number(word: str, buckets: int) -> int:
    """The number of a word, from 1 to `buckets`."""
    return (_hash(word) & POSITIVE) % buckets + 1


@lru_cache(100_000)
def _hash(word: str) -> int:
    """The lower half of what PostgreSQL's hashtextextended(word, 0) is: Jenkins' lookup3 over its
    bytes.
    """
    data = word.encode()
    a = b = c = (0x9E3779B9 + len(data) + 3923095) & WORD
    whole = len(data) // LENGTH * LENGTH
    for begin in range(0, whole, LENGTH):
        one, two, three = (
            int.from_bytes(data[begin + at : begin + at + 4], "little") for at in (0, 4, 8)
        )
        a, b, c = _mixed((a + one) & WORD, (b + two) & WORD, (c + three) & WORD)
    rest = data[whole:].ljust(LENGTH, b"\0")
    # The lowest byte of the third is for the length.
    one, two, three = (int.from_bytes(rest[at : at + 4], "little") for at in (0, 4, 8))
    a, b, c = (a + one) & WORD, (b + two) & WORD, (c + (three << 8)) & WORD
    for turns in ((14, 11, 25), (16, 4, 14)):
        c = ((c ^ b) - _turned(b, turns[0])) & WORD
        a = ((a ^ c) - _turned(c, turns[1])) & WORD
        b = ((b ^ a) - _turned(a, turns[2])) & WORD
    return ((c ^ b) - _turned(b, 24)) & WORD


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for one, two, three in ((4, 6, 8), (16, 19, 4)):
        a, c = ((a - c) & WORD) ^ _turned(c, one), (c + b) & WORD
        b, a = ((b - a) & WORD) ^ _turned(a, two), (a + c) & WORD
        c, b = ((c - b) & WORD) ^ _turned(b, three), (b + a) & WORD
    return a, b, c


def _turned(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & WORD
