"""What can be trained on beside arrays of numbers: images, tokens, integers; and fit parameters,
end to end.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence

import numpy as np
import psycopg2
import pytest
from models import CLASSES, dense, layer, perceptron, sequential
from packed import FLOATS, bag, buffers, examples, pack
from PIL import Image
from roles import refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
ADAM = "Adam(learning_rate=0.05)"
PICTURES = sequential(
    [6, 5, 3],
    layer("Conv2D", "convolution", filters=4, kernel_size=[3, 3], activation="relu"),
    layer("Flatten", "flat"),
    dense(2, "output", "softmax"),
)
TEXTS = sequential(
    [4],
    layer("Embedding", "tokens", input_dim=50, output_dim=4),
    layer("GlobalAveragePooling1D", "mean"),
    dense(2, "output", "softmax"),
)


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    """An image file."""
    output = io.BytesIO()
    Image.fromarray(pixels).save(output, kind)
    return output.getvalue()


def pixels(number: int) -> np.ndarray:
    """A picture of the odd or the even kind."""
    made = np.random.default_rng(number).integers(0, 60, (6, 5, 3)).astype(np.uint8)
    made[:, :, number % 2] += 150
    return made


def table(bench: Workbench, name: str, files: Sequence[bytes | None]) -> str:
    """A table of these images; its name."""
    bench.rows(f"CREATE TABLE {name} (id integer, image bytea, kind text)")
    for number, file in enumerate(files):
        bench.rows(
            f"INSERT INTO {name} VALUES (%s, %s, %s)", number, file, "odd" if number % 2 else "even"
        )
    return name


@pytest.fixture(scope="module")
def pictures(bench: Workbench) -> Iterator[str]:
    """Forty PNG images, and beside them their pixels as an array."""
    yield table(bench, "pictures", [encoded(pixels(number)) for number in range(40)])


def test_images_are_packed_as_the_arrays_of_their_pixels_are(
    bench: Workbench, pictures: str
) -> None:
    bench.rows("CREATE TABLE pixels (id integer, image real[], kind text)")
    for number in range(40):
        bench.rows(
            "INSERT INTO pixels VALUES (%s, %s, %s)",
            number,
            pixels(number).tolist(),
            "odd" if number % 2 else "even",
        )
    how = {"buffer_size": 7, "normalizing_const": 255, "n_segments": 2, "seed": 5}
    found = [
        buffers(bench, pack(bench, source, "kind", "image", **how), image=FLOATS, kind="<i2")
        for source in (pictures, "pixels")
    ]
    assert bag(examples(found[0])) == bag(examples(found[1]))
    assert [[a.tobytes() for a in b.arrays] for b in found[0]] == [
        [a.tobytes() for a in b.arrays] for b in found[1]
    ]
    assert found[0][0].arrays[0].shape[1:] == (6, 5, 3)


@pytest.mark.long
def test_images_are_trained_on_and_predicted(bench: Workbench, pictures: str) -> None:
    bench.rows(
        "SELECT training_preprocessor_dl(%s, 'pictures_packed', 'kind', 'image', 10, 255, "
        "n_segments => 2, seed => 3)",
        pictures,
    )
    bench.configure(
        "pictures_configs", [compile_text(ADAM)], ["batch_size=8,epochs=3"], bench.model(PICTURES)
    )
    bench.fit("pictures_packed", "seen", "pictures_configs", 4, seed=1)
    assert bench.value("SELECT training_metrics_final FROM seen_info") == 1.0
    fresh = table(bench, "fresh_pictures", [encoded(pixels(100 + number)) for number in range(10)])
    bench.rows(
        "SELECT madlib_predict('seen', %s, 'id', 'image', 'guesses', 'response', mst_key => 1)",
        fresh,
    )
    assert bench.value(
        "SELECT bool_and(class_value = kind) FROM guesses JOIN fresh_pictures USING (id)"
    )
    for name, file, words in [
        (
            "small",
            encoded(pixels(1)[:4]),
            r"shape \[6, 5, 3\], but the data have shape \[4, 5, 3\]",
        ),
        ("broken", encoded(pixels(1))[:60], "cannot be read as PNG or JPEG"),
        ("no_image", None, "NULL"),
    ]:
        with pytest.raises(psycopg2.Error, match=words):
            bench.rows(
                "SELECT madlib_predict('seen', %s, 'id', 'image', 'no_guesses', mst_key => 1)",
                table(
                    bench,
                    f"{name}_pictures",
                    [encoded(pixels(2)) if file and name == "broken" else file, file],
                ),
            )


@pytest.mark.parametrize("size", [None, 1], ids=["one buffer", "a buffer each"])
def test_images_of_several_shapes_are_told(bench: Workbench, size: int | None) -> None:
    grey = encoded(pixels(3)[..., 0])
    name = table(bench, f"uneven_{size}", [*[encoded(pixels(n)) for n in range(5)], grey])
    query = (
        "SELECT training_preprocessor_dl(%s, 'uneven_packed', 'kind', 'image', %s, n_segments => 1)"
    )
    error = refused(bench, query, name, size, code="22023")
    assert "6x5x3 (5" in str(error.diag.message_detail) and "6x5x1 (1" in str(
        error.diag.message_detail
    )
    if size is None:
        digest = bench.value("SELECT md5(%s::bytea)", grey)
        assert f"md5(image) = '{digest}'" in str(error.diag.message_hint)
    assert not bench.exists("uneven_packed", "uneven_packed_summary")


def test_a_damaged_image_can_be_found(bench: Workbench) -> None:
    name = table(
        bench, "damaged", [encoded(pixels(1)), encoded(pixels(2))[:80], encoded(pixels(3), "JPEG")]
    )
    pack_it = "SELECT training_preprocessor_dl(%s, 'damaged_packed', 'kind', 'image')"
    error = refused(bench, pack_it, name, code="22023", words="column image")
    condition = (
        str(error.diag.message_hint).removeprefix("Such a row is found by ").removesuffix(".")
    )
    assert bench.rows(f"SELECT id FROM {name} {condition}") == [(1,)]


@pytest.mark.parametrize(
    ("kind", "value"), [("integer[]", 2**24 + 1), ("bigint[]", 2**40 + 1), ("bigint", 2**24 + 1)]
)
def test_integers_that_would_become_others_are_refused(
    bench: Workbench, kind: str, value: int
) -> None:
    given, real = (
        (f"ARRAY[1, {value}]::{kind}", "real[]") if "[" in kind else (f"{value}::{kind}", "real")
    )
    bench.rows(f"CREATE VIEW large AS SELECT {given} AS x, {given}::{real} AS r, 'a' AS y")
    pack_it = "SELECT training_preprocessor_dl('large', 'large_packed', 'y', 'x')"
    error = refused(bench, pack_it, code="22003", words=str(value))
    assert "Cast the column to real" in str(error.diag.message_hint)
    rounded = buffers(bench, pack(bench, "large", "y", "r"), r=FLOATS)
    divided = buffers(bench, pack(bench, "large", "y", "x", normalizing_const=1000), x=FLOATS)
    assert rounded[0].arrays[0].ravel()[-1] == np.float32(value)
    assert divided[0].arrays[0].ravel()[-1] == np.float32(value) / np.float32(1000)
    bench.rows("DROP VIEW large")


def test_tokens_are_trained_on_and_predicted(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE texts AS SELECT id, ARRAY[id % 10, id % 7, 20 + id % 9, 25 * (id % 2)] AS "
        "tokens, CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS kind FROM generate_series(1, "
        "60) id"
    )
    bench.pack("texts_packed", 2, source="texts", target="kind", inputs="tokens")
    bench.configure(
        "texts_configs", [compile_text(ADAM)], ["batch_size=8,epochs=4"], bench.model(TEXTS)
    )
    bench.fit("texts_packed", "read", "texts_configs", 5, seed=1)
    assert bench.value("SELECT training_metrics_final FROM read_info") == 1.0
    bench.rows(
        "SELECT madlib_predict('read', 'texts', 'id', 'tokens', 'readings', 'response', mst_key "
        "=> 1)"
    )
    assert bench.value("SELECT bool_and(class_value = kind) FROM readings JOIN texts USING (id)")


def test_a_token_beyond_the_vocabulary_fails_the_config_by_name(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE rare AS SELECT id, ARRAY[1, 2, 3, id + 10] AS tokens, id % 2 AS y FROM "
        "generate_series(1, 60) id"
    )
    bench.pack("rare_packed", 2, source="rare", target="y", inputs="tokens")
    bench.configure("rare_configs", [compile_text(ADAM)], model=bench.model(TEXTS))
    with pytest.raises(psycopg2.Error, match=r"has 50 embedded tokens, but \d+ stands for a token"):
        bench.fit("rare_packed", "rare_model", "rare_configs", 1)


@pytest.mark.long
def test_numbers_of_classes_as_floats(bench: Workbench) -> None:
    """A sparse loss wants no one-hot targets: as many units as classes over a single number."""
    bench.rows(
        "CREATE TABLE numbered AS SELECT id, x, array_position('{low,middle,high}', label) - 1 AS "
        "y FROM points"
    )
    bench.pack("numbered_packed", 2, source="numbered", target="y", kind="float")
    compiled = compile_text(
        ADAM, "sparse_categorical_crossentropy", ["sparse_categorical_accuracy"]
    )
    bench.configure("numbered_configs", [compiled], ["batch_size=8,epochs=5"])
    bench.fit("numbered_packed", "numbered_model", "numbered_configs", 5, seed=1)
    assert bench.value("SELECT training_metrics_final FROM numbered_model_info") > 0.8


@pytest.mark.long
def test_class_weights_lean_a_model_towards_a_class(bench: Workbench) -> None:
    """By number in the order of the class values; all of one are as none."""
    bench.pack("weighted_packed", 2)
    found: list[tuple[float, dict[str, int]]] = []
    for name, given in {
        "none": "",
        "ones": ",class_weight={0: 1, 1: 1.0}",
        "low": ",class_weight={1: 50, 0: 0.01}",
    }.items():
        bench.configure(f"{name}_configs", [compile_text(ADAM)], [f"batch_size=8,epochs=4{given}"])
        bench.fit("weighted_packed", name, f"{name}_configs", 3, seed=1, schedule="rotation")
        bench.rows(
            f"SELECT madlib_predict('{name}', 'points', 'id', 'x', '{name}_guesses', 'response', "
            "mst_key => 1)"
        )
        guesses = bench.rows(
            f"SELECT class_value, count(*) FROM {name}_guesses GROUP BY 1 ORDER BY 1"
        )
        found.append((bench.value(f"SELECT training_loss_final FROM {name}_info"), dict(guesses)))
    assert bench.value("SELECT label_class_values FROM none_summary") == ["high", "low", "middle"]
    (without, plain), (of_ones, same), (_, leaning) = found
    assert of_ones == pytest.approx(without, rel=1e-4) and plain == same
    low = bench.value("SELECT count(*) FROM points WHERE label = 'low'")
    assert leaning["low"] > low and "high" not in leaning


def test_class_weights_of_a_class_that_is_not_there(bench: Workbench) -> None:
    bench.pack("two_packed", 2, target="positive")
    fits = ["class_weight={0: 1.0, 2: 4.0}"]
    bench.configure(
        "two_configs",
        [compile_text(ADAM, "binary_crossentropy")],
        fits,
        bench.model(perceptron(1, "sigmoid")),
    )
    fit = "SELECT madlib_fit_multiple_model('two_packed', 'o', 'two_configs', 1)"
    error = refused(bench, fit, code="22023", words="class 2")
    assert "false, true" in str(error.diag.message_detail)


def test_passes_and_steps_are_counted_as_in_keras(bench: Workbench) -> None:
    """Rows of a visit: 48 a segment, six batches of eight in buffers of eight."""
    bench.pack("counted_packed", 2)
    fits = [
        "batch_size=8,epochs=5,initial_epoch=3",
        "batch_size=8,steps_per_epoch=4",
        "batch_size=8,steps_per_epoch=90",
    ]
    bench.configure("counted_configs", [compile_text()], fits, bench.model(CLASSES))
    bench.messages()
    run = bench.fit("counted_packed", "counted", "counted_configs", 1, seed=1)
    rows = bench.rows(
        "SELECT DISTINCT mst_key, rows FROM cerebro.visit WHERE run_id = %s ORDER BY 1", run
    )
    assert rows == [(1, 96), (2, 32), (3, 48)]
    said = [message for message in bench.messages() if "steps_per_epoch" in message]
    assert len(said) == 1 and "mst_key=3" in said[0] and "steps_per_epoch=90" in said[0]
    params = bench.value("SELECT params FROM cerebro.config WHERE run_id = %s AND mst_key = 1", run)
    assert "initial_epoch=3" in json.dumps(params)
