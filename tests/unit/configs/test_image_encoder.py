"""What a template makes of an image without a framework: how many numbers, and how long that is
expected to take.
"""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_plpy.configs.templates.layers import encoders, images
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import IMAGE, Wide

SPLITS = st.integers(1, 40)
SHAPES = st.tuples(SPLITS, SPLITS, st.integers(1, 4))


@given(SHAPES, st.integers(1, 5), st.integers(1, 8))
@example((32, 3, 3), 2, 4)
@example((3, 3, 1), 1, 4)
def test_all_is_read_of_a_small_image_and_means_of_a_large_one(
    shape: tuple[int, int, int], depth: int, width: int
) -> None:
    """It is halved in each block as long as it is large, and has twice as many channels, up to four
    times as many.
    """
    (height, wide, _), channels = shape, width * min(4, 2 ** (depth - 1))
    for _ in range(depth):
        height, wide = (side // 2 if side > images.SMALL_SIDE else side for side in (height, wide))
    graph = Graph("picture")
    params = {"image_width": width, "image_depth": depth}
    found = images.encode(graph, "image", graph.input("x", shape), params)
    assert found.shape == (
        channels * (height * wide if max(height, wide) <= images.SMALL_SIDE else 1),
    )


@given(SHAPES, st.integers(0, 2), st.integers(2, 9))
def test_a_larger_image_takes_longer(shape: tuple[int, int, int], place: int, times: int) -> None:
    """Twice as large at least: five pixels of a side are halved to two, and four are not."""
    larger = (*shape[:place], shape[place] * times, *shape[place + 1 :])
    assert (
        0 < encoders.estimate_work(Wide(IMAGE, shape)) < encoders.estimate_work(Wide(IMAGE, larger))
    )
