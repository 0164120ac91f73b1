"""Models by name over columns of image files: learned from, predicted, granted, explained, checked
and trained on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import numpy as np
import psycopg2
import pytest
from drawn_images import encoded
from PIL import Image, ImageDraw
from roles import another_role, own_schema, refused
from workbench import Workbench

pytestmark = pytest.mark.long

ROWS = 300
COLUMN = "\"the '%s' photo\""
MODEL = "signs"
SHAPES = ("circle", "cross", "square")
PREDICTED = (
    "SELECT id, prediction, probability FROM cerebro.predict('signs', '{}', 'id', owner => "
    "'cerebro') ORDER BY id::integer"
)
OPTIONS = (
    "models => '{cnn}', configs => 1, seed => 5, ensemble => 1, "
    "refit => 'none', workers => 1, space => "
    "'{\"width\": 16}'"
)


def sign(number: int) -> bytes:
    """A shape somewhere in a picture, in colours that say nothing."""
    drawn = random.Random(number)
    side = drawn.randint(16, 23) if number % 40 else 300
    dark, light = ([drawn.randint(low, low + 90) for _ in "rgb"] for low in (0, 165))
    ground, ink = drawn.sample([dark, light], 2)
    image = Image.new("RGB", (side, side), tuple(ground))
    size = side * drawn.randint(40, 60) // 100
    left, top = drawn.randint(1, side - size - 1), drawn.randint(1, side - size - 1)
    box, pen = (left, top, left + size, top + size), ImageDraw.Draw(image)
    if number % 3 == 0:
        pen.ellipse(box, fill=tuple(ink))
    elif number % 3 == 1:
        pen.line(box, fill=tuple(ink), width=side // 7)
        pen.line((left, top + size, left + size, top), fill=tuple(ink), width=side // 7)
    else:
        pen.rectangle(box, fill=tuple(ink))
    return encoded(np.asarray(image), "JPEG" if number % 5 == 0 else "PNG")


def inserted(bench: Workbench, first: int, last: int) -> None:
    for number in range(first, last + 1):
        file = b"" if number % 50 == 7 else None if number % 50 == 9 else sign(number)
        text = (
            f"INSERT INTO signs (id, {COLUMN.replace('%', '%%')}, seen, shape) VALUES (%s, %s, %s, "
            "%s)"
        )
        value = None if file is None else psycopg2.Binary(file)
        bench.rows(text, number, value, number % 4, SHAPES[number % 3])


@pytest.fixture(scope="module")
def signs(bench: Workbench) -> Iterator[str]:
    bench.rows(
        f"CREATE TABLE signs (id integer PRIMARY KEY, {COLUMN} bytea, seen integer, shape text)"
    )
    inserted(bench, 1, ROWS)
    bench.rows(f"SELECT * FROM cerebro.train('signs', 'shape', 'signs', {OPTIONS}, epochs => 16)")
    yield MODEL
    bench.rows("SELECT cerebro.drop_model('signs'); DROP TABLE signs")


def test_shapes_are_learned_from_files(bench: Workbench, signs: str) -> None:
    (value,) = bench.rows("SELECT value FROM cerebro.model_version WHERE model = 'signs'")[0]
    assert value > 0.8
    ((kind, encoding),) = bench.rows(
        "SELECT kind, constants FROM cerebro.feature WHERE model = 'signs' AND column_name LIKE "
        "'the%'"
    )
    assert kind == "image" and encoding["shape"] == [24, 24, 3] and encoding["missing"]


def test_a_row_is_predicted_as_its_table_is(bench: Workbench, signs: str) -> None:
    """Its file comes as to_jsonb has one; of any size, empty, or none at all."""
    rows = bench.rows(PREDICTED.format("signs"))
    assert len(rows) == ROWS
    for number in (1, 2, 5, 7, 9, 40):
        record = bench.value("SELECT to_jsonb(t)::text FROM signs t WHERE id = %s", number)
        found = bench.value("SELECT cerebro.predict_row('signs', %s)", record)
        _, prediction, probability = rows[number - 1]
        assert found["prediction"] == prediction and found["probability"] == pytest.approx(
            probability, abs=1e-5
        )


def test_bytes_that_are_no_image_are_refused_by_the_name_of_their_column(
    bench: Workbench, signs: str
) -> None:
    words = "the '%s' photo\"\" cannot be read as PNG or JPEG".replace('""', '"')
    for file in ("\\x00", "\\x89504e470d0a1a0a", "\\xffd8ffe000104a464946"):
        bench.rows("CREATE TABLE broken AS TABLE signs")
        bench.rows(f"UPDATE broken SET {COLUMN.replace('%', '%%')} = %s WHERE id = 3", file)
        refused(
            bench, "SELECT * FROM cerebro.predict('signs', 'broken')", code="22023", words=words
        )
        train = f"SELECT * FROM cerebro.train('broken', 'shape', 'worse', {OPTIONS}, epochs => 1)"
        refused(bench, train, code="22023", words=words)
        bench.rows("DROP TABLE broken")
    record = json.dumps({"the '%s' photo": "\\x00"})
    with pytest.raises(psycopg2.Error, match="cannot be read as PNG or JPEG"):
        bench.value("SELECT cerebro.predict_row('signs', %s)", record)
    with pytest.raises(psycopg2.Error, match="expected a PNG or JPEG image, a bytea"):
        bench.value(
            "SELECT cerebro.predict_row('signs', %s)", json.dumps({"the '%s' photo": "\\xg"})
        )
    assert bench.value("SELECT cerebro.predict_row('signs', '{}')")["prediction"] in SHAPES


def test_what_a_guest_predicts_is_what_the_owner_does(
    bench: Workbench, shared_superuser: Workbench, signs: str
) -> None:
    bench.rows("GRANT SELECT ON signs TO PUBLIC")
    with another_role(bench, shared_superuser, "gallery") as guest:
        own_schema(shared_superuser, "gallery")
        guest.rows("CREATE TABLE gallery.seen AS TABLE signs; SET search_path = gallery, madlib")
        bench.rows("SELECT cerebro.grant_predict('signs', 'gallery')")
        assert guest.rows(PREDICTED.format("gallery.seen")) == bench.rows(PREDICTED.format("signs"))


@pytest.mark.postgresql("with files of images this was not tried on Greenplum")
def test_files_are_told_of_as_columns(bench: Workbench, signs: str) -> None:
    photo = COLUMN.strip('"')
    worth: dict[str, float] = dict(
        bench.rows("SELECT column_name, importance FROM cerebro.importance('signs', 'signs')")
    )
    assert worth[photo] > 0.3 > abs(worth["seen"])
    told = bench.rows(
        "SELECT id, attribution, patch FROM cerebro.attribution('signs', 'signs', 'id') WHERE "
        "column_name = %s",
        photo,
    )
    assert len([patch for _, _, patch in told if patch is None]) == ROWS and all(
        value is not None for _, value, _ in told
    )
    patches: dict[tuple[int, ...], list[float]] = {}
    for _, value, patch in told:
        if patch:
            patches.setdefault(tuple(patch), []).append(abs(value))
    pixels = [
        (y, x)
        for top, left, bottom, right in patches
        for y in range(top, bottom + 1)
        for x in range(left, right + 1)
    ]
    assert sorted(pixels) == [(y, x) for y in range(1, 25) for x in range(1, 25)]
    corners = sum(
        map(
            sum,
            (
                patches[patch]
                for patch in [(1, 1, 4, 4), (1, 21, 4, 24), (21, 1, 24, 4), (21, 21, 24, 24)]
            ),
        )
    )
    middle = sum(
        map(
            sum,
            (
                patches[patch]
                for patch in [(9, 9, 12, 12), (9, 13, 12, 16), (13, 9, 16, 12), (13, 13, 16, 16)]
            ),
        )
    )
    assert middle > 2 * corners, "there the shapes are"
    accuracy = "SELECT value FROM cerebro.evaluate('signs', 'signs') WHERE metric = 'accuracy'"
    assert bench.value(accuracy) > 0.8
    drift = (
        "SELECT training_missing, missing, psi FROM cerebro.drift('signs', 'signs') WHERE "
        "column_name = %s"
    )
    ((before, now, stability),) = bench.rows(drift, photo)
    assert before == pytest.approx(now, abs=0.03) and 0 < now < 0.1 and stability < 0.2


@pytest.mark.postgresql("with files of images this was not tried on Greenplum")
def test_a_version_comes_out_once_more_and_goes_on_with_new_files(
    bench: Workbench, signs: str
) -> None:
    assert all(ok for _, ok in bench.rows("SELECT what, ok FROM cerebro.verify('signs')"))
    inserted(bench, ROWS + 1, ROWS + 30)
    assert bench.rows(
        "SELECT version, training_rows + validation_rows FROM cerebro.refresh('signs', 'id')"
    ) == [(2, ROWS + 30)]


def test_a_plan_says_what_becomes_of_files(bench: Workbench, signs: str) -> None:
    bench.rows(
        "CREATE VIEW letters AS SELECT s.*, convert_to('letter ' || id, 'UTF8') AS letter FROM "
        "signs s"
    )
    rows = bench.rows(
        "SELECT name, what, why FROM cerebro.plan('letters', 'shape') WHERE section = 'column'"
    )
    told = {name: (what, why) for name, what, why in rows}
    assert (
        told[COLUMN.strip('"')][0]
        == "image of 24 x 24 x 3, made of each file; where it is missing is an input of its own"
    )
    assert told["letter"] == ("left out", "its values are no PNG or JPEG images")
    refused(
        bench,
        "SELECT * FROM cerebro.plan('signs', 'shape', types => '{\"the ''%s'' photo\": \"text\"}')",
        code="22023",
        words="'text'; expected image",
    )
    bench.rows("DROP VIEW letters")
