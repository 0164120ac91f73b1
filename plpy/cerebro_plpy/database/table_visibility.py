"""Private tables: those that only the caller's own session can use.

A table is private if it is temporary, or if the caller's transaction has changed or locked it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import ActiveTransaction

REASON = "temporary, or changed or locked in this transaction"


def list_private_tables(db: Database, relations: Iterable[Relation]) -> list[str]:
    """Return the names of private tables among these relations and the tables behind them."""
    oids = [oid for relation in relations for oid in relation.relations]
    return [row["name"] for row in db.rows(sql("read.held_by_caller"), oids)]


def refuse_private_tables(db: Database, relations: Iterable[Relation]) -> None:
    """Refuse private tables to a run in the background."""
    private = list_private_tables(db, relations)
    if private:
        raise ActiveTransaction(
            f"a run in the background cannot use {', '.join(private)}: {REASON}",
            hint="COMMIT first, or train in this session by madlib_fit_multiple_model().",
        )


def refuse_private_source(db: Database, module: str, source: Relation) -> None:
    """Refuse a private source to a run that stores results: a rollback must not undo the source."""
    private = db.rows(sql("read.held_by_caller"), list(source.relations))
    if not private:
        return
    behind = [row["name"] for row in private if row["oid"] != source.oid]
    names = source.spelling
    if len(behind) == len(private):
        names = f"{', '.join(behind)}, behind {source.spelling}"
    raise ActiveTransaction(
        f"{module} error: other sessions cannot use {names}: it is {REASON}.",
        hint="COMMIT first. Copy a temporary table into one that is not, and name the copy.",
    )


def needs_own_session(db: Database, relations: Iterable[Relation], workers: int | None) -> bool:
    """Return True, after a NOTICE, if a call can work only in the caller's session.

    Raises:
        ActiveTransaction: the caller asked for workers, or the platform does not support it.
    """
    private = list_private_tables(db, relations)
    if not private:
        return False
    db.platform.refuse_private_tables(private, REASON)
    names = ", ".join(private)
    if workers:
        raise ActiveTransaction(
            f"workers is {workers}, but other sessions cannot use {names}: {REASON}",
            hint="COMMIT first, or leave workers NULL to train in this session.",
        )
    db.notice(
        "working in this session alone, with one trainer, because other sessions cannot use "
        f"{names}: {REASON}. COMMIT first to work in parallel, and to keep what was "
        "trained if this transaction is rolled back."
    )
    return True
