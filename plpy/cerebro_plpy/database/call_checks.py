"""What is checked of a call before it works: its database, its transaction, its plainest
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    ActiveTransaction,
    FeatureNotSupported,
    InvalidParameter,
    ReadOnlyTransaction,
)


def check_encoding(db: Database) -> None:
    """Refuse a database whose encoding is another than Python's.

    PL/Python passes the text of statements and of errors on as it is: names with accents are not
    found there, and an error with one breaks the interpreter.
    """
    encoding = db.value(sql("read.encoding"))
    if encoding != "UTF8":
        raise FeatureNotSupported(
            f"this database has encoding {encoding}; expected UTF8, the only one in which "
            "PL/Python takes all names.",
            hint="Train in a database made by CREATE DATABASE name ENCODING 'UTF8' TEMPLATE "
            "template0.",
        )


def check_transaction(db: Database, module: str) -> None:
    """Refuse transactions that would not see what workers commit, or may not write."""
    found = db.row(sql("session.transaction"))
    if found["read_only"] == "on":
        raise ReadOnlyTransaction(
            f"{module} error: this transaction is read only, but the call writes tables.",
            hint="Start it with BEGIN READ WRITE, or call outside a transaction.",
        )
    if found["isolation"] not in ("read committed", "read uncommitted"):
        raise ActiveTransaction(
            f"{module} error: this transaction has isolation level {found['isolation']}; expected "
            "read committed, because it must see what worker sessions commit.",
            hint="Call outside a transaction, or after BEGIN ISOLATION LEVEL READ COMMITTED.",
        )


def check_flat(module: str, name: str, values: Sequence[object] | None) -> None:
    """An array of SQL that must have one dimension."""
    if any(isinstance(value, list) for value in values or ()):
        raise InvalidParameter(
            f"{module} error: {name} has several dimensions; expected an array of one dimension."
        )


def check_positive(module: str, name: str, value: int | None) -> int | None:
    """A number that must be positive if it is given."""
    if value is not None and value < 1:
        raise InvalidParameter(
            f"{module} error: {name} is {value}; expected a positive whole number or NULL."
        )
    return value


def check_constant(module: str, value: float | None) -> float:
    """The number by which inputs are divided; NULL is 1."""
    constant = 1.0 if value is None else value
    if not 0 < constant < float("inf"):
        raise InvalidParameter(
            f"{module}: The normalizing constant has to be a positive integer or NULL.",
            detail=f"Received {constant}.",
        )
    return constant


LONGEST = 1e9  # a generation; times so long ago can still be computed with


def seconds(db: Database, module: str, name: str, interval: str | None) -> float | None:
    """An interval in seconds, at most LONGEST, None for NULL; raises InvalidParameter where it is
    negative.
    """
    if interval is None:
        return None
    found = float(db.value(sql("read.seconds"), interval))
    if found < 0:
        raise InvalidParameter(
            f"{module} error: {name} is {interval!r}; expected an interval that is not negative."
        )
    return min(found, LONGEST)
