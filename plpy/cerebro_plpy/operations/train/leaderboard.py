"""The answer of `cerebro.train`: the configurations of its run, to be read in a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.preprocessing.learning.raw_table import RawTable


def read_leaderboard(
    db: Database, run_id: int, templates: Sequence[Template], table: RawTable
) -> list[Row]:
    """Return the configurations of a run, the best first, with their unusual parameters.

    Args:
        templates: those that the run tries.
        table: its rows and its target decide which values are usual.
    """
    usual = {
        template.name: template.params(table.target.head, table.rows, {}) for template in templates
    }
    rows = db.peek(sql("version.leaderboard"), run_id)
    for row in rows:
        if row["template"] in usual:
            params = select_unusual(json.loads(row["params"]), usual[row["template"]])
            row["params"] = json.dumps(params)
    return rows


def select_unusual(params: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters whose values are not the usual ones.

    >>> select_unusual({"lr": 0.1, "depth": 3, "own": 1}, {"lr": 0.04, "depth": 3})
    {'lr': 0.1, 'own': 1}
    """
    return {
        name: value for name, value in params.items() if name not in usual or value != usual[name]
    }
