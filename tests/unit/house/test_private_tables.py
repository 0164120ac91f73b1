"""Default privileges of a role open no table that lies in schema cerebro_state."""

from __future__ import annotations

import re
from pathlib import Path

from cerebro_plpy.database import queries

FOLDER = Path(queries.__file__).parent / "queries"
MADE = re.compile(
    r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\{\w+\}|[\w.\"]+)|CREATE FUNCTION (\{\w+\})"
)
KEPT = re.compile(
    r"SELECT cerebro_internal\.keep_private\(\{literal\}::pg_catalog\.reg(?:class|procedure)\)"
)
IN_SCHEMAS_OF_CALLERS = {
    "automl.models", "automl.schedule", "automl.summary", "example.flowers_table",
    "functions.create", "gpu.table",
    "model.distant_summary", "model.selection",
    "model.selection_summary", "model.table", "output.info", "output.models", "output.summary",
    "score.evaluation",
    "score.predictions", "series.windows", "single.model", "single.summary",
}  # fmt: skip
"""Statements that make tables only where the caller wants them."""
DROPPED_BY_THEIR_TRANSACTION = {
    "drift.sample", "features.keep_sample", "features.raw_rows", "reading.copy", "spread.ordered",
}  # fmt: skip
"""Statements that make tables which no other session ever sees."""


def test_what_is_made_in_our_schema_is_kept_private() -> None:
    made = {
        f"{path.stem}.{name}": text
        for path in FOLDER.glob("*.sql")
        for name, text in queries.load(path.stem).items()
        if MADE.search(text)
    }
    open_ = {name for name, text in made.items() if not KEPT.search(text)}
    # The text of a state's chunks is added to their table by a statement of its own.
    assert open_ - {"states.create"} == IN_SCHEMAS_OF_CALLERS | DROPPED_BY_THEIR_TRANSACTION
    assert KEPT.search(queries.load("states")["chunk"])
