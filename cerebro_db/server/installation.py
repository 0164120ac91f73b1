"""Search for a PostgreSQL on this machine, and a private copy of it.

PostgreSQL finds its files relative to its own binary. A copy of a few binaries, with links to the
other files at the same relative paths, is therefore a complete server. Extensions can be installed
in the copy without root and without changes to the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cerebro_db.errors import FeatureNotSupported

OLDEST = 14
BINARIES = ("postgres", "initdb", "pg_ctl", "pg_config")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The directories of one PostgreSQL, as its pg_config prints them."""

    version: str
    major: int
    bindir: Path
    sharedir: Path
    pkglibdir: Path

    @classmethod
    def from_pg_config(cls, pg_config: str) -> Installation | None:
        """Return the server of this pg_config; None if it has no server."""
        try:
            result = subprocess.run([pg_config], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        lines = result.stdout.splitlines()
        values = dict(line.split(" = ", 1) for line in lines if " = " in line)
        bindir = Path(values["BINDIR"])
        if not (bindir / "postgres").exists():
            return None
        digits = "".join(c if c.isdigit() else " " for c in values["VERSION"]).split()
        return cls(
            version=values["VERSION"],
            major=int(digits[0]),
            bindir=bindir,
            sharedir=Path(values["SHAREDIR"]),
            pkglibdir=Path(values["PKGLIBDIR"]),
        )

    @property
    def has_plpython(self) -> bool:
        """Check whether the server has PL/Python 3."""
        return (self.pkglibdir / "plpython3.so").exists()

    def __str__(self) -> str:
        suffix = "" if self.has_plpython else " without PL/Python 3"
        return f"{self.version} in {self.bindir}{suffix}"

    def copy_to(self, tree: Path) -> Installation:
        """Create a private copy in the folder `tree`: binaries, and links for all other files.

        The folder for extensions is a folder of its own.
        """
        shutil.rmtree(tree, ignore_errors=True)
        root = os.path.commonpath([self.bindir, self.sharedir, self.pkglibdir])
        copy = Installation(
            version=self.version,
            major=self.major,
            bindir=tree / self.bindir.relative_to(root),
            sharedir=tree / self.sharedir.relative_to(root),
            pkglibdir=tree / self.pkglibdir.relative_to(root),
        )
        copy.bindir.mkdir(parents=True)
        for name in BINARIES:
            shutil.copy(self.bindir / name, copy.bindir)
        _link_entries(self.sharedir, copy.sharedir)
        (copy.sharedir / "extension").unlink()
        _link_entries(self.sharedir / "extension", copy.sharedir / "extension")
        _link_entries(self.pkglibdir, copy.pkglibdir)
        return copy


def find(major: int | None = None) -> Installation:
    """Return the server of PG_CONFIG, else the newest server with PL/Python.

    Args:
        major: required major version; None for any supported one.

    Raises:
        FeatureNotSupported: the machine has no such server.
    """
    candidates = map(Installation.from_pg_config, _list_pg_configs())
    installations = list(filter(None, candidates))
    for installation in installations:
        is_usable = installation.has_plpython and installation.major >= OLDEST
        if is_usable and major in (None, installation.major):
            return installation
    raise FeatureNotSupported(
        f"found no PostgreSQL {major or f'{OLDEST} or newer'} with PL/Python 3 on this machine",
        detail=f"There is {'; '.join(map(str, installations)) or 'none at all'}.",
        hint="Install it (on Debian the packages postgresql and postgresql-plpython3-NN),"
        " or set PG_CONFIG to the pg_config of the server to use.",
    )


def _list_pg_configs() -> Iterator[str]:
    pg_config = os.environ.get("PG_CONFIG")
    if pg_config:
        yield pg_config
        return
    versions = Path("/usr/lib/postgresql").glob("*/bin/pg_config")
    yield from map(str, sorted(versions, key=lambda path: float(path.parts[-3]), reverse=True))
    yield "pg_config"


def _link_entries(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        (target / entry.name).symlink_to(entry)
