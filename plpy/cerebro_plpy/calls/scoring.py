"""What evaluate and predict have in common: their arguments, and the tables that these name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import check_transaction
from cerebro_plpy.trainer import settings


@dataclass(frozen=True)
class ScoreArguments:
    """What evaluate and predict have in common."""

    model_table: str | None
    test_table: str | None
    output_table: str | None
    use_gpus: bool | None
    mst_key: int | None


class ScoreTables(NamedTuple):
    """The tables of a call: what is made, the model table, the table that is scored, and all that are read."""

    output: Relation
    model: Relation
    test: Relation
    relations: list[Relation]


def begin(db: Database, module: str, given: ScoreArguments) -> tuple[Catalog, ScoreTables]:
    """Check what needs no other session; the names of the call, resolved."""
    check_transaction(db, module)
    catalog = Catalog(db, module)
    settings.devices(settings.read(db), given.use_gpus)
    output = catalog.output(given.output_table)
    model, test = catalog.relation(given.model_table, "model"), catalog.relation(given.test_table, "test")
    companions = [catalog.companion(r, suffix) for r in (model, test) for suffix in ("_info", "_summary", "_state")]
    return catalog, ScoreTables(output, model, test, [model, test, *(c for c in companions if c)])
