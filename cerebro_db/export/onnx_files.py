"""Export a model as an ONNX graph that takes raw numbers and category codes."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cerebro_db.errors import FeatureNotSupported
from cerebro_db.export.model_files import check_paths, format_description
from cerebro_db.export.onnx_converters import GRAPH, Conversion, choose_converter, convert
from cerebro_db.export.onnx_scales import add_scales
from cerebro_db.export.paths import stage_files
from cerebro_db.export.recipe.rows import CODES, RAW, RawRows
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.target_scale import KEY
from cerebro_db.export.trees.onnx_graph import add_trees, describe_inputs
from cerebro_db.export.trees.stored_trees import read_trees

ONNX = ".onnx"
CONVERTER = "onnx_converter"
"""Key of a description with the library that has converted the network."""
TREES_CONVERTER = "cerebro_db"
"""The value of this key for boosted trees, which no other library converts."""


def write_onnx(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Write an .onnx file, and the recipe to an .onnx.json file beside it; return both paths."""
    recipe_path = check_paths(path, ONNX, force)
    raw_rows = make_raw_rows(stored)  # refuses a model without a recipe
    trees = list(map(read_trees, stored.trees))
    if stored.architecture:
        choose_converter()
    with TemporaryDirectory(prefix="cerebro-") as temporary, stage_files(path.parent) as staging:
        folder = Path(temporary)
        if stored.architecture:
            conversion = convert(stored, folder)
        else:
            conversion = Conversion(describe_inputs(raw_rows, trees[0].spec), TREES_CONVERTER)
        if trees:
            add_trees(folder / GRAPH, trees, conversion.inputs)
        description = json.loads(format_description(stored, conversion.inputs))
        rows = RawRows(description)
        add_scales(folder / GRAPH, staging / path.name, rows, description.get(KEY))
        description["onnx_inputs"] = [_describe_input(name, rows) for name in rows.network_names]
        description[CONVERTER] = conversion.converter
        text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
        (staging / recipe_path.name).write_text(text)
    return [path, recipe_path]


def make_raw_rows(stored: StoredModel) -> RawRows:
    """Return the conversion of raw rows to inputs of the model.

    Raises:
        FeatureNotSupported: the model has no recipe.
    """
    if "features" not in stored.description:
        raise FeatureNotSupported(
            f"the model of table {stored.description['table']} has no recipe: it takes packed "
            "arrays, not raw columns",
            hint="Export it as Keras or safetensors; cerebro.register gives it a name and a "
            "recipe.",
        )
    return RawRows(stored.description)


def _describe_input(name: str, rows: RawRows) -> dict[str, Any]:
    """Return the name and the contents of an input of the graph, for the description."""
    raw = rows.scaled_inputs.get(name)
    if raw is not None:
        numbers = [[number.column, number.part] for number in raw.numbers]
        return {"name": RAW + name, "numbers": numbers}
    features = rows.categories if name == CODES else [rows.wide_features[name]]
    columns = [feature["column"] for feature in features]
    return {"name": rows.network_names[name], "columns": columns}
