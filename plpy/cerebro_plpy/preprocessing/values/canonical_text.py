"""Values as SQL that no setting of a session decides: the texts by which they are told apart, and
amounts of money.

They are those of the settings that `reading.TEXTS` has. JSON has one style for points of time. What
has none there is cast by a function that has these settings, which takes much longer: it is left to
spans of time and amounts of money.
"""

from __future__ import annotations

MONEY = "money"
"""The family of amounts of money, whose texts and digits depend on a locale."""
STYLED = ("date", "timestamp", "timestamptz", "interval", MONEY)
"""Families whose values have other texts under other settings."""


def told_apart(name: str, family: str | None) -> str:
    """Return the text by which a value is told from others; of a point of time with a zone that of
    UTC.
    """
    if family == "date":
        return f"(pg_catalog.to_jsonb({name}) #>> '{{}}'::text[])"
    if family == "timestamp":
        return f"pg_catalog.replace(pg_catalog.to_jsonb({name}) #>> '{{}}'::text[], 'T', ' ')"
    if family == "timestamptz":
        return told_apart(f"({name} AT TIME ZONE 'UTC')", "timestamp")
    return f"cerebro.canonical_text({name})" if family in STYLED else f"{name}::text"


def written(name: str, family: str | None) -> str:
    """Return the text of a value that `comparison.compare` reads under all settings."""
    return (
        f"cerebro.canonical_text({name})"
        if family in STYLED and family != MONEY
        else f"{name}::text"
    )


def as_json(name: str, family: str | None) -> str:
    """Return what JSON is made of; a type of which nothing is known may have points of time in
    it.
    """
    plain = family is not None and family not in ("timestamptz", "interval", MONEY)
    return name if plain else f"cerebro.canonical_json({name})"


def amount(name: str) -> str:
    """Return an amount of money as numeric: it is stored as a number of cents, whatever a locale
    makes of it.
    """
    cents = f"('x' || pg_catalog.encode(pg_catalog.cash_send({name}), 'hex'))::bit(64)::bigint"
    return f"({cents}::numeric * '0.01'::numeric)"
