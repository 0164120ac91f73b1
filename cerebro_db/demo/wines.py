"""The raw table of the demo: wines of three grapes by what is measured of them (178 rows that
scikit-learn ships).
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_wine

MEASURES = tuple(name.replace("/", "_") for name in load_wine().feature_names)
GRAPES = ("Barolo", "Grignolino", "Barbera")


def rows() -> list[list[Any]]:
    """Of each wine its id, its measures, and its grape; every sixth has no alkalinity, as raw
    tables are.
    """
    measures, grapes = load_wine(return_X_y=True)
    found = [
        [number, *row.tolist(), GRAPES[grape]]
        for number, (row, grape) in enumerate(zip(measures, grapes, strict=True))
    ]
    for row in found[::6]:
        row[1 + MEASURES.index("alcalinity_of_ash")] = None
    return found


def is_held_out(number: int) -> bool:
    """Every fifth wine is new to the model: 36 of them."""
    return number % 5 == 0
