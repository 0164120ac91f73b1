"""The settings under which the rows of a source are read.

Two kinds of settings change the result of a view, a policy or a foreign table, and they need
opposite rules. *Identity* decides which rows a role may see: users, search_path, row_security and
custom settings are always the caller's. *Formats* decide the meaning of a value. They are the
caller's when a model is trained, and those of the version whenever it reads rows afterwards: a view
that takes the hour of a timestamp means the same hour in every session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.records import dataclass

SettingValues = Mapping[str, str]
"""Values of settings, by name."""
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
"""Settings that are the same in every reading; the text of a number has all its digits."""
TEXTS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "lc_monetary": "C",
    "extra_float_digits": "1",
    "bytea_output": "hex",
}
"""Settings under which a value has the same text for every role: rows are hashed and packed so."""
DEFAULT_FORMATS = {name: value for name, value in TEXTS.items() if name in FORMATS}
"""The formats of a version that has no record of its formats."""
STYLES = (
    "timezone",
    "datestyle",
    "intervalstyle",
    "lc_monetary",
    "extra_float_digits",
    "bytea_output",
)
"""Settings that decide the text of a value; the function cerebro_internal.text_under takes them."""
CALLER = (
    *FORMATS,
    "extra_float_digits",
    "bytea_output",
    "row_security",
    "standard_conforming_strings",
)
"""Settings that `Database.pinned_path` remembers of the caller's session."""
SPELLINGS = {"timezone": "TimeZone", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle"}
"""Names of settings that PostgreSQL's documentation writes with capitals."""


@dataclass(frozen=True)
class Reading:
    """The settings of one reading of a source; all but the formats are the caller's."""

    formats: SettingValues  # by names of FORMATS, any of which may be missing
    path: str  # search_path
    row_security: str
    standard_conforming_strings: str = "on"  # affects literals in functions behind a view
    temporary_first: bool = False  # temporary tables come before those of the path, as in a SELECT

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings for a statement that reads the source.

        The statement resolves names as the caller's SELECT does. Operators and functions of
        pg_catalog come first, as they do by default.
        """
        parts = ["pg_catalog", self.path.strip(), "pg_temp"]
        if self.temporary_first and "pg_temp" not in self.path:
            parts = ["pg_catalog", "pg_temp", self.path.strip()]
        path = ", ".join(part for part in parts if part)
        identity = {"row_security": self.row_security, "search_path": path}
        return {
            **PINNED,
            **self.formats,
            **identity,
            "standard_conforming_strings": self.standard_conforming_strings,
        }


def read_current(path: str, settings: SettingValues) -> Reading:
    """Return the reading of a session with this search_path; `settings` has all of CALLER."""
    return Reading(
        formats={name: settings[name] for name in FORMATS},
        path=path,
        row_security=settings["row_security"],
        standard_conforming_strings=settings["standard_conforming_strings"],
    )


def read_recorded(value: object) -> dict[str, str]:
    """Return the formats in the record of a version.

    The owner may have changed the record, so that names of other settings are ignored.

    Args:
        value: a JSON object; None if the version has no record.

    Raises:
        DataCorrupted: the record is not an object, or a format is not a text.
    """
    if value is None:
        return dict(DEFAULT_FORMATS)
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


def granted_formats(formats: SettingValues) -> dict[str, str]:
    """Return the formats that another role may read with.

    A text search configuration outside pg_catalog is left out, so that no object of the owner's is
    resolved.
    """
    search_config = formats.get("default_text_search_config", "")
    if search_config.startswith("pg_catalog."):
        return dict(formats)
    return {name: value for name, value in formats.items() if name != "default_text_search_config"}


def describe_difference(formats: SettingValues, settings: SettingValues) -> str:
    """Return the formats that differ from the settings of a session, as text; '' if none does.

    >>> describe_difference({"timezone": "UTC", "lc_time": "C"},
    ...     {"timezone": "Asia/Tokyo", "lc_time": "C"})
    'TimeZone UTC (this session: Asia/Tokyo)'
    """
    return ", ".join(
        f"{SPELLINGS.get(name, name)} {value} (this session: {settings[name]})"
        for name, value in formats.items()
        if name in settings and settings[name] != value
    )


def configuration(settings: SettingValues) -> str:
    """Return settings as JSON for the statement session.configure."""
    return json.dumps(dict(settings))


def record(formats: SettingValues, **fields: Any) -> dict[str, Any]:
    """Return the record that a version stores of its reading.

    It contains the formats and further fields, but never values of custom settings.
    """
    return {**fields, **formats}
