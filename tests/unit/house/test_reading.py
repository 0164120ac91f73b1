"""One module knows under which settings a source is read: no other place sets a time zone, a style
or a path.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pglast
import pytest
from product_sql import product_statements, walk
from sources import BACKEND, tree

from cerebro_plpy.database.reading import FORMATS, TEXTS

ROOT = Path(__file__).parents[3]
READING = "plpy/cerebro_plpy/database/reading.py"
WATCHED = re.compile(rf"{'|'.join(FORMATS)}|lc_\w+|search_path", re.IGNORECASE)
SAFE_PATH = ("search_path", "pg_catalog, pg_temp")
IN_TEXT = re.compile(
    r"set_config\(\s*'(\w+)'|\bSET\s+(?:LOCAL\s+|SESSION\s+)?(\w+)\s*(?:=|TO\b)|-c\s*(\w+)=",
    re.IGNORECASE,
)
PLACES = {
    "plpy/cerebro_plpy/database/sessions/connection_options.py: datestyle": "a session that is "
    "opened has pinned "
    "settings until it reads",
    "plpy/cerebro_plpy/database/sessions/connection_options.py: intervalstyle": "the same",
    "plpy/cerebro_plpy/database/sessions/connection_options.py: search_path": "the same",
    "plpy/cerebro_plpy/database/sessions/spi.py: search_path": "our SQL never runs under the "
    "path of the caller, but names are found as the caller's session finds them",
    "plpy/cerebro_plpy/operations/train/model_lineage.py: search_path": "a hint has the path under "
    "which a query means what it meant",
    "plpy/cerebro_plpy/operations/predict/prediction_source.py: search_path": "a table in place "
    "needs no path",
    "plpy/cerebro_plpy/operations/predict/predict_table.py: search_path": "a statement that has "
    "begun needs "
    "no path",
    "cerebro_db/server/provision.py: search_path": "the database of an embedded server has a "
    "default",
    "sql/61-named-prediction.sql text_under: timezone": "an id has the text that it has in the "
    "caller's session",
    "sql/61-named-prediction.sql text_under: datestyle": "the same",
    "sql/61-named-prediction.sql text_under: intervalstyle": "the same",
    "sql/61-named-prediction.sql text_under: lc_monetary": "the same",
    "plpy/cerebro_plpy/operations/predict/row_type.py: datestyle": "it is looked at, not set",
    "sql/61-named-prediction.sql rows_of_texts: xmloption": "a value of xml may be a part of a "
    "document",
}
"""Other places that name such a setting, and why."""


def settings_in_python(path: Path) -> Iterator[str]:
    """Yield the settings that a module names where it could set them: keywords, and texts that are
    names or SQL.
    """
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.keyword) and node.arg and WATCHED.fullmatch(node.arg):
            yield node.arg.lower()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [
                node.value,
                *(name for found in IN_TEXT.findall(node.value) for name in found if name),
            ]
            yield from (name.lower() for name in names if WATCHED.fullmatch(name))


def settings_in_sql(node: pglast.ast.Node) -> Iterator[tuple[str, str, str]]:
    """Yield the settings that a statement sets, the values, and the function that is created with
    them.
    """
    name = f" {node.funcname[-1].sval}" if isinstance(node, pglast.ast.CreateFunctionStmt) else ""
    for part in walk(node):
        if (
            isinstance(part, pglast.ast.VariableSetStmt)
            and part.name
            and WATCHED.fullmatch(part.name)
        ):
            values = ", ".join(str(value.val.sval) for value in part.args or ())
            yield part.name.lower(), values, name
        if isinstance(part, pglast.ast.FuncCall) and part.funcname[-1].sval == "set_config":
            setting = getattr(getattr(part.args[0], "val", None), "sval", "")
            if WATCHED.fullmatch(setting):
                yield setting.lower(), "", name


def places_in_sql() -> Iterator[str]:
    """Yield where SQL sets a setting: functions may pin the path, and formats to those under which
    texts are alike.
    """
    for statement in product_statements():
        if statement.node is None:
            continue
        for setting, value, function in settings_in_sql(statement.node):
            pinned = (setting, value) == SAFE_PATH or TEXTS.get(
                setting, ""
            ).lower() == value.lower()
            if not (function and pinned):
                yield f"{statement.place}{function}: {setting}"


def test_settings_of_a_reading_are_set_in_one_module() -> None:
    modules = [path for path in sorted(BACKEND.rglob("*.py")) if path != ROOT / READING]
    found = {
        f"{path.relative_to(ROOT)}: {name}" for path in modules for name in settings_in_python(path)
    }
    assert {*settings_in_python(ROOT / READING)} >= {*FORMATS, "search_path"}
    assert {*found, *places_in_sql()} == PLACES.keys()


@pytest.mark.parametrize(
    "text",
    [
        "with db.configured(timezone='UTC'): pass",
        "settings = {'DateStyle': 'ISO'}",
        "settings['lc_time'] = 'C'",
        "db.rows(\"SELECT pg_catalog.set_config('intervalstyle', %s, true)\", style)",
        "session.run('BEGIN; SET LOCAL search_path TO public')",
        "options = f'-c timezone={zone}'",
    ],
)
def test_python_that_sets_one_is_found(text: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert len([*settings_in_python(path)]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SET TIME ZONE 'UTC'",
        "SET search_path = public",
        "SELECT pg_catalog.set_config('DateStyle', $1, true)",
        "ALTER ROLE somebody SET timezone = 'UTC'",
        "CREATE FUNCTION f() RETURNS integer LANGUAGE sql SET lc_time = 'C' AS 'SELECT 1'",
    ],
)
def test_sql_that_sets_one_is_found(text: str) -> None:
    (raw,) = pglast.parse_sql(text)
    assert len([*settings_in_sql(raw.stmt)]) == 1
