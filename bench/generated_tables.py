"""Generated rows of numbers and categories, as many as one likes."""

from __future__ import annotations

import numpy as np
import pandas

NUMBERS = 22
LEVELS = (3, 5, 8, 12, 20, 50, 200, 1000)
"""Numbers of different values of the categories."""
MISSING = 0.05
"""The share of NULLs in every fourth column of numbers."""
NOISE = 0.5
SEED = 52


def make_rows(count: str) -> pandas.DataFrame:
    """Return rows of 30 inputs and a target `y`, which depends on steps, products and categories.

    Every fourth column of numbers is skewed; some inputs do not matter.
    """
    rows = int(count)
    rng = np.random.default_rng(SEED)
    numbers = rng.normal(size=(rows, NUMBERS))
    codes = [rng.integers(0, levels, size=rows) for levels in LEVELS]
    effects = [rng.normal(size=levels) for levels in LEVELS]
    target = (
        np.sin(2 * numbers[:, 0])
        + numbers[:, 1] * numbers[:, 2]
        + np.where(numbers[:, 3] > 0.5, 1.5, 0.0) * (codes[0] == 1)
        + 0.5 * np.abs(numbers[:, 4])
        + numbers[:, 5:12] @ rng.normal(scale=0.3, size=7)
        + NOISE * rng.normal(size=rows)
    )
    for code, effect in zip(codes[2:], effects[2:], strict=True):
        target += 0.5 * effect[code]
    columns: dict[str, object] = {}
    for number in range(NUMBERS):
        values = numbers[:, number]
        if number % 4 == 3:
            values = np.exp(values)
        if number % 4 == 2:
            values = np.where(rng.random(rows) < MISSING, np.nan, values)
        columns[f"n{number}"] = values
    for number, code in enumerate(codes):
        names = np.array([f"level {level}" for level in range(LEVELS[number])], dtype=object)
        columns[f"c{number}"] = names[code]
    return pandas.DataFrame({**columns, "y": target})


def select_columns(frame: pandas.DataFrame, numbers: int, categories: int) -> pandas.DataFrame:
    """Return such rows with the first columns of numbers and categories, and the target."""
    names = [*(f"n{number}" for number in range(numbers))]
    names += [f"c{number}" for number in range(categories)]
    return frame[[*names, "y"]]
