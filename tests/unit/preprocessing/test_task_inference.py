"""Whole numbers are classes or numbers: columns as they are in real tables, with the right answer.

Counts with their source in a comment are those of a public data set.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.learning.target import choose_task
from cerebro_plpy.preprocessing.learning.task_inference import (
    CLASSIFICATION,
    FEW_VALUES,
    REGRESSION,
    infer_task,
)
from cerebro_plpy.preprocessing.rows.class_counts import ClassCounts, SideCounts
from cerebro_plpy.preprocessing.values.columns import RawColumn

DRAWS = random.Random(20)
Rows = Mapping[int, int]


def count_draws(rows: int, draw: Iterable[float]) -> Rows:
    """Return how often each whole number is drawn."""
    return Counter(round(value) for value, _ in zip(draw, range(rows), strict=False))


def normal(mean: float, deviation: float, least: float) -> Iterable[float]:
    while True:
        yield max(least, DRAWS.gauss(mean, deviation))


def exponential(mean: float, least: float = 0) -> Iterable[float]:
    while True:
        yield least + DRAWS.expovariate(1 / mean)


def chosen(values: list[int]) -> Iterable[float]:
    while True:
        yield DRAWS.choice(values)


CLASSES: dict[str, Rows] = {
    "stars": {1: 6110, 2: 11370, 3: 27145, 4: 34174, 5: 21201},  # MovieLens 100k
    "review_score": {1: 120, 2: 60, 3: 95, 4: 210, 5: 515},
    "quality": {3: 20, 4: 163, 5: 1457, 6: 2198, 7: 880, 8: 175, 9: 5},  # white wines
    "digit": {0: 178, 1: 182, 2: 177, 3: 183, 4: 181, 5: 182, 6: 181, 7: 179, 8: 174, 9: 180},
    "month": count_draws(300, chosen([*range(1, 13)])),
    "weekday": count_draws(70, chosen([*range(7)])),
    "pclass": {1: 216, 2: 184, 3: 491},  # Titanic
    "species": {0: 50, 1: 50, 2: 50},  # iris
    "cultivar": {1: 59, 2: 71, 3: 48},  # red wines
    "cover": {1: 211840, 2: 283301, 3: 35754, 4: 2747, 5: 9493, 6: 17367, 7: 20510},  # covertype
    "glass": {1: 70, 2: 76, 3: 17, 5: 13, 6: 9, 7: 29},
    "shuttle": {1: 45586, 2: 50, 3: 171, 4: 8903, 5: 3267, 6: 10, 7: 13},
    "block": {1: 4913, 2: 329, 3: 28, 4: 88, 5: 115},  # page blocks
    "heart": {0: 164, 1: 55, 2: 36, 3: 35, 4: 13},  # Cleveland
    "cylinders": {3: 4, 4: 204, 5: 3, 6: 84, 8: 103},  # cars
    "sentiment": {-1: 300, 0: 900, 1: 500},
    "agreement": {-2: 40, -1: 90, 0: 200, 1: 160, 2: 50},
    "status": {200: 1800, 301: 120, 404: 60, 500: 20},
    "letter": count_draws(2000, chosen([*range(26)])),
    "face": {person: 10 for person in range(40)},  # Olivetti
    "hour": count_draws(5000, chosen([*range(24)])),
    "fine_label": {label: 500 for label in range(100)},  # CIFAR-100
    "zip": count_draws(9000, chosen([10001 + 317 * n for n in range(250)])),
    "PostCode": count_draws(3000, chosen([1000 + 53 * n * n for n in range(60)])),
    "error_code": {0: 9000, 1: 600, 2: 250, 3: 90, 4: 40, 7: 12, 9: 8},
    "plant": {101: 300, 102: 250, 205: 280},
}
NUMBERS: dict[str, Rows] = {
    "arr_delay": count_draws(20_000, (value - 30 for value in exponential(35))),
    "short_delay": count_draws(900, normal(0, 2, -9)),
    "year": count_draws(4000, chosen([*range(1985, 2025)])),
    "age": count_draws(9000, normal(39, 14, 17)),
    "age_of_all": {age: max(3, round(120 - age * age / 70)) for age in range(91)},
    "rings": {  # abalone
        1: 1, 2: 1, 3: 15, 4: 57, 5: 115, 6: 259, 7: 391, 8: 568, 9: 689, 10: 634, 11: 487, 12: 267,
        13: 203, 14: 126, 15: 103, 16: 67, 17: 58, 18: 42, 19: 32, 20: 26, 21: 14, 22: 6, 23: 9,
        24: 2, 25: 1, 26: 1, 27: 2, 29: 1,
    },
    "price": count_draws(2000, chosen([9 + 10 * n for n in range(60)])),
    "salary": count_draws(1500, (1000 * value for value in normal(52, 14, 18))),
    "percent": count_draws(2000, normal(55, 17, 0)),
    "siblings": {0: 608, 1: 209, 2: 28, 3: 16, 4: 18, 5: 5, 8: 7},  # Titanic
    "children": {0: 678, 1: 118, 2: 80, 3: 5, 4: 4, 5: 5, 6: 1},
    "bedrooms": {0: 13, 1: 199, 2: 2760, 3: 9824, 4: 6882, 5: 1601, 6: 272, 7: 38, 8: 13, 9: 6},
    "visits": count_draws(800, exponential(2.2)),
    "goals": {0: 230, 1: 310, 2: 240, 3: 130, 4: 55, 5: 22, 6: 9, 7: 3},
    "bikes": count_draws(8000, exponential(150, 1)),
    "temperature": count_draws(730, normal(9, 8, -20)),
    "change": count_draws(600, normal(0, 3, -12)),
    "mpg": count_draws(398, normal(24, 8, 9)),
    "minutes": count_draws(3000, exponential(18)),
    "year_of_few_rows": {2015: 2, 2016: 3, 2017: 1, 2018: 2, 2019: 2},
    "points": {0: 9000, **{score: 3 for score in range(1, 400)}},
    "yyyymmdd": {20240100 + day: 8 for day in range(1, 29)},
}  # fmt: skip


def column(name: str, family: str = "integer") -> RawColumn:
    return RawColumn(name, family, family, False)


def counted(rows: Rows) -> ClassCounts:
    return ClassCounts(tuple(SideCounts(str(value), count, 0) for value, count in rows.items()))


@pytest.mark.parametrize("name", CLASSES)
def test_labels_and_ratings_are_classes(name: str) -> None:
    choice = infer_task(column(name), counted(CLASSES[name]))
    assert choice.task == CLASSIFICATION
    assert choice.note is not None
    assert f"one of {len(CLASSES[name])} classes" in choice.note
    assert "task => 'regression' predicts a number" in choice.note


@pytest.mark.parametrize("name", NUMBERS)
def test_measures_and_counts_are_numbers(name: str) -> None:
    choice = infer_task(column(name), counted(NUMBERS[name]))
    assert choice.task == REGRESSION
    if choice.note is not None:
        classes = len(NUMBERS[name])
        assert f"task => 'classification' predicts one of {classes} classes" in choice.note


def test_numbers_that_could_be_codes_are_noted() -> None:
    for name in ("arr_delay", "year", "rings", "siblings", "price"):
        assert infer_task(column(name), counted(NUMBERS[name])).note, name
    assert infer_task(column("year_of_few_rows"), counted(NUMBERS["year_of_few_rows"])).note is None


ROWS = st.dictionaries(st.integers(-50, 2000), st.integers(1, 500), min_size=3, max_size=60)


@given(ROWS, st.randoms(use_true_random=False), st.sampled_from(["integer", "real", "numeric"]))
def test_order_and_type_do_not_matter(rows: Rows, order: random.Random, family: str) -> None:
    shuffled = [*rows.items()]
    order.shuffle(shuffled)
    first = infer_task(column("x"), counted(rows))
    assert infer_task(column("x", family), counted(dict(shuffled))) == first


@given(ROWS)
def test_one_fraction_makes_all_of_them_numbers(rows: Rows) -> None:
    counts = ClassCounts((*counted(rows).counts, SideCounts("0.5", 1, 0)))
    choice = infer_task(column("x", "numeric"), counts)
    assert (choice.task, choice.note) == (REGRESSION, None)


@given(st.integers(FEW_VALUES + 1, 60), st.integers(30, 400), st.integers(2, 3000))
def test_many_even_values_are_labels_only_from_0_or_1(count: int, rows: int, first: int) -> None:
    for start, task in ((0, CLASSIFICATION), (1, CLASSIFICATION), (first, REGRESSION)):
        values = {start + n: rows for n in range(count)}
        assert infer_task(column("x"), counted(values)).task == task
    gap = {value: rows for value in range(count + 1) if value != count // 2}
    assert infer_task(column("x"), counted(gap)).task == REGRESSION


@given(ROWS)
def test_validation_rows_do_not_matter(rows: Rows) -> None:
    counts = counted(rows)
    more = ClassCounts((*counts.counts, SideCounts("-7777", 0, 99)))
    assert infer_task(column("x"), more) == infer_task(column("x"), counts)


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
def test_the_call_and_then_earlier_versions_decide(task: str) -> None:
    for rows in (CLASSES["stars"], NUMBERS["year"]):
        assert choose_task(column("x"), counted(rows), task, None).task == task
        earlier = choose_task(column("x"), counted(rows), None, task)
        assert (earlier.task, earlier.reason) == (task, "as versions before")
    words = ClassCounts(tuple(SideCounts(word, 9, 3) for word in "abc"))
    assert choose_task(column("x", "text"), words, None, task).task == CLASSIFICATION
