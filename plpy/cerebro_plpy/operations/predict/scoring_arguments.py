"""The arguments that `madlib_keras_evaluate` and `madlib_keras_predict` share."""

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
    """The shared arguments of evaluate and predict, None for NULL."""

    model_table: str | None
    test_table: str | None
    output_table: str | None
    use_gpus: bool | None
    mst_key: int | None


class ScoreTables(NamedTuple):
    """The tables that a call reads."""

    model: Relation
    test: Relation
    relations: list[Relation]  # both of them and their companions


def resolve_arguments(
    db: Database, module: str, arguments: ScoreArguments
) -> tuple[Catalog, ScoreTables]:
    """Check the arguments that need no other session, and resolve the names of the tables."""
    check_transaction(db, module)
    catalog = Catalog(db, module)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    model = catalog.resolve_input(arguments.model_table, "model")
    test = catalog.resolve_input(arguments.test_table, "test")
    info = catalog.find_companion(model, "_info")
    summary = catalog.find_companion(model, "_summary")
    packed_summary = catalog.find_companion(test, "_summary")
    states = model_states.find(catalog, model, summary)
    companions = filter(None, (info, summary, packed_summary, states))
    return catalog, ScoreTables(model, test, [model, test, *companions])
