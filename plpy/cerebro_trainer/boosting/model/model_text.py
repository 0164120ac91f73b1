"""LightGBM's text format: a writer of checked trees, and a reader of trees that were just grown.

LightGBM's own reader crashes on texts that are wrong, so it only gets texts that this module has
written. The first round of a text is the base, as trees of one leaf: so the text predicts by
itself, and adds in the same order.

The client has this module by a link, so its imports are relative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .forest import CATEGORY, Array, Forest, Tree
from .spec import TreesSpec

Section = Mapping[str, str]
"""The values of a tree by their names."""
MAX_THRESHOLD = float(np.finfo(np.float64).max)
"""LightGBM splits missing values from all others by an infinite threshold."""
UNKNOWN_RANGE = "none"


def write_model(spec: TreesSpec, forest: Forest, names: Sequence[str] = ()) -> str:
    """Return the text of checked trees.

    Args:
        names: names of the columns, without spaces.
    """
    sections = [_write_constant(value) for value in forest.base.tolist()]
    sections += write_rounds(forest, 0, forest.rounds)
    return join_trees(spec, sections, names or name_columns(spec.inputs.columns))


def write_rounds(forest: Forest, first_round: int, end: int) -> list[str]:
    """Return the sections of the trees of rounds, without the round `end`."""
    positions = range(first_round * forest.outputs, end * forest.outputs)
    return [_write_tree(forest.get_tree(position)) for position in positions]


def name_columns(columns: int) -> list[str]:
    """Return the names that LightGBM gives to columns."""
    return [f"Column_{number}" for number in range(columns)]


def join_trees(spec: TreesSpec, sections: Sequence[str], names: Sequence[str]) -> str:
    """Return the text of the sections of trees.

    Args:
        names: names of the columns, without spaces.
    """
    trees = [f"Tree={number}\n{section}\n\n\n" for number, section in enumerate(sections)]
    head = {
        "version": "v4",
        "num_class": str(spec.outputs),
        "num_tree_per_iteration": str(spec.outputs),
        "label_index": "0",
        "max_feature_idx": str(len(names) - 1),
        "objective": format_objective(spec),
        "feature_names": " ".join(names),
        "feature_infos": " ".join([UNKNOWN_RANGE] * len(names)),
        "tree_sizes": " ".join(str(len(tree.encode())) for tree in trees),
    }
    lines = "".join(f"{name}={value}\n" for name, value in head.items())
    return (
        f"tree\n{lines}\n{''.join(trees)}end of trees\n\nfeature_importances:\n\n"
        "parameters:\nend of parameters\n\npandas_categorical:null\n"
    )


def format_objective(spec: TreesSpec) -> str:
    """Return the objective, which decides how scores become predictions."""
    if spec.has_logarithms:
        return "poisson"
    if spec.units == 1:
        return "regression"
    if spec.outputs == 1:
        return "binary sigmoid:1"
    return f"multiclass num_class:{spec.outputs}"


def _write_constant(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={value!r}\nis_linear=0\nshrinkage=1"


def _write_tree(tree: Tree) -> str:
    if tree.leaves == 1:
        return _write_constant(float(tree.values[0]))
    categories = np.flatnonzero(tree.decisions & CATEGORY)
    thresholds = tree.thresholds.copy()
    thresholds[categories] = np.arange(len(categories))
    lines = {
        "num_leaves": str(tree.leaves),
        "num_cat": str(len(categories)),
        "split_feature": _format(tree.features),
        "split_gain": _format(np.zeros(tree.leaves - 1, np.int64)),
        "threshold": _format(thresholds),
        "decision_type": _format(tree.decisions),
        "left_child": _format(tree.left),
        "right_child": _format(tree.right),
        "leaf_value": _format(tree.values),
        "leaf_count": _format(tree.counts),
        "internal_count": _format(count_node_rows(tree)),
    }
    if len(categories):
        words = tree.sets.shape[1]
        lines["cat_boundaries"] = _format(np.arange(len(categories) + 1) * words)
        lines["cat_threshold"] = _format(tree.sets[categories].reshape(-1))
    lines |= {"is_linear": "0", "shrinkage": "1"}
    return "\n".join(f"{name}={value}" for name, value in lines.items())


def _format(values: Array) -> str:
    return " ".join(map(repr, values.tolist()))


def count_node_rows(tree: Tree) -> Array:
    """Return the rows of each node: the sum of its leaves."""
    nodes = tree.leaves - 1
    rows = np.zeros(nodes, np.int64)
    for node in range(nodes - 1, -1, -1):  # children come after their parents
        for child in (int(tree.left[node]), int(tree.right[node])):
            if child < 0:
                rows[node] += tree.counts[~child]
            else:
                rows[node] += rows[child]
    return rows


def read_trees(text: str, set_words: int) -> Iterator[Tree]:
    """Yield the trees of a text that LightGBM has written in this process.

    Args:
        set_words: words that a set of codes has room for.
    """
    body = text.partition("\nend of trees")[0]
    for section in body.split("\nTree=")[1:]:
        pairs = (line.partition("=") for line in section.splitlines()[1:])
        yield _read_tree({name: value for name, _, value in pairs}, set_words)


def _read_tree(section: Section, set_words: int) -> Tree:
    leaves = int(section["num_leaves"])
    nodes = leaves - 1
    if not nodes:
        empty = np.zeros(0)
        return Tree(
            features=empty.astype(np.uint16),
            thresholds=empty,
            left=empty.astype(np.int16),
            right=empty.astype(np.int16),
            decisions=empty.astype(np.uint8),
            sets=np.zeros((0, set_words), np.uint32),
            values=np.array([float(section["leaf_value"])]),
            counts=np.zeros(1, np.int32),
        )
    decisions = np.array(section["decision_type"].split(), np.uint8)
    thresholds = np.array(section["threshold"].split(), np.float64)
    sets = np.zeros((nodes, set_words), np.uint32)
    categories = np.flatnonzero(decisions & CATEGORY)
    if len(categories):
        boundaries = _read_integers(section["cat_boundaries"])
        words = _read_integers(section["cat_threshold"])
        for node, position in zip(categories, thresholds[categories].astype(int), strict=True):
            part = words[boundaries[position] : boundaries[position + 1]]
            sets[node, : len(part)] = part
        thresholds[categories] = 0
    return Tree(
        features=np.array(section["split_feature"].split(), np.uint16),
        thresholds=np.clip(thresholds, -MAX_THRESHOLD, MAX_THRESHOLD),
        left=np.array(section["left_child"].split(), np.int16),
        right=np.array(section["right_child"].split(), np.int16),
        decisions=decisions,
        sets=sets,
        values=np.array(section["leaf_value"].split(), np.float64),
        counts=np.array(section["leaf_count"].split(), np.int32),
    )


def _read_integers(text: str) -> list[int]:
    return list(map(int, text.split()))
