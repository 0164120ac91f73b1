"""Hash the words of texts as PostgreSQL's `hashtextextended` does."""

from __future__ import annotations

import string
from functools import lru_cache

SEPARATORS = str.maketrans(
    {**dict.fromkeys({*string.punctuation, *string.whitespace} - {"_"}, " "), "'": ""}
)
"""Replacements that leave words separated by spaces; an apostrophe does not divide a word."""
LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
CHARACTERS_PER_WORD = 16
"""Characters of a text that are read for each word wanted of it."""
POSITIVE = (1 << 31) - 1
UINT32 = 0xFFFFFFFF
BLOCK_BYTES = 12


def hash_words(text: str, words: int, buckets: int) -> list[int]:
    """Return the buckets of the first words of a text, padded with zeros to `words` numbers."""
    prefix = text[: CHARACTERS_PER_WORD * words]
    parts = prefix.translate(LOWER_CASE).translate(SEPARATORS).split(" ")
    numbers = [hash_word(word, buckets) for word in parts if word][:words]
    return numbers + [0] * (words - len(numbers))


def hash_word(word: str, buckets: int) -> int:
    """Return the bucket of a word, from 1 to `buckets`."""
    return (_hash(word) & POSITIVE) % buckets + 1


@lru_cache(100_000)
def _hash(word: str) -> int:
    """Return the lower half of PostgreSQL's hashtextextended(word, 0).

    It is Jenkins' lookup3 over the bytes of the word.
    """
    data = word.encode()
    a = b = c = (0x9E3779B9 + len(data) + 3923095) & UINT32
    full_blocks_end = len(data) // BLOCK_BYTES * BLOCK_BYTES
    for begin in range(0, full_blocks_end, BLOCK_BYTES):
        first, second, third = _read_block(data[begin : begin + BLOCK_BYTES])
        a, b, c = _mix((a + first) & UINT32, (b + second) & UINT32, (c + third) & UINT32)
    first, second, third = _read_block(data[full_blocks_end:].ljust(BLOCK_BYTES, b"\0"))
    a = (a + first) & UINT32
    b = (b + second) & UINT32
    c = (c + (third << 8)) & UINT32  # its lowest byte is for the length
    for c_bits, a_bits, b_bits in ((14, 11, 25), (16, 4, 14)):
        c = ((c ^ b) - _rotate(b, c_bits)) & UINT32
        a = ((a ^ c) - _rotate(c, a_bits)) & UINT32
        b = ((b ^ a) - _rotate(a, b_bits)) & UINT32
    return ((c ^ b) - _rotate(b, 24)) & UINT32


def _read_block(block: bytes) -> list[int]:
    return [int.from_bytes(block[begin : begin + 4], "little") for begin in (0, 4, 8)]


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for a_bits, b_bits, c_bits in ((4, 6, 8), (16, 19, 4)):
        a = ((a - c) & UINT32) ^ _rotate(c, a_bits)
        c = (c + b) & UINT32
        b = ((b - a) & UINT32) ^ _rotate(a, b_bits)
        a = (a + c) & UINT32
        c = ((c - b) & UINT32) ^ _rotate(b, c_bits)
        b = (b + a) & UINT32
    return a, b, c


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & UINT32
