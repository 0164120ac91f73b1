"""The patches of images: covered one after another, they tell what of a picture a network goes by.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import IMAGE, wide_name
from cerebro_plpy.preprocessing.recipe.recipe import Recipe

MOST, SMALLEST = 6, 2
"""Of a side: so many patches, of at least so many pixels."""


class Patch(NamedTuple):
    """A part of the image of a column: its first row and column, and its last ones, from 1; its
    positions in inputs.
    """

    column: str
    bounds: tuple[int, int, int, int]
    inputs: Mapping[str, tuple[int, ...]]


def patches(recipe: Recipe) -> tuple[Patch, ...]:
    """Those of all images that are learned from; each pixel is in one."""
    found: list[Patch] = []
    for place, each in enumerate(recipe.wide, 1):
        shape = each.shape_of_input.shape
        if each.kind == IMAGE:
            height, width, _ = shape
            for rows, columns in product(_cuts(height), _cuts(width)):
                bounds = rows[0] + 1, columns[0] + 1, rows[1], columns[1]
                inputs = {wide_name(place): _positions(shape, rows, columns)}
                found.append(Patch(each.column, bounds, inputs))
    return tuple(found)


def _cuts(side: int) -> Iterator[tuple[int, int]]:
    """Where each part of so many pixels begins and ends.

    >>> list(_cuts(8)), list(_cuts(1)), [end - begin for begin, end in _cuts(64)]
    ([(0, 2), (2, 4), (4, 6), (6, 8)], [(0, 1)], [10, 11, 11, 10, 11, 11])
    """
    parts = max(1, min(MOST, side // SMALLEST))
    edges = [side * part // parts for part in range(parts + 1)]
    return zip(edges, edges[1:])


def _positions(
    shape: tuple[int, ...], rows: tuple[int, int], columns: tuple[int, int]
) -> tuple[int, ...]:
    """Those of a part of an image that lies row by row, the channels of a pixel side by side.

    >>> _positions((4, 3, 2), (1, 3), (2, 3))
    (10, 11, 16, 17)
    """
    _, width, channels = shape
    pixels = (row * width + column for row, column in product(range(*rows), range(*columns)))
    return tuple(pixel * channels + channel for pixel in pixels for channel in range(channels))
