"""Texts of values, and amounts of money, as SQL that no setting of a session changes.

Texts are those under the settings of `reading.TEXTS`. JSON has one style for points in time. Spans
of time and amounts of money have none: a function with these settings casts them, which takes much
longer.
"""

from __future__ import annotations

MONEY = "money"
"""The family of amounts of money, whose texts and digits depend on a locale."""
STYLED = ("date", "timestamp", "timestamptz", "interval", MONEY)
"""Families whose values have other texts under other settings."""


def styled_text(name: str, family: str | None) -> str:
    """Return the text that PostgreSQL writes for a value; with a time zone, that of UTC."""
    if family == "date":
        return f"(pg_catalog.to_jsonb({name}) #>> '{{}}'::text[])"
    if family == "timestamp":
        return f"pg_catalog.replace(pg_catalog.to_jsonb({name}) #>> '{{}}'::text[], 'T', ' ')"
    if family == "timestamptz":
        return styled_text(f"({name} AT TIME ZONE 'UTC')", "timestamp")
    if family in STYLED:
        return f"cerebro_internal.canonical_text({name})"
    return f"{name}::text"


def comparable_text(name: str, family: str | None) -> str:
    """Return the text of a value that `value_comparison.compare` reads under all settings."""
    if family in STYLED and family != MONEY:
        return f"cerebro_internal.canonical_text({name})"
    return f"{name}::text"


def as_json(name: str, family: str | None) -> str:
    """Return the value as JSON is built from it; an unknown type may contain points in time."""
    if family in (None, "timestamptz", "interval", MONEY):
        return f"cerebro_internal.canonical_json({name})"
    return name


def amount(name: str) -> str:
    """Return an amount of money as numeric; PostgreSQL stores cents, whatever the locale."""
    cents = f"('x' || pg_catalog.encode(pg_catalog.cash_send({name}), 'hex'))::bit(64)::bigint"
    return f"({cents}::numeric * '0.01'::numeric)"
