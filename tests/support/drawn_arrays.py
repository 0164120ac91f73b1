"""Arrays of numbers as Hypothesis draws them: NULL, empty, of any sizes and lower bounds, with
elements of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from hypothesis import strategies as st


class Array(NamedTuple):
    """An array by its sizes, where each dimension begins, and its elements in the order in which
    they lie.
    """

    sizes: tuple[int, ...]
    bounds: tuple[int, ...]
    elements: tuple[float | None, ...]

    def __str__(self) -> str:
        """As PostgreSQL reads it."""
        if not self.elements:
            return "{}"
        bounds = "".join(
            f"[{low}:{low + size - 1}]" for size, low in zip(self.sizes, self.bounds, strict=True)
        )
        return f"{bounds}={_braces(self.sizes, list(map(_text, self.elements)))}"

    def at(self, *place: int) -> float | None:
        """The element at a place, each part of which counts from 0; None where there is none."""
        if len(place) != len(self.sizes) or any(
            part >= size for part, size in zip(place, self.sizes, strict=True)
        ):
            return None
        where = 0
        for part, size in zip(place, self.sizes, strict=True):
            where = where * size + part
        return self.elements[where]

    def laid_out(self, shape: tuple[int, ...]) -> list[float | None]:
        """Its elements in this shape, one behind another; None where there is none.

        Those of one dimension are taken in their order. One with fewer dimensions than the shape
        has sizes of 1 in the others, one with more has no elements.
        """
        wanted = math.prod(shape)
        if len(shape) == 1 or len(self.sizes) == 1:
            return [*self.elements, *[None] * wanted][:wanted]
        if len(self.sizes) > len(shape):
            return [None] * wanted
        whole = self._replace(sizes=self.sizes + (1,) * (len(shape) - len(self.sizes)))
        return (
            [whole.at(*place) for place in product(*map(range, shape))]
            if self.sizes
            else [None] * wanted
        )


def _text(element: float | None) -> str:
    return "NULL" if element is None else str(element)


def _braces(sizes: Sequence[int], elements: Sequence[str]) -> str:
    if len(sizes) == 1:
        return "{" + ",".join(elements) + "}"
    step = len(elements) // sizes[0]
    parts = [
        _braces(sizes[1:], elements[start : start + step])
        for start in range(0, len(elements), step)
    ]
    return "{" + ",".join(parts) + "}"


INTEGERS = st.none() | st.integers(-(2**31), 2**31 - 1)
REALS = st.none() | st.floats(width=32)
DOUBLES = st.none() | st.floats()
ELEMENTS = {
    "integer[]": INTEGERS,
    "real[]": REALS,
    "double precision[]": DOUBLES,
    "numeric[]": DOUBLES,
}
"""Of types of arrays."""
FAMILIES = {name: name if name != "double precision[]" else "real[]" for name in ELEMENTS}

NOTHING = Array((), (), ())


def arrays(elements: st.SearchStrategy[float | None]) -> st.SearchStrategy[Array | None]:
    """An array of such elements, or NULL."""

    def of(sizes: tuple[int, ...]) -> st.SearchStrategy[Array]:
        count = math.prod(sizes)
        bounds = st.tuples(*(st.sampled_from((1, 0, -5, 7, 2**31 - 20)) for _ in sizes))
        found = st.lists(elements, min_size=count, max_size=count).map(tuple)
        return st.builds(Array, st.just(sizes), bounds, found)

    sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
    return st.one_of(st.none(), st.just(NOTHING), sizes.flatmap(of))
