"""The settings under which the rows of a source are read.

Two kinds of settings change what a view, a policy or a foreign table returns, and they need
opposite rules. *Identity* decides what a role may see: users, search_path, row_security and custom
settings are always the caller's. *Formats* decide what a value means: they are the caller's when a
model is trained, and those of the version whenever it reads rows afterwards, so that a view which
takes the hour of a timestamp means the same hour in every session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.records import dataclass

FORMATS = (
    "timezone",
    "timezone_abbreviations",
    "datestyle",
    "intervalstyle",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "default_text_search_config",
    "transform_null_equals",
    "xmlbinary",
    "xmloption",
)
PINNED = {"extra_float_digits": "1", "bytea_output": "hex", "array_nulls": "on"}
"""Settings that are the same in every reading: numbers have all their digits as text."""
TEXTS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "lc_monetary": "C",
    "extra_float_digits": "1",
    "bytea_output": "hex",
}
"""Settings under which a value has the same text for everybody: rows are hashed and packed under
these.
"""
UNRECORDED = {name: value for name, value in TEXTS.items() if name in FORMATS}
"""The formats of a version that has no record of them."""
STYLES = (
    "timezone",
    "datestyle",
    "intervalstyle",
    "lc_monetary",
    "extra_float_digits",
    "bytea_output",
)
"""Settings that decide the text of a value; the function cerebro.text_under takes them."""
CALLER = (
    *FORMATS,
    "extra_float_digits",
    "bytea_output",
    "row_security",
    "standard_conforming_strings",
)
"""Settings that `Database.pinned_path` remembers of the caller's session."""
SPELLINGS = {"timezone": "TimeZone", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle"}
"""Names of settings as PostgreSQL's documentation writes them, where these have capitals."""


@dataclass(frozen=True)
class Reading:
    """The settings of one reading of a source."""

    formats: Mapping[str, str]  # by the names of FORMATS, which may be missing
    path: str  # the caller's search_path
    row_security: str  # the caller's
    standard_conforming_strings: str = (
        "on"  # the caller's, by which functions behind a view read their texts
    )

    @property
    def settings(self) -> dict[str, str]:
        """Settings for a statement that reads the source, and resolves names as the caller's SELECT
        does.

        Operators and functions of pg_catalog come first, as they do by default.
        """
        path = ", ".join(part for part in ("pg_catalog", self.path.strip(), "pg_temp") if part)
        identity = {"row_security": self.row_security, "search_path": path}
        return {
            **PINNED,
            **self.formats,
            **identity,
            "standard_conforming_strings": self.standard_conforming_strings,
        }


def read_current(path: str, settings: Mapping[str, str]) -> Reading:
    """Return the reading of a session with this search_path and these settings, by the names of
    CALLER.
    """
    identity = settings["row_security"], settings["standard_conforming_strings"]
    return Reading({name: settings[name] for name in FORMATS}, path, *identity)


def read_recorded(value: object) -> dict[str, str]:
    """Return the formats that the record of a version contains: a JSON object, or None if there is
    no record.

    Its owner may have changed the record, so that names of other settings are ignored.

    Raises:
        DataCorrupted: The record is not an object, or a format is not a text.
    """
    if value is None:
        return dict(UNRECORDED)
    if not isinstance(value, Mapping):
        raise DataCorrupted(
            f"the record of a version's formats is {value!r:.100}; expected a JSON object"
        )
    formats = {name: value[name] for name in FORMATS if name in value}
    for name, text in formats.items():
        if not isinstance(text, str):
            raise DataCorrupted(
                f"the record of a version's formats has {name} {text!r:.100}; expected a text"
            )
    return formats


def granted_formats(formats: Mapping[str, str]) -> dict[str, str]:
    """Return the formats that another role's reading may have: nothing of the owner's is resolved
    by them.
    """
    own = not formats.get("default_text_search_config", "").startswith("pg_catalog.")
    return {
        name: value
        for name, value in formats.items()
        if not (own and name == "default_text_search_config")
    }


def describe_difference(formats: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Return which formats differ from the settings of a session, in words; '' if none does.

    >>> describe_difference({"timezone": "UTC", "lc_time": "C"},
    ...     {"timezone": "Asia/Tokyo", "lc_time": "C"})
    'TimeZone UTC (this session: Asia/Tokyo)'
    """
    return ", ".join(
        f"{SPELLINGS.get(name, name)} {value} (this session: {settings[name]})"
        for name, value in formats.items()
        if name in settings and settings[name] != value
    )


def configuration(settings: Mapping[str, str]) -> str:
    """Return settings as the JSON that the statement session.configure takes."""
    return json.dumps(dict(settings))


def record(formats: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return what a version stores of its reading: the formats and further fields; values of custom
    settings never.
    """
    return {**more, **formats}
