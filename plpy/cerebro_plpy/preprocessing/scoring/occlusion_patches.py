"""The patches of images that are covered one after another to measure their influence; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import IMAGE, wide_name
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.array_layout import Shape

MOST_PATCHES = 6
"""Patches along a side of an image."""
SMALLEST_SIDE = 2
"""Pixels of a side of a patch."""


class Patch(NamedTuple):
    """A part of the image of a column."""

    column: str
    bounds: tuple[int, int, int, int]  # first row and column, last row and column, from 1
    inputs: Mapping[str, tuple[int, ...]]  # the positions of its pixels, by the name of the input


def list_patches(recipe: Recipe) -> tuple[Patch, ...]:
    """Return the patches of all image columns; each pixel is in one patch."""
    patches: list[Patch] = []
    for place, feature in enumerate(recipe.wide, 1):
        shape = feature.shape_of_input.shape
        if feature.kind == IMAGE:
            height, width, _ = shape
            for rows, columns in product(_cut_side(height), _cut_side(width)):
                bounds = (rows[0] + 1, columns[0] + 1, rows[1], columns[1])
                inputs = {wide_name(place): _positions(shape, rows, columns)}
                patches.append(Patch(feature.column, bounds, inputs))
    return tuple(patches)


def _cut_side(side: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each patch along a side.

    >>> list(_cut_side(8)), list(_cut_side(1)), [end - begin for begin, end in _cut_side(64)]
    ([(0, 2), (2, 4), (4, 6), (6, 8)], [(0, 1)], [10, 11, 11, 10, 11, 11])
    """
    parts = max(1, min(MOST_PATCHES, side // SMALLEST_SIDE))
    edges = [side * part // parts for part in range(parts + 1)]
    return zip(edges, edges[1:])


def _positions(shape: Shape, rows: tuple[int, int], columns: tuple[int, int]) -> tuple[int, ...]:
    """Return the positions of a part of an image, whose channels and pixels lie row by row.

    >>> _positions((4, 3, 2), (1, 3), (2, 3))
    (10, 11, 16, 17)
    """
    _, width, channels = shape
    pixels = (row * width + column for row, column in product(range(*rows), range(*columns)))
    return tuple(pixel * channels + channel for pixel in pixels for channel in range(channels))
