"""The elements of an array as SQL lays them out in one shape, whatever sizes and lower bounds it
has.

An array of one dimension, or with the wanted sizes but for the first, has its elements where they
are wanted already: it is cut, or filled up at its end. One of other sizes is cut and filled in each
dimension, which takes longer; what has fewer dimensions than wanted has sizes of 1 in the others,
and what has more has no elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

ARRAY, ELEMENT, PLACE = "v.a", "e.x", "e.n"
"""What stands for an array in these expressions, for an element of it, and for its number in the
array, from 1.
"""


class Laid(NamedTuple):
    """SQL text, and how often the text of an element stands in it."""

    text: str
    elements: int


def laid_out(
    array: str, shape: tuple[int, ...], element: Callable[[str], str], filling: str
) -> Laid:
    """An array of one dimension of what `element` makes of elements of this shape, filled up with
    `filling`.

    `element` is given what stands for the number of an element's channel, from 1.
    """
    wanted = math.prod(shape)
    flat = _flat(wanted, element(_channel(shape)), filling)
    if len(shape) == 1:
        return Laid(f"(SELECT {flat} FROM (SELECT {array} AS a OFFSET 0) v)", 1)
    placed = _placed(shape, element(f"(({_own(shape)[-1]}) + 1)::integer"), filling)
    text = (
        f"(SELECT CASE WHEN {_fits(shape)} THEN {flat} ELSE {placed} END FROM (SELECT {array} AS a "
        "OFFSET 0) v)"
    )
    return Laid(text, 2)


def _flat(wanted: int, element: str, filling: str) -> str:
    found = (
        f"ARRAY(SELECT {element} FROM pg_catalog.unnest({ARRAY}) WITH ORDINALITY AS e (x, n) LIMIT "
        f"{wanted})"
    )
    rest = f"greatest({wanted} - coalesce(pg_catalog.cardinality({ARRAY}), 0), 0)"
    return f"{found} OPERATOR(pg_catalog.||) pg_catalog.array_fill({filling}, ARRAY[{rest}])"


def _channel(shape: tuple[int, ...]) -> str:
    return f"(({PLACE} - 1) % {shape[-1]}::bigint + 1)::integer"


def _fits(shape: tuple[int, ...]) -> str:
    """Whether elements are where they are wanted; of NULL, which has none, they are."""
    sizes = " AND ".join(f"{_size(place)} = {size}" for place, size in enumerate(shape[1:], 2))
    dimensions = f"pg_catalog.array_ndims({ARRAY})"
    return f"coalesce({dimensions} = 1 OR {dimensions} <= {len(shape)} AND {sizes}, true)"


def _size(dimension: int) -> str:
    return f"coalesce(pg_catalog.array_length({ARRAY}, {dimension}), 1)"


def _own(shape: tuple[int, ...]) -> list[str]:
    """Where an element is in each dimension of its own array, from 0."""
    found, inner = list[str](), "1"
    for dimension in range(len(shape), 0, -1):
        found.insert(0, f"({PLACE} - 1) / ({inner}) % {_size(dimension)}::bigint")
        inner = f"{inner} * {_size(dimension)}"
    return found


def _placed(shape: tuple[int, ...], element: str, filling: str) -> str:
    """Elements by where they are wanted, and what fills the other places."""
    wanted, own = math.prod(shape), _own(shape)
    place, inside, inner = "0", list[str](), 1
    for dimension in range(len(shape), 0, -1):
        size = shape[dimension - 1]
        place = f"({own[dimension - 1]}) * {inner} + {place}"
        inside.append(f"g.p / {inner} % {size} < {_size(dimension)}")
        inner *= size
    within = " AND ".join(f"({where}) < {size}" for where, size in zip(own, shape))
    few = f"pg_catalog.array_ndims({ARRAY}) <= {len(shape)}"
    return (
        f"ARRAY(SELECT u.x FROM (SELECT {place} AS p, {element} AS x FROM "
        f"pg_catalog.unnest({ARRAY}) WITH ORDINALITY AS e (x, n) WHERE {few} AND {within} UNION "
        f"ALL SELECT g.p, {filling} FROM pg_catalog.generate_series(0, {wanted - 1}) AS g (p) "
        f"WHERE NOT ({few} AND {' AND '.join(inside)})) u ORDER BY u.p)"
    )
