"""Recipes without the database: of raw columns as Python has them comes what the database makes of
them.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow_models import check_registered, run_alone
from recipes import Session
from safetensors.numpy import load_file
from shops import COLUMNS, check_answers, check_onnx, columns, make_shops, train
from versions import HASHED, WHOLE_TABLE, encoded_table
from workbench import Workbench

import cerebro_db
from cerebro_db.export import recipe as standalone
from cerebro_db.export.recipe import text_hashing
from cerebro_db.export.recipe.rows import RawRows
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns

# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:column .* which the model does not know:UserWarning"),
    pytest.mark.filterwarnings("ignore:In the future `np:FutureWarning"),  # of tf2onnx, too
]
ODD = """
    CREATE TABLE odd AS
    SELECT n AS id,
           CASE WHEN n % 9 > 0 THEN (n * 7919 % 1000)::numeric / 7 END AS price,
           CASE n % 11 WHEN 0 THEN double precision 'NaN' WHEN 1 THEN 'Infinity' ELSE n * 1e-3 END
               AS far,
           (n % 100 * 12345678901)::bigint AS large, n % 2 = 0 AS fair,
           (ARRAY['é', 'b c', '', NULL])[n % 4 + 1] AS kind, md5((n % 2)::text)::uuid AS name,
           n % 5 AS few, (n % 3)::double precision / 2 AS half,
           CASE WHEN n % 6 > 0 THEN date '1969-12-20' + n * 37 % 5000 END AS day,
           timestamp '2019-12-31 23:59:59.5' + n * interval '1 hour 7 seconds' AS at,
           timestamptz '2020-02-28 22:00:00+03' + n * interval '90 minutes 0.25 seconds' AS moment,
           date '2020-01-01' + n % 3 AS season,
           timestamptz '2020-01-01 12:00:00.25+02' + n % 3 * interval '1 hour' AS turn,
           time '00:00' + n * interval '13 minutes' AS hour, n * interval '3 hours' AS took,
           CASE WHEN n % 10 > 0 THEN ARRAY[n % 7, NULLIF(n % 3, 0), -n] END AS three,
           CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN ARRAY[[1.5, n], [NULL, 3], [4, 5]]
                WHEN 2 THEN ARRAY[[n, 2], [3.25, n % 5]] ELSE
                ARRAY[[1, 2, 3], [4, n, 6]] END::real[] AS grid,
           CASE n % 5 WHEN 0 THEN to_jsonb(n) WHEN 1 THEN to_jsonb(n::text) WHEN 2 THEN 'true'
                WHEN 3 THEN to_jsonb(n / 8.0) END AS loose,
           (SELECT string_agg((ARRAY['Red', 'a-longer-WORD', 'it''s', 'Ärger', 'x_y',
                                      '東京タワーより高い'])
                              [(n * w) % 6 + 1] || chr(9) || (n * w) % 17, ', ')
                                  FROM generate_series(1, 12) w) AS said
    FROM generate_series(1, 240) AS n"""
TYPES = {
    "few": "category",
    "half": "category",
    "season": "category",
    "turn": "category",
    "grid": "image",
    "said": "text",
}
# In a process that has neither the database nor cerebro_db: a folder with the network, its recipe,
# and raw columns.
PLAIN = """
import json, pathlib, pickle, sys
sys.modules["cerebro_db"] = sys.modules["cerebro_plpy"] = None
import keras, numpy
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
from copied.rows import RawRows
rows, model = RawRows.of((folder / "it.keras.json").read_text()), keras.saving.load_model(folder /
    "it.keras")
told = rows.answers(model.predict(rows.inputs(pickle.loads((folder / "given").read_bytes())),
    verbose=0))
print(json.dumps(told.columns()))
"""


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[cerebro_db.Session]:
    make_shops(bench)
    with cerebro_db.connect(bench.url) as opened:
        yield opened


def test_inputs_are_those_of_the_database_to_the_bit(bench: Workbench) -> None:
    """Of every kind of column, in the zone of any session, from plain lists and from DataFrames."""
    bench.rows(ODD)
    bench.rows("SET timezone = 'America/New_York'")
    reader = Session(bench)
    known = [
        each
        for each in read_columns(reader, bench.value("SELECT 'odd'::regclass::oid"))
        if each.name != "id"
    ]
    recipe = fit_recipe(reader, Source("odd", WHOLE_TABLE, HASHED), known, TYPES)
    rows = RawRows.of(json.dumps(recipe.to_json()))
    assert {each["kind"] for each in rows.features} == {
        "number",
        "category",
        "moment",
        "vector",
        "image",
        "text",
    }
    names = encoded_table(bench, "odd_encoded", recipe, "odd", "id").split(", ")
    given = columns(bench, "odd", [each["column"] for each in rows.features])
    for form in (given, pd.DataFrame(given)):
        found = rows.inputs(form)
        assert list(found) == names
        for name in names:
            wanted = np.array(
                [row for (row,) in bench.rows(f"SELECT {name} FROM odd_encoded ORDER BY id")],
                np.float32,
            )
            different = np.flatnonzero((found[name].reshape(wanted.shape) != wanted).any(axis=0))
            assert not len(different), (name, different, recipe.numbers)


def test_words_have_the_numbers_that_the_server_gives_them(bench: Workbench) -> None:
    """Of every length modulo that of what the hash takes at a time."""
    texts = ["".join(chr(97 + (n * k) % 26) for k in range(n)) + "é" * (n % 3) for n in range(40)]
    told = bench.rows(
        "SELECT hashtextextended(t, 0) FROM unnest(%s::text[]) WITH ORDINALITY AS u (t, n) ORDER "
        "BY n",
        texts,
    )
    assert [text_hashing.hash_word(text, 1 << 20) for text in texts] == [
        (h & text_hashing.POSITIVE) % (1 << 20) + 1 for (h,) in told
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "target", "templates", "epochs"),
    [
        ("opening", "open", ("realmlp_simple", "linear", "resnet"), 1),
        ("skewing", "skewed", ("realmlp", "linear"), 4),
    ],
    ids=["opening", "skewing"],
)
def test_a_file_and_its_recipe_predict_raw_rows_like_the_database(
    bench: Workbench,
    session: cerebro_db.Session,
    tmp_path: Path,
    source: str,
    target: str,
    templates: tuple[str, ...],
    epochs: int,
) -> None:
    """Of ensembles, which have more than one network.

    These seeds make one of the held-back rows; predictions for folds could choose a single network.
    """
    effort = {"configs": len(templates), "ensemble": 5, "epochs": epochs}
    train(bench, source, source, target, *templates, **effort)
    session.export_keras(source, tmp_path / "it.keras")
    shutil.copytree(Path(standalone.__file__).parent, tmp_path / "copied")
    given = columns(bench, f"{source}_later", list(COLUMNS))
    (tmp_path / "given").write_bytes(pickle.dumps(given))
    assert (
        bench.value("SELECT template FROM cerebro.model_version WHERE model = %s", source)
        == "ensemble"
    )
    check_answers(bench, source, f"{source}_later", run_alone(PLAIN, tmp_path, folder=tmp_path))
    check_onnx(bench, session, source, f"{source}_later", tmp_path)
    if source == "opening":  # MLflow runs the same rows.py, and takes longer than all else here
        check_registered(bench, source, tmp_path)
        check_folder(session, source, tmp_path)


def check_folder(session: cerebro_db.Session, source: str, tmp_path: Path) -> None:
    """A folder has the same recipe, and the weights of each member by layer."""
    folder = tmp_path / "folder"
    paths = session.export_safetensors(source, folder)
    assert {path.name for path in folder.iterdir()} == {path.name for path in paths}
    weights = load_file(folder / "weights.safetensors")
    assert any(name.startswith("member_2/") for name in weights)
    assert json.loads((folder / "recipe.json").read_text()) == json.loads(
        (tmp_path / "it.keras.json").read_text()
    )
