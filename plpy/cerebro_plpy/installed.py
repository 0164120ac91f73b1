"""Which version of this package is installed here: each host of a cluster has a copy of its own."""

from __future__ import annotations

from pathlib import Path


def package_version() -> str:
    """The version of this package, which the installation wrote beside it."""
    return (Path(__file__).parent / "VERSION").read_text(encoding="ascii").strip()
