"""Notices of `cerebro.train` about rows and columns that are not learned from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from drawn_recipes import ONE_OF_EACH

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.train.train_report import report_table
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.task_inference import TaskChoice
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark
from cerebro_plpy.preprocessing.rows.last_border import Border
from cerebro_plpy.preprocessing.rows.split import read_split

ORDINARY_TABLE = {
    "missing": 0,
    "unused": 0,
    "unknown": 0,
    "untrained_classes": (),
    "border": None,
    "share": 1,
    "target": SimpleNamespace(
        column=SimpleNamespace(name="late"), task="classification", choice=None
    ),
    "groups": None,
    "recipe": Recipe(()),
    "remarks": (),
    "unknown_values": (),
    "leaks": (),
}
GROUPS = SimpleNamespace(small_values=2, column="zone", least=50)
DIGITS = SimpleNamespace(
    column=SimpleNamespace(name="digit"),
    task="classification",
    choice=TaskChoice("classification", "few", "digit is predicted as one of 10 classes"),
)
NOTICES: dict[str, tuple[dict[str, Any], str]] = {
    "all of it": ({}, ""),
    "another task": ({"target": DIGITS}, "digit is predicted as one of 10 classes"),
    "rows without a target": ({"missing": 3}, "3 rows have no late, and are left out"),
    "rows of new classes": (
        {"unknown": 5, "unknown_classes": {"lost": 3, "new": 2}},
        "5 rows have classes of late that the model does not know, and are left out: 'lost' (3), "
        "'new' (2)",
    ),
    "rows on neither side": (
        {"unused": 4},
        "4 more rows are left out: column fold has them on neither side",
    ),
    "rows of classes that are held back": (
        {"unused": 4, "untrained_classes": ["b", "c"]},
        "no row of their class is trained on: 'b', 'c'",
    ),
    "rows without a value of the split": (
        {"border": Border("7", 20, 100, 5)},
        "5 rows have no day, and are trained on",
    ),
    "a border that is far off": (
        {"border": Border("7", 90, 100, 0)},
        'last 0.2 by "day" holds back 90 of 100 rows, a share of 0.9',
    ),
    "a sample": ({"share": 0.25}, "a share of 0.25"),
    "small groups": ({"groups": GROUPS}, "2 values of zone have fewer than 50 rows"),
    "a remark": (
        {"remarks": (ColumnRemark("price", "x"), ColumnRemark("y", "in the plan", False))},
        "column price: x",
    ),
    "a column": ({"recipe": ONE_OF_EACH}, "column id is left out: it is of the primary key"),
}


@pytest.mark.parametrize(("table", "words"), NOTICES.values(), ids=NOTICES)
def test_each_reason_is_a_notice_of_its_own(table: dict[str, Any], words: str) -> None:
    notices: list[str] = []
    raw_table = SimpleNamespace(
        rows=100,
        split=read_split("train", "last 0.2 by day" if "border" in table else "column fold"),
        **{**ORDINARY_TABLE, **table},
    )
    report_table(cast(Database, SimpleNamespace(notice=notices.append)), cast(RawTable, raw_table))
    assert len(notices) == bool(table) and words in "".join(notices)
