"""What is learned of columns of files: of training rows alone, by the beginnings of files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import psycopg2
import pytest
from drawn_images import encoded
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image_file import ImageFile
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

EVERYWHERE = Source("albums", Expression("true"), Expression("t.id::bigint << 32"))
INNER = encoded(np.zeros((5, 6, 3), np.uint8), "JPEG")
"""A thumbnail as cameras put one into their files."""


def drawn(height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.arange(height * width * channels).reshape(height, width, channels).astype(np.uint8)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(
        "CREATE DOMAIN file AS bytea; CREATE TABLE albums (id bigserial PRIMARY KEY, photo file)"
    )
    return Session(bench)


def learned(
    bench: Workbench, session: Session, files: Sequence[bytes | None], **types: str
) -> Feature:
    """What becomes of a column of these files."""
    bench.rows("TRUNCATE albums RESTART IDENTITY")
    for file in files:
        bench.rows(
            "INSERT INTO albums (photo) VALUES (%s)",
            None if file is None else psycopg2.Binary(file),
        )
    ((oid,),) = session.run("SELECT 'albums'::regclass::oid::bigint")
    key, photo = fit_recipe(session, EVERYWHERE, read_columns(session, oid), types).features
    assert key == LeftOut("id", "it is of the primary key, and names a row")
    return photo


sides = st.integers(1, 300)


@trials(40)
@given(height=sides, width=sides, grey=st.booleans(), jpeg=st.booleans(), camera=st.booleans())
def test_the_size_of_images_is_what_their_files_say(
    bench: Workbench,
    session: Session,
    height: int,
    width: int,
    grey: bool,
    jpeg: bool,
    camera: bool,
) -> None:
    pixels = drawn(height, width, 1 if grey else 3)
    exif: dict[str, object] = (
        {"exif": b"Exif\0\0" + INNER, "icc_profile": bytes(70_000)} if camera and jpeg else {}
    )
    file = encoded(pixels, "JPEG" if jpeg else "PNG", None, **exif)
    found = learned(bench, session, [file, b"", None])
    assert (
        isinstance(found, ImageFile) and found.missing and len(file) <= found.bytes < 2 * len(file)
    )
    assert found.shape[2] == pixels.shape[2]
    longest = max(height, width)
    for side, wanted in zip(found.shape, (height, width), strict=False):
        assert side >= min(wanted, wanted / longest * 64) and (side <= 24 or side < 2 * wanted)


def test_the_usual_size_counts_and_colours_of_any(bench: Workbench, session: Session) -> None:
    files = [*[encoded(drawn(28, 20, 1))] * 7, encoded(drawn(9, 9)), encoded(drawn(90, 90), "JPEG")]
    found = learned(bench, session, files)
    assert isinstance(found, ImageFile) and (found.shape, found.missing) == ((32, 24, 3), False)


def test_files_that_are_no_images_are_left_out_unless_the_caller_wants_them(
    bench: Workbench, session: Session
) -> None:
    image, other = encoded(drawn(9, 9)), b"GIF89a"
    reason = LeftOut("photo", "its values are no PNG or JPEG images")
    assert learned(bench, session, [image, other, other]) == reason
    assert isinstance(learned(bench, session, [image, image, other]), ImageFile)
    wanted = learned(bench, session, [other], photo="image")
    assert isinstance(wanted, ImageFile) and wanted.shape == (64, 64, 3)
    assert learned(bench, session, [None, b""]) == LeftOut(
        "photo", "it is NULL or empty in all rows"
    )


@trials(25)
@given(st.binary(max_size=60), st.sampled_from([0, 2, 3, 8, 20, 200]))
def test_no_bytes_are_an_error(bench: Workbench, session: Session, noise: bytes, kept: int) -> None:
    for kind in ("PNG", "JPEG"):
        assert learned(
            bench, session, [encoded(drawn(9, 9), kind)[:kept] + noise, b"x"], photo="image"
        )


def test_a_file_of_many_segments_ends(bench: Workbench, session: Session) -> None:
    """Each of them has a length of its own, which may be next to nothing."""
    file = b"\xff\xd8" + b"\xff\xe0\0\2" * 200_000
    assert learned(bench, session, [file], photo="image") == ImageFile(
        "photo", (64, 64, 3), 1 << 20, missing=False
    )
