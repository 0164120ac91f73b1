"""Image files of any sizes become thumbnails of the size that is wanted; what is none is refused,
never guessed.
"""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from drawn_images import BYTEA, encoded, png
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cerebro_plpy.preprocessing.values import thumbnails as sent_files
from cerebro_trainer.data import raw_rows, thumbnails
from cerebro_trainer.errors import RequestError, RowError

COLUMN = 'a "photo"'
DRAWN = np.random.default_rng(0).integers(0, 256, (16, 8, 3)).astype(np.uint8)
SMALL = (16, 8, 3)


def sent(*files: bytes, shape: tuple[int, int, int] = SMALL, column: str = COLUMN) -> np.ndarray:
    """What comes of files as a backend sends them."""
    values = [bytes.fromhex(sent_files.header(column, shape)) + file for file in files]
    parts = [struct.pack(">iiIiii", 1, 0, BYTEA, 1, 1, len(value)) + value for value in values]
    payload = np.frombuffer(b"".join(parts), np.uint8)
    entry = {"kind": "image", "column": "wide_1", "source": "pg_temp.encoded", "divide": 1.0}
    (found,) = raw_rows.decode_columns([entry], [payload], len(files))
    return found


def pixels(found: np.ndarray, shape: tuple[int, int, int] = SMALL) -> np.ndarray:
    """The pixels that were scaled."""
    return (
        (found.reshape(-1, *shape) * thumbnails.WIDTH + thumbnails.CENTER).round().astype(np.uint8)
    )


def test_an_image_of_the_wanted_size_keeps_every_pixel_and_one_that_is_missing_is_zeros() -> None:
    found = sent(encoded(DRAWN), b"", encoded(255 - DRAWN))
    assert found.dtype == np.float32 and found.shape == (3, 16 * 8 * 3)
    np.testing.assert_array_equal(pixels(found)[[0, 2]], [DRAWN, 255 - DRAWN])
    assert not found[1].any() and (np.abs(found) <= 2).all()


@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA",
"CMYK"]),
       st.sampled_from([(8, 8, 1), (24, 16, 3)]))  # fmt: skip
def test_images_of_any_size_and_mode_become_one_shape(
    height: int, width: int, mode: str, shape: tuple[int, int, int]
) -> None:
    even = np.full((height, width, 3), 255, np.uint8)
    found = sent(encoded(even, "JPEG" if mode == "CMYK" else "PNG", mode), shape=shape)
    assert (pixels(found, shape) == 255).all()


def test_a_photograph_and_its_thumbnail_look_alike() -> None:
    """Colours stay where they are; of a JPEG, of which fewer pixels are computed, too."""
    large = np.zeros((640, 480, 3), np.uint8)
    large[:320, :, 0], large[320:, 240:, 2] = 255, 255
    wanted = np.asarray(Image.fromarray(large).resize((24, 32), Image.Resampling.BOX)).astype(int)
    for kind in ("PNG", "JPEG"):
        found = pixels(sent(encoded(large, kind), shape=(32, 24, 3)), (32, 24, 3)).astype(int)
        away = np.abs(found - wanted).mean(axis=2)
        assert np.median(away) < 3 and (away > 40).mean() < 0.1, kind


def test_what_is_transparent_shows_white() -> None:
    drawn = np.zeros((16, 8, 4), np.uint8)
    drawn[:8, :, 3] = 255
    found = pixels(sent(encoded(drawn)))[0]
    assert not found[:8].any() and (found[8:] == 255).all()
    output = io.BytesIO()
    Image.new("P", (8, 16), 0).save(output, "PNG", transparency=0)
    assert (pixels(sent(output.getvalue())) == 255).all()


@pytest.mark.parametrize(
    "file",
    [b"GIF89a no image", encoded(DRAWN)[:60], encoded(DRAWN, "JPEG")[:300], png(60_000, 60_000)],
)
def test_bytes_that_are_no_image_are_refused_by_the_name_of_their_column(file: bytes) -> None:
    with pytest.raises(
        RowError, match='in column "a ""photo""" cannot be read as PNG or JPEG'
    ) as found:
        sent(encoded(DRAWN), file)
    assert "wide_1" not in found.value.message and 'md5("a ""photo""")' in str(found.value.hint)
    assert "may be NULL" in str(found.value.hint)


@pytest.mark.parametrize("shape", [(0, 8, 3), (8, 8, 2), (60_000, 60_000, 3)])
def test_no_head_takes_more_memory_than_a_value_may(shape: tuple[int, int, int]) -> None:
    with pytest.raises(RequestError):
        sent(b"", b"", shape=shape)


def test_heads_that_differ_or_lack_are_refused() -> None:
    one, other = (bytes.fromhex(sent_files.header("a", (8, side, 1))) for side in (8, 16))
    for values in ([one, other], [one, b"no head"], [one[:20], one], [one[:-1]]):
        with pytest.raises(RequestError):
            thumbnails.decode([memoryview(value) for value in values])
