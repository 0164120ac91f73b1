"""Encoded images become the pixels that were encoded; anything else is told and found, and never
costs memory.
"""

from __future__ import annotations

import hashlib
import io
import struct
import sys
import zlib

import numpy as np
import pytest
from drawn_images import BYTEA, chunk, encoded, png
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from cerebro_trainer.data import arrays, images, raw_rows
from cerebro_trainer.errors import RequestError

PICTURE = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8)


def decode(*files: bytes, divide: float | None = None) -> np.ndarray:
    return images.decode([memoryview(file) for file in files], divide, "picture")


sizes = st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))


@given(sizes.flatmap(lambda shape: hnp.arrays(np.uint8, shape)), st.none() | st.floats(0.5, 1000))
def test_png_comes_back_with_every_bit_divided_as_numbers_are(
    pixels: np.ndarray, divide: float | None
) -> None:
    found = decode(*(encoded(picture) for picture in pixels), divide=divide)
    assert found.dtype == np.float32 and found.shape == pixels.shape
    expected = pixels.astype(np.float32)
    np.testing.assert_array_equal(
        found, expected if divide is None else expected / np.float32(divide)
    )


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (3, "CMYK")])
def test_jpeg_is_read_as_pillow_reads_it(channels: int, mode: str) -> None:
    flat = np.full((16, 16, channels), 100, np.uint8)
    found = decode(encoded(flat, "JPEG", mode, quality=95))
    assert found.shape == (1, 16, 16, channels)
    np.testing.assert_allclose(found, 100, atol=3)


@pytest.mark.parametrize("options", [{}, {"optimize": True}, {"transparency": 0}])
def test_a_palette_becomes_its_colours(options: dict[str, object]) -> None:
    few = Image.fromarray(PICTURE).quantize(4)
    output = io.BytesIO()
    few.save(output, "PNG", **options)
    mode = "RGBA" if "transparency" in options else "RGB"
    np.testing.assert_array_equal(
        decode(output.getvalue())[0], np.asarray(Image.open(output).convert(mode))
    )


def test_black_and_white_is_0_and_255() -> None:
    found = decode(encoded(np.array([[[0], [255]]], np.uint8), "PNG", "1"))
    assert found.tolist() == [[[[0.0], [255.0]]]]


def test_other_shapes_are_named_counted_and_found() -> None:
    grey, wide = encoded(PICTURE[..., :1]), encoded(PICTURE[:, :4])
    with pytest.raises(RequestError, match="images of column picture have 3 shapes") as refused:
        decode(*[encoded(PICTURE)] * 5, grey, wide, wide)
    assert refused.value.detail is not None and refused.value.hint is not None
    assert "6x5x3 (5), 6x4x3 (2), 6x5x1 (1)" in refused.value.detail
    assert f"md5(picture) = '{hashlib.md5(grey).hexdigest()}'" in refused.value.hint


WRONG = {
    "nothing": b"",
    "text": b"no image",
    "a truncated PNG": encoded(PICTURE)[:-60],
    "a truncated JPEG": encoded(np.zeros((64, 64, 3), np.uint8), "JPEG")[:300],
    "half a header": encoded(PICTURE)[:20],
    "GIF": encoded(PICTURE, "GIF"),
    "BMP": encoded(PICTURE, "BMP"),
    "TIFF": encoded(PICTURE, "TIFF"),
    "PPM": encoded(PICTURE, "PPM"),
    "WebP": encoded(PICTURE, "WEBP"),
    "16 bits a channel": png(2, 2, 16, 0),
    "a bomb": png(60_000, 60_000),
    "more pixels than allowed": png(1 << 12, (1 << 12) + 1, colour=0),
    "more numbers than allowed": png(1 << 12, (1 << 11) + 1, colour=6),
    "a text that unpacks to 100 MB": png(2, 2)[:33]
    + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100_000_000), 9))
    + png(2, 2)[33:],
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_what_is_no_image_is_refused_and_found(data: bytes) -> None:
    with pytest.raises(
        RequestError, match="column picture cannot be read as PNG or JPEG"
    ) as refused:
        decode(encoded(PICTURE), data)
    assert hashlib.md5(data).hexdigest() in str(refused.value.hint)


def test_as_many_images_as_a_value_can_have_take_no_memory_before_they_are_refused() -> None:
    """Small files that are large: what is counted is what they declare."""
    vast = png(1 << 12, 1 << 12, colour=0)
    with pytest.raises(RequestError, match="17 images of column picture take 1088 MB") as refused:
        decode(*[vast] * 17)
    assert "buffer_size" in str(refused.value.hint)


FILES = [encoded(PICTURE), encoded(PICTURE, "JPEG"), encoded(PICTURE, "PNG", "P")]


@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    st.integers(0),
)
@example(FILES[0], [], 30)
def test_damaged_files_are_read_or_refused(
    file: bytes, changes: list[tuple[int, int]], length: int
) -> None:
    damaged = bytearray(file)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    try:
        found = decode(bytes(damaged[: length + 1]))
    except RequestError:
        return
    assert found.ndim == 4


def bytea_array(value: bytes | None) -> bytes:
    """ARRAY[value] of type bytea[] in array_send's format."""
    head = struct.pack(">iiIii", 1, int(value is None), BYTEA, 1, 1)
    return head + (
        struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    )


def packed(rows: int, *values: bytes | None) -> list[np.ndarray]:
    payload = np.frombuffer(b"".join(map(bytea_array, values)), np.uint8)
    return raw_rows.decode_inputs(
        {"rows": rows, "arrays": [{"kind": "image", "column": "picture", "divide": 255.0}]}, payload
    )


def test_images_are_packed_like_any_column() -> None:
    (found,) = packed(2, encoded(PICTURE), encoded(255 - PICTURE))
    np.testing.assert_array_equal(found[0], PICTURE.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(found[1], (255 - PICTURE).astype(np.float32) / np.float32(255))


@pytest.mark.parametrize(
    ("rows", "values", "sqlstate"),
    [
        (2, [FILES[0]], "22004"),
        (1, [None], "22004"),
        (1, FILES[:2], "22023"),
        (2, [FILES[0], None], "22004"),
    ],
)
def test_a_null_among_images(rows: int, values: list[bytes | None], sqlstate: str) -> None:
    with pytest.raises(RequestError) as refused:
        packed(rows, *values)
    assert refused.value.sqlstate == sqlstate


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**25), 2**25)


@given(
    st.sampled_from([(arrays.INT4, 32), (arrays.INT8, 64)]),
    st.lists(integers, min_size=1, max_size=5),
)
def test_integers_are_packed_exactly_or_not_at_all(
    kind: tuple[arrays.ElementType, int], values: list[int]
) -> None:
    element, bits = kind
    values = [value % 2**bits - 2 ** (bits - 1) for value in values]
    head = struct.pack("=iiIii", 1, 0, element.oid, len(values), 1)
    sent = head + b"".join(
        value.to_bytes(bits // 8, sys.byteorder, signed=True) for value in values
    )
    exact = [int(np.float32(value)) == value for value in values]
    payload = np.frombuffer(sent, np.uint8)
    if all(exact):
        assert arrays.decode_integers(payload, 1, element)[0].tolist() == values
    else:
        with pytest.raises(
            RequestError, match=f"the integer {values[exact.index(False)]}:"
        ) as refused:
            arrays.decode_integers(payload, 1, element)
        assert refused.value.sqlstate == "22003"
    divided = arrays.decode_integers(payload, 1, element, 3.0)[0]
    np.testing.assert_array_equal(divided, np.array(values).astype(np.float32) / np.float32(3))
