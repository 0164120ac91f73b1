"""Checks of a call before it works: of its database, its transaction and simple arguments."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import (
    ActiveTransaction,
    FeatureNotSupported,
    InvalidParameter,
    ReadOnlyTransaction,
)

# Limit of intervals, about 30 years: a time so far in the past can still be computed with.
MAX_SECONDS = 1e9
COMMITTED = ("read committed", "read uncommitted")
"""Isolation levels under which a statement sees what other sessions have committed."""


def check_encoding(db: Database) -> None:
    """Refuse a database whose encoding is not UTF8, Python's own.

    PL/Python passes on the text of statements and errors unchanged. In another encoding it does not
    find names with accents, and an error message with an accent breaks the interpreter.
    """
    encoding = db.value(sql("read.encoding"))
    if encoding != "UTF8":
        raise FeatureNotSupported(
            f"this database has encoding {encoding}; expected UTF8, the only one in which "
            "PL/Python takes all names.",
            hint="Train in a database made by CREATE DATABASE name ENCODING 'UTF8' TEMPLATE "
            "template0.",
        )


def check_transaction(db: Database, module: str, *, has_background: bool = False) -> None:
    """Refuse transactions that cannot write, or that cannot see the commits of workers.

    Args:
        has_background: the function has an argument `background`, with which another session works.
    """
    transaction = db.row(sql("session.transaction"))
    if transaction["read_only"] == "on":
        subject = "this transaction is read only"
        if transaction["is_standby"]:
            subject = "this server is a standby, which is read only"
        raise ReadOnlyTransaction(
            f"{module} error: {subject}, but the call writes tables.",
            hint=_suggest_writing(transaction),
        )
    isolation = transaction["isolation"]
    if isolation not in COMMITTED:
        hint = _suggest_isolation(transaction)
        if has_background:
            hint = f"{hint} Or let another session work: background => true."
        raise ActiveTransaction(
            f"{module} error: this transaction has isolation level {isolation}; expected "
            "read committed, because it must see what worker sessions commit.",
            hint=hint,
        )


def _suggest_writing(transaction: Row) -> str:
    """Return a hint about a read-only transaction, which can be followed in this session."""
    if transaction["is_standby"]:
        return "Call it on the primary server, which this one follows. Predictions work here, too."
    if transaction["default_read_only"] == "on":
        return (
            "SET default_transaction_read_only = off; then call again, after COMMIT in a "
            "transaction block."
        )
    return "ROLLBACK; then call outside a transaction, or after BEGIN READ WRITE."


def _suggest_isolation(transaction: Row) -> str:
    """Return a hint about the isolation level, which can be followed in this session."""
    if transaction["default_isolation"] in COMMITTED:
        return (
            "ROLLBACK; then call outside a transaction, or after BEGIN ISOLATION LEVEL READ "
            "COMMITTED."
        )
    return (
        "SET default_transaction_isolation = 'read committed'; then call again, after COMMIT in a "
        "transaction block."
    )


def check_flat(module: str, name: str, values: Sequence[object] | None) -> None:
    """Refuse an SQL array with several dimensions."""
    if any(isinstance(value, list) for value in values or ()):
        raise InvalidParameter(
            f"{module} error: {name} has several dimensions; expected an array of one dimension."
        )


def check_positive(module: str, name: str, value: int | None) -> None:
    """Refuse a number that is not positive, unless it is NULL."""
    if value is not None and value < 1:
        raise InvalidParameter(
            f"{module} error: {name} is {value}; expected a positive whole number or NULL.",
            hint=f"Write {name} => 1 or a larger number.",
        )


def check_constant(module: str, value: float | None) -> float:
    """Return the number that inputs are divided by; NULL is 1."""
    constant = 1.0 if value is None else value
    if not 0 < constant < float("inf"):
        raise InvalidParameter(
            f"{module}: The normalizing constant has to be a positive integer or NULL.",
            detail=f"Received {constant}.",
        )
    return constant


def read_seconds(db: Database, module: str, name: str, interval: str | None) -> float | None:
    """Return an interval in seconds, at most MAX_SECONDS; None for NULL.

    Raises:
        InvalidParameter: the interval is negative.
    """
    if interval is None:
        return None
    seconds = float(db.value(sql("read.seconds"), interval))
    if seconds < 0:
        raise InvalidParameter(
            f"{module} error: {name} is {interval!r}; expected an interval that is not negative.",
            hint=f"For example {name} => '10 minutes'.",
        )
    return min(seconds, MAX_SECONDS)
