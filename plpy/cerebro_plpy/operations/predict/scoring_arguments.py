"""What evaluate and predict have in common: their arguments, and the tables that these name."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables import model_states
from cerebro_plpy.trainer_client import settings


@dataclass(frozen=True)
class ScoreArguments:
    """What evaluate and predict have in common."""

    model_table: str | None
    test_table: str | None
    output_table: str | None
    use_gpus: bool | None
    mst_key: int | None


class ScoreTables(NamedTuple):
    """The tables that a call reads: the model table, the table that is scored, and all of them."""

    model: Relation
    test: Relation
    relations: list[Relation]


def begin(db: Database, module: str, arguments: ScoreArguments) -> tuple[Catalog, ScoreTables]:
    """Check what needs no other session; the names of the call, resolved."""
    check_transaction(db, module)
    catalog = Catalog(db, module)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    model, test = (
        catalog.resolve_input(arguments.model_table, "model"),
        catalog.resolve_input(arguments.test_table, "test"),
    )
    info, summary, packed = (
        catalog.find_companion(*each)
        for each in ((model, "_info"), (model, "_summary"), (test, "_summary"))
    )
    states = model_states.find(catalog, model, summary) if summary else None
    return catalog, ScoreTables(
        model, test, [model, test, *filter(None, (info, summary, packed, states))]
    )
