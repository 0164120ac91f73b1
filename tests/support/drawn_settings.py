"""Drawn formats of a session."""

from __future__ import annotations

from hypothesis import strategies as st

ZONES = st.sampled_from(
    ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Australia/Lord_Howe")
)
STYLES = st.builds(
    "{}, {}".format,
    st.sampled_from(("ISO", "SQL", "Postgres", "German")),
    st.sampled_from(("YMD", "DMY", "MDY")),
)
SPANS = st.sampled_from(("postgres", "postgres_verbose", "sql_standard", "iso_8601"))
TIME_FORMATS = {"timezone": ZONES, "datestyle": STYLES, "intervalstyle": SPANS}
"""Settings that decide the text of a point of time or of an interval."""
