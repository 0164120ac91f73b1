"""SQL that lays out the elements of arrays in one shape, whatever their sizes and lower bounds.

A one-dimensional array, and an array whose sizes differ from the shape in the first dimension only,
has its elements in order already: it is cut, or filled at its end. Any other array is cut and
filled in each dimension, which takes longer. Missing dimensions have size 1; an array with more
dimensions than the shape counts as empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

Shape = tuple[int, ...]

ARRAY = "v.a"
ELEMENT = "e.x"
PLACE = "e.n"
"""The array, an element of it, and its number from 1, in the expressions below."""


class Layout(NamedTuple):
    """SQL text of an array with the elements in place."""

    text: str
    elements: int  # how often the text of an element occurs


def lay_out(array: str, shape: Shape, element: Callable[[str], str], filling: str) -> Layout:
    """Return a one-dimensional array of the elements of a shape.

    Args:
        element: returns SQL for an element from SQL for the number of its channel, from 1.
        filling: SQL for the elements that an array does not have.
    """
    count = math.prod(shape)
    flat = _flat(count, element(_channel(shape)), filling)
    if len(shape) == 1:
        return Layout(f"(SELECT {flat} FROM (SELECT {array} AS a OFFSET 0) v)", 1)
    placed = _placed(shape, element(f"(({_source_indices(shape)[-1]}) + 1)::integer"), filling)
    text = (
        f"(SELECT CASE WHEN {_fits(shape)} THEN {flat} ELSE {placed} END FROM (SELECT {array} AS a "
        "OFFSET 0) v)"
    )
    return Layout(text, 2)


def describe_shape(shape: Shape) -> str:
    """Return a shape as a text, for messages.

    >>> describe_shape((28, 20, 1))
    '28 x 20 x 1'
    """
    return " x ".join(map(str, shape))


def _flat(count: int, element: str, filling: str) -> str:
    elements = (
        f"ARRAY(SELECT {element} FROM pg_catalog.unnest({ARRAY}) WITH ORDINALITY AS e (x, n) LIMIT "
        f"{count})"
    )
    missing = f"greatest({count} - coalesce(pg_catalog.cardinality({ARRAY}), 0), 0)"
    return f"{elements} OPERATOR(pg_catalog.||) pg_catalog.array_fill({filling}, ARRAY[{missing}])"


def _channel(shape: Shape) -> str:
    return f"(({PLACE} - 1) % {shape[-1]}::bigint + 1)::integer"


def _fits(shape: Shape) -> str:
    """Return the condition that the elements are in order already; NULL, without any, fits."""
    sizes = " AND ".join(f"{_size(place)} = {size}" for place, size in enumerate(shape[1:], 2))
    dimensions = f"pg_catalog.array_ndims({ARRAY})"
    return f"coalesce({dimensions} = 1 OR {dimensions} <= {len(shape)} AND {sizes}, true)"


def _size(dimension: int) -> str:
    return f"coalesce(pg_catalog.array_length({ARRAY}, {dimension}), 1)"


def _source_indices(shape: Shape) -> list[str]:
    """Return the index of an element in each dimension of its own array, from 0."""
    indices: list[str] = []
    stride = "1"
    for dimension in range(len(shape), 0, -1):
        indices.insert(0, f"({PLACE} - 1) / ({stride}) % {_size(dimension)}::bigint")
        stride = f"{stride} * {_size(dimension)}"
    return indices


def _placed(shape: Shape, element: str, filling: str) -> str:
    """Return elements at their places in the shape, with the other places filled."""
    indices = _source_indices(shape)
    place = "0"
    inside: list[str] = []
    stride = 1
    for dimension in range(len(shape), 0, -1):
        size = shape[dimension - 1]
        place = f"({indices[dimension - 1]}) * {stride} + {place}"
        inside.append(f"g.p / {stride} % {size} < {_size(dimension)}")
        stride *= size
    within = " AND ".join(f"({index}) < {size}" for index, size in zip(indices, shape))
    fits_dimensions = f"pg_catalog.array_ndims({ARRAY}) <= {len(shape)}"
    return (
        f"ARRAY(SELECT u.x FROM (SELECT {place} AS p, {element} AS x FROM "
        f"pg_catalog.unnest({ARRAY}) WITH ORDINALITY AS e (x, n) WHERE {fits_dimensions} AND "
        f"{within} UNION "
        f"ALL SELECT g.p, {filling} FROM pg_catalog.generate_series(0, {math.prod(shape) - 1}) "
        "AS g (p) "
        f"WHERE NOT ({fits_dimensions} AND {' AND '.join(inside)})) u ORDER BY u.p)"
    )
