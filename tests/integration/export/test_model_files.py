"""Models as files: plain Keras, in a process with nothing of ours, says what the database says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
from commands import called
from roles import another_role
from shops import check_onnx, make_shops, train
from versions import encoded_table
from workbench import Workbench, several

import cerebro_db
from cerebro_db import errors
from cerebro_plpy.configs.templates.registry import NETWORK_TEMPLATES as KNOWN
from cerebro_plpy.preprocessing.recipe.recipe import Recipe

FIT_WORKERS = 1
PLAIN = """
import pathlib, sys
import numpy as np
import keras
for folder in map(pathlib.Path, sys.argv[1:]):
    model = keras.saving.load_model(folder / "it.keras", safe_mode=True)
    given = np.load(folder / "given.npz")
    np.save(folder / "out.npy", model.predict({each.name: given[each.name] for each in
        model.inputs}, verbose=0))
"""
TEMPLATES = [template.name for template in KNOWN]
IN_ENSEMBLES = ("realmlp", "linear")
"""Those that `test_recipes` has in ensembles, which it exports in every form."""
WRITTEN = ["recipe.json", "architecture.json", "weights.safetensors"]
# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:column .* which the model does not know:UserWarning"),
    pytest.mark.filterwarnings("ignore:In the future `np:FutureWarning"),  # of tf2onnx, too
]


@pytest.fixture(scope="module")
def shops(bench: Workbench) -> str:
    return make_shops(bench)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[cerebro_db.Session]:
    """A session with a model table of two keys, of which one has a name, and so a recipe of the
    array as it is.
    """
    bench.pack("points_packed", 2)
    bench.configure("points_configs", several(2))
    bench.fit("points_packed", "points_model", "points_configs", 1, seed=1)
    with cerebro_db.connect(bench.url) as opened:
        opened.register("small", "points_model", 2)
        yield opened


def inputs(bench: Workbench, recipe: Recipe, source: str, path: Path) -> list[str]:
    """What the database makes of the rows of a table by a recipe, as a file of arrays; the ids of
    the rows.
    """
    bench.rows("DROP TABLE IF EXISTS encoded")
    names = encoded_table(bench, "encoded", recipe, source, "id").split(", ")
    rows = bench.rows(f"SELECT id::text, {', '.join(names)} FROM encoded ORDER BY id")
    columns = zip(names, zip(*(row[1:] for row in rows), strict=True), strict=True)
    arrays = {name: np.array(values, np.float32).reshape(len(rows), -1) for name, values in columns}
    np.savez(path, allow_pickle=False, **arrays)
    return [row[0] for row in rows]


def plain_keras(*folders: Path) -> None:
    """Predicts for what is given in folders, in a process that has Keras alone."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAIN, *folders], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def export(
    bench: Workbench, session: cerebro_db.Session, model: str, source: str, folder: Path
) -> list[str]:
    """Exports a model with the inputs of the rows of a table; their ids."""
    _, beside = session.export_keras(model, folder / "it.keras")
    features = json.loads(beside.read_text())["features"]
    return inputs(
        bench, Recipe.from_json({"version": 1, "features": features}), source, folder / "given.npz"
    )


def check(bench: Workbench, model: str, source: str, ids: list[str], folder: Path) -> None:
    """What plain Keras has said is what the database says."""
    found, told = np.load(folder / "out.npy"), json.loads((folder / "it.keras.json").read_text())
    rows = bench.rows(
        "SELECT id, prediction, probabilities FROM cerebro.predict(%s, %s, id_col => 'id')",
        model,
        source,
    )
    said = {row[0]: row for row in rows}
    if told["task"] == "regression":
        expected = np.array([float(said[name][1]) for name in ids])
        assert np.allclose(found[:, 0], expected, rtol=1e-6, atol=1e-6)
    else:
        expected = np.array([[said[name][2][label] for label in told["classes"]] for name in ids])
        assert np.abs(found - expected).max() < 1e-6


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "target", "templates"),
    [("opening", "open", TEMPLATES[::2]), ("turning", "turnover", TEMPLATES[1::2])],
    ids=["classes", "numbers"],
)
@pytest.mark.usefixtures("shops")
def test_plain_keras_says_what_the_database_says(
    bench: Workbench,
    session: cerebro_db.Session,
    tmp_path: Path,
    source: str,
    target: str,
    templates: list[str],
) -> None:
    """Of every template: half of them predict classes here, and the others numbers."""
    ids = {}
    for template in templates:
        train(bench, template, source, target, template)
        ids[template] = export(bench, session, template, source, tmp_path / template)
    plain_keras(*(tmp_path / template for template in ids))
    for template, names in ids.items():
        check(bench, template, source, names, tmp_path / template)
        if template not in IN_ENSEMBLES:
            check_onnx(bench, session, template, f"{source}_later", tmp_path / template)
        bench.rows("SELECT cerebro.drop_model(%s)", template)


def test_a_model_of_a_table_is_named_by_its_key(
    bench: Workbench,
    session: cerebro_db.Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench.rows("SELECT madlib_predict('points_model', 'points', 'id', 'x', 'told', mst_key => 2)")
    _, beside = session.export_keras("points_model:2", tmp_path / "it.keras")
    rows = bench.rows("SELECT x FROM points ORDER BY id")
    (taken,) = json.loads(beside.read_text())["network_inputs"]
    network = keras.saving.load_model(tmp_path / "it.keras", safe_mode=True)
    assert [each.name for each in network.inputs] == [taken["name"]]
    found = network.predict(np.array([x for (x,) in rows], np.float32), verbose=0)
    said = bench.rows("SELECT prob FROM told ORDER BY id, class_value")
    assert np.abs(found.reshape(-1) - np.array([p for (p,) in said])).max() < 1e-6
    for converter, name in (("torch", "PyTorch"), ("tensorflow", "TensorFlow")):
        monkeypatch.setenv("KERAS_BACKEND", converter)
        check_onnx(bench, session, "small", "points", tmp_path / converter)
        description = json.loads((tmp_path / converter / "small.onnx.json").read_text())
        assert description["onnx_converter"].startswith(name)
    for export in (session.export_onnx, session.export_registered):
        with pytest.raises(errors.FeatureNotSupported, match="points_model has no recipe"):
            export("points_model:2", f"sqlite:///{tmp_path}/it.onnx")
    with pytest.raises(errors.UndefinedObject, match="mst_key 9"):
        session.export_keras("points_model:9", tmp_path / "other.keras")


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    bench: Workbench,
    session: cerebro_db.Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "small.keras"
    for model, version in (("none", None), ("small", 7)):
        with pytest.raises(errors.UndefinedObject, match="you have no model"):
            session.export_keras(model, path, version=version)
    with pytest.raises(errors.InvalidParameter, match=r"ends in \.keras"):
        session.export_keras("small", tmp_path / "small.h5")
    with pytest.raises(errors.InvalidParameter, match=r"ends in \.onnx"):
        session.export_onnx("small", tmp_path / "small.keras")
    with pytest.raises(errors.InvalidParameter, match="has / or :"):
        session.export_registered("small", f"sqlite:///{tmp_path}/store.db", name="a/b")
    assert not [*tmp_path.iterdir()]
    session.export_keras("small", path)
    with pytest.raises(errors.DuplicateObject, match="exists already"):
        session.export_keras("small", path)
    beside = tmp_path / "small.keras.json"
    assert session.export_keras("small", path, force=True) == [path, beside]
    assert {*tmp_path.iterdir()} == {path, beside}
    description = beside.read_text()
    graph = path.with_suffix(".onnx")
    monkeypatch.delenv("KERAS_BACKEND", raising=False)  # tests of Keras set it
    told = called("export", "onnx", "small", "-o", graph, "--url", bench.url)
    assert told.stdout.split() == [str(graph), f"{graph}.json"]
    assert told.stderr.startswith("Converted to ONNX with PyTorch") and told.stderr.count("\n") == 1
    assert {*tmp_path.iterdir()} == {path, beside, graph, Path(f"{graph}.json")}
    assert beside.read_text() == description, "each format has a recipe of its own"


def test_a_table_that_no_fit_has_written_is_not_exported(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    """Its weights are not whole numbers of four bytes, or it has no architecture, or no summary."""
    described = {
        "'{}', 'abc'": "3 bytes of weights and an",
        "NULL, 'abcd'": "no architecture",
        "'{}', 'abcd'": "0 rows",
    }
    bench.rows("CREATE TABLE own_summary (dependent_varname text)")
    for values, words in described.items():
        bench.rows("CREATE TABLE own (model_arch json, model_weights bytea)")
        bench.rows(f"INSERT INTO own VALUES ({values})")
        with pytest.raises(errors.DataCorrupted, match=words):
            session.export_keras("own", tmp_path / "own.keras")
        bench.rows("DROP TABLE own")
    assert not [*tmp_path.iterdir()]


def test_the_command_line_writes_the_same_and_says_what_is_wrong(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    folder = tmp_path / "small"
    told = called(
        "export", "safetensors", "small", "-o", folder, "--version", 1, "--url", bench.url
    )
    assert told.returncode == 0 and told.stdout.split() == [str(folder / name) for name in WRITTEN]
    again = called("export", "safetensors", "small", "-o", folder, "--url", bench.url)
    assert (
        again.returncode == 1
        and "exists already" in again.stderr
        and "Traceback" not in again.stderr
    )
    assert (
        called(
            "export", "safetensors", "small", "-o", folder, "--url", bench.url, "--force"
        ).returncode
        == 0
    )
    session.export_safetensors("small", tmp_path / "own")
    assert all(
        (tmp_path / "own" / path.name).read_bytes() == path.read_bytes()
        for path in folder.iterdir()
    )


def test_a_library_that_is_missing_is_named_with_its_extra(
    session: cerebro_db.Session, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "keras", None)
        with pytest.raises(errors.MissingLibrary, match="keras") as found:
            session.export_keras("small", tmp_path / "it.keras")
    assert found.value.name == "keras" and ".[export,tensorflow]" in str(found.value.hint)
    assert not [*tmp_path.iterdir()]


def test_who_has_no_right_to_a_model_cannot_export_it(
    bench: Workbench, session: cerebro_db.Session, shared_superuser: Workbench, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.keras"
    with (
        another_role(bench, shared_superuser, "exporter") as other,
        cerebro_db.connect(other.url) as stranger,
    ):
        with pytest.raises(errors.UndefinedObject, match="you have no model"):
            stranger.export_keras("small", path)
        session.grant_predict("small", "exporter")
        with pytest.raises(errors.InsufficientPrivilege, match="granted predictions"):
            stranger.export_keras("small", path)
        bench.rows(
            "CREATE TABLE public.closed AS SELECT 1 AS mst_key, '{}'::json AS model_arch, "
            "'a'::bytea AS model_weights"
        )
        with pytest.raises(
            errors.InsufficientPrivilege, match="permission denied for table closed"
        ):
            stranger.export_keras("public.closed:1", path)
        session.revoke_predict("small", "exporter")
    assert not path.exists()
