"""Tables that only the caller's own session can use: temporary, or changed or locked in its
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import ActiveTransaction

WHY = "temporary, or changed or locked in this transaction"


def held_by_caller(db: Database, relations: Iterable[Table]) -> list[str]:
    """Return the names of those of the relations, and of the tables behind them."""
    return [row["name"] for row in db.rows(sql("read.held_by_caller"), [r.oid for r in relations])]


def refuse_held(db: Database, relations: Iterable[Relation]) -> None:
    """Refuse them to a run in the background."""
    if held := held_by_caller(db, relations):
        raise ActiveTransaction(
            f"a run in the background cannot use {', '.join(held)}: {WHY}",
            hint="COMMIT first, or train in this session by madlib_fit_multiple_model().",
        )


def refuse_own(db: Database, module: str, source: Table) -> None:
    """Refuse a source to a run that keeps something of it: that must not depend on a rollback."""
    held = db.rows(sql("read.held_by_caller"), [source.oid])
    if held:
        behind = [row["name"] for row in held if row["oid"] != source.oid]
        what = (
            source.spelling
            if len(behind) < len(held)
            else f"{', '.join(behind)}, behind {source.spelling}"
        )
        raise ActiveTransaction(
            f"{module} error: other sessions cannot use {what}: it is {WHY}.",
            hint="COMMIT first; of a temporary table train on a copy that is none.",
        )


def alone(db: Database, relations: Iterable[Relation], workers: int | None) -> bool:
    """Whether a call has to work in the caller's session, of which the caller is told; refused
    where it cannot.
    """
    held = held_by_caller(db, relations)
    if held:
        db.platform.refuse_held(held, WHY)
    if held and workers:
        raise ActiveTransaction(
            f"workers is {workers}, but other sessions cannot use {', '.join(held)}: {WHY}",
            hint="COMMIT first, or leave workers NULL to train in this session.",
        )
    if held:
        db.notice(
            "working in this session alone, with one trainer, because other sessions cannot use "
            f"{', '.join(held)}: {WHY}. COMMIT first to work in parallel, and to keep what was "
            "trained if this transaction is rolled back."
        )
    return bool(held)
