"""scikit-learn over a table, as somebody would who knows it: a pipeline, tuned at random, fitted
once more.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

CLASSIFICATION, REGRESSION = "classification", "regression"
HELD_OUT = 0.2
MOST_ONE_HOT, MOST_ORDINAL = 100, 200
LAYERS = ((64,), (128,), (128, 64), (256, 128), (256, 256))
Values = npt.NDArray[Any]
Make = Callable[[pandas.DataFrame, str, np.random.RandomState], Any]


def score(task: str, truth: Values, predicted: Values) -> float:
    """Accuracy; or RMSE with its sign turned, so that more is better."""
    if task == CLASSIFICATION:
        return float(accuracy_score(truth, predicted))
    return -float(root_mean_squared_error(truth, predicted))


def tuned(
    make: Make, rows: pandas.DataFrame, targets: Values, task: str, seconds: float, seed: int
) -> Any:
    """The best pipeline of those drawn within so many seconds, fitted to all rows; at least one is
    drawn.
    """
    random, began = np.random.RandomState(seed), time.monotonic()
    stratify = (
        targets
        if task == CLASSIFICATION and np.unique(targets, return_counts=True)[1].min() > 1
        else None
    )
    parts = train_test_split(
        rows, targets, test_size=HELD_OUT, random_state=seed, stratify=stratify
    )
    learned, held, learned_targets, held_targets = parts
    best: tuple[float, Any] | None = None
    while best is None or time.monotonic() - began < seconds:
        drawn = make(rows, task, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networks that have not converged
            found = score(task, held_targets, drawn.fit(learned, learned_targets).predict(held))
        if best is None or found > best[0]:
            best = (found, drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return best[1].fit(rows, targets)


def mlp(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Numbers with means for what is missing, standardised; categories as columns of zeros and
    ones.
    """
    settings = {
        "hidden_layer_sizes": LAYERS[random.randint(len(LAYERS))],
        "alpha": 10 ** random.uniform(-6, 0),
        "learning_rate_init": 10 ** random.uniform(-4, -2),
        "early_stopping": True,
        "max_iter": 200,
        "random_state": random.randint(1000),
    }
    regressor = TransformedTargetRegressor(MLPRegressor(**settings), transformer=StandardScaler())
    model = MLPClassifier(**settings) if task == CLASSIFICATION else regressor
    return make_pipeline(_as_numbers(rows), model)


def encoded(rows: pandas.DataFrame, learned: Values) -> Values:
    """Rows as the numbers that such a network is given; what is learned of them is of those that
    are `learned`.
    """
    inputs = numeric(rows)
    found = _as_numbers(inputs).fit(inputs[learned]).transform(inputs)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def boosting(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Numbers as they are; categories as numbers."""
    codes = {
        "handle_unknown": "use_encoded_value",
        "unknown_value": -1,
        "encoded_missing_value": -1,
    }
    kind = (
        HistGradientBoostingClassifier if task == CLASSIFICATION else HistGradientBoostingRegressor
    )
    return make_pipeline(
        _prepared(rows, "passthrough", OrdinalEncoder(**codes, max_categories=MOST_ORDINAL)),
        kind(**boosted(random)),
    )


def boosted(random: np.random.RandomState) -> dict[str, Any]:
    """Settings of boosted trees."""
    return {
        "learning_rate": 10 ** random.uniform(-2, -0.3),
        "max_leaf_nodes": random.randint(7, 64),
        "min_samples_leaf": random.randint(5, 50),
        "l2_regularization": 10 ** random.uniform(-6, 1),
        "max_iter": random.randint(50, 500),
        "early_stopping": False,
    }


RIVALS: Mapping[str, Make] = {"MLP": mlp, "boosting": boosting}


def numeric(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Rows whose dates are seconds, as scikit-learn takes them."""
    dates = [name for name in rows if pandas.api.types.is_datetime64_any_dtype(rows[name])]
    return rows.assign(
        **{str(name): rows[name].astype("datetime64[s]").astype("int64") for name in dates}
    )


def _as_numbers(rows: pandas.DataFrame) -> Any:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_ONE_HOT)
    return _prepared(
        rows, numbers, make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), encoder)
    )


def _prepared(rows: pandas.DataFrame, numbers: Any, categories: Any) -> Any:
    texts = [name for name in rows if not pandas.api.types.is_numeric_dtype(rows[name])]
    return make_column_transformer(
        (numbers, [name for name in rows if name not in texts]), (categories, texts)
    )
