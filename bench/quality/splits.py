"""Choose the test rows of a table, which no contender sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas

from bench.quality.task import GROUP, TIME, Validation, Values

TEST_SHARE = 0.25
FIRST_START = 0.6
LAST_START = 0.8
TIME_SHARE = 0.2
"""The share of the rows from the start of a period on that test a model of the rows before."""


class Split(NamedTuple):
    """For each row whether it trains, and whether it tests; some rows do neither."""

    train: Values
    test: Values


def split_rows(frame: pandas.DataFrame, validation: Validation, seed: int) -> Split:
    """Return the training and test rows of a seed.

    Test rows are random ones, all rows of random groups, or those of a random period, of which
    all training rows are earlier and all others are left out.
    """
    random = np.random.RandomState(seed)
    if validation.kind == TIME:
        return _split_by_time(frame[validation.column], random)
    if validation.kind == GROUP:
        groups = frame[validation.column].unique()
        chosen = groups[random.rand(len(groups)) < TEST_SHARE]
        test = np.asarray(frame[validation.column].isin(chosen))
    else:
        test = random.rand(len(frame)) < TEST_SHARE
    return Split(~test, test)


def _split_by_time(times: pandas.Series, random: np.random.RandomState) -> Split:
    present = times.dropna().sort_values(ignore_index=True)
    start = random.uniform(FIRST_START, LAST_START)
    begin = present[int(start * len(present))]
    end = present[min(int((start + TIME_SHARE) * len(present)), len(present) - 1)]
    test = np.asarray((times >= begin) & (times <= end))
    return Split(np.asarray(times < begin), test)
