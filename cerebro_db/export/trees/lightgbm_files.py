"""Export boosted trees as LightGBM's text, with the recipe of their columns."""

from __future__ import annotations

import json
from pathlib import Path

from cerebro_db.export.model_files import check_paths, format_description
from cerebro_db.export.onnx_files import make_raw_rows
from cerebro_db.export.paths import stage_files
from cerebro_db.export.recipe.tree_columns import KEY
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.trees.model.model_text import write_model
from cerebro_db.export.trees.onnx_graph import describe_inputs
from cerebro_db.export.trees.stored_trees import name_columns, read_single_trees

SUFFIX = ".txt"


def write_lightgbm(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Write a .txt file for LightGBM, and the recipe to a .txt.json file; return both paths."""
    recipe_path = check_paths(path, SUFFIX, force)
    trees = read_single_trees(stored)
    rows = make_raw_rows(stored)
    text = write_model(trees.spec, trees.forest, name_columns(rows, trees.spec))
    description = json.loads(format_description(stored, describe_inputs(rows, trees.spec)))
    description[KEY] = json.loads(stored.trees[0].architecture)["config"]
    with stage_files(path.parent) as staging:
        (staging / path.name).write_text(text)
        content = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
        (staging / recipe_path.name).write_text(content)
    return [path, recipe_path]
