"""What the installation put beside this package on this host: its version, and the reference of the SQL functions."""

from __future__ import annotations

from pathlib import Path


def package_version() -> str:
    """The version of this package, which the installation wrote beside it."""
    return (Path(__file__).parent / "VERSION").read_text(encoding="ascii").strip()


def reference() -> str:
    """The page that describes the SQL functions: docs/sql-reference.md of this version."""
    return (Path(__file__).parent / "sql-reference.md").read_text(encoding="utf-8")
