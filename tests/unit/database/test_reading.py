"""Formats of a version: what of its record counts, and what of it another role's reading may
have.
"""

from __future__ import annotations

import pytest

from cerebro_plpy.database.reading import (
    DEFAULT_FORMATS,
    FORMATS,
    Reading,
    describe_difference,
    granted_formats,
    read_recorded,
)
from cerebro_plpy.errors import DataCorrupted


def test_a_version_without_a_record_is_read_as_before() -> None:
    assert read_recorded(None) == DEFAULT_FORMATS
    assert (DEFAULT_FORMATS["timezone"], DEFAULT_FORMATS["datestyle"]) == ("UTC", "ISO, YMD")


def test_a_record_sets_formats_and_nothing_else() -> None:
    """Its owner can write anything there."""
    record = {
        "timezone": "Asia/Tokyo",
        "search_path": "trap",
        "row_security": "off",
        "role": "postgres",
        "rows": 3,
    }
    assert read_recorded(record) == {"timezone": "Asia/Tokyo"}
    assert not {"search_path", "row_security", "role", "session_authorization"} & {*FORMATS}


@pytest.mark.parametrize("record", [[], "UTC", 1, {"timezone": 3}, {"datestyle": None}])
def test_a_damaged_record_is_told(record: object) -> None:
    with pytest.raises(DataCorrupted):
        read_recorded(record)


def test_nothing_of_the_owner_s_is_resolved_by_formats() -> None:
    own = {"timezone": "UTC", "default_text_search_config": "malvin.words"}
    assert granted_formats(own) == {"timezone": "UTC"}
    plain = {"default_text_search_config": "pg_catalog.english"}
    assert granted_formats(plain) == plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [('"$user", public', 'pg_catalog, "$user", public, pg_temp'), ("", "pg_catalog, pg_temp")],
)
def test_pg_catalog_comes_first_and_temporary_tables_last(path: str, expected: str) -> None:
    assert Reading({}, path, "on").settings["search_path"] == expected


def test_the_difference_names_both_values() -> None:
    assert (
        describe_difference(
            {"timezone": "UTC", "lc_time": "C"}, {"timezone": "UTC", "lc_time": "C"}
        )
        == ""
    )
    assert "DateStyle ISO, DMY (this session: ISO, MDY)" in describe_difference(
        {"datestyle": "ISO, DMY"}, {"datestyle": "ISO, MDY"}
    )
