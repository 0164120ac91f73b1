"""The raw table of the demo: 178 wines of three grapes with 13 measures, from scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_wine

MEASURES = tuple(name.replace("/", "_") for name in load_wine().feature_names)
GRAPES = ("Barolo", "Grignolino", "Barbera")


def read_rows() -> list[list[Any]]:
    """Return the id, the measures and the grape of each wine.

    In every sixth row the alkalinity is missing, because raw tables have missing values.
    """
    measures, grapes = load_wine(return_X_y=True)
    rows = [
        [number, *row.tolist(), GRAPES[grape]]
        for number, (row, grape) in enumerate(zip(measures, grapes, strict=True))
    ]
    for row in rows[::6]:
        row[1 + MEASURES.index("alcalinity_of_ash")] = None
    return rows


def is_held_out(number: int) -> bool:
    """Return whether a wine is held out from training: every fifth one, 36 in total."""
    return number % 5 == 0
