"""Finds a PostgreSQL on this machine, wherever its packager put it, and copies what must not be
touched.

PostgreSQL looks for its files relative to its own binary. So a copy of a few binaries, with links
to the rest in the same relative places, is a whole server of its own: extensions can be installed
in it without being root and without changing anything that belongs to the system.
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
    """The directories of one PostgreSQL, as its pg_config tells them."""

    version: str
    major: int
    bindir: Path
    sharedir: Path
    pkglibdir: Path

    @classmethod
    def of(cls, pg_config: str) -> Installation | None:
        """The server that this pg_config describes; None where there is none."""
        try:
            told = subprocess.run([pg_config], check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        facts = dict(line.split(" = ", 1) for line in told.splitlines() if " = " in line)
        bindir, pkglibdir = Path(facts["BINDIR"]), Path(facts["PKGLIBDIR"])
        if not (bindir / "postgres").exists():
            return None
        digits = "".join(c if c.isdigit() else " " for c in facts["VERSION"]).split()
        return cls(
            version=facts["VERSION"],
            major=int(digits[0]),
            bindir=bindir,
            sharedir=Path(facts["SHAREDIR"]),
            pkglibdir=pkglibdir,
        )

    @property
    def has_plpython(self) -> bool:
        """Whether PL/Python 3 is installed for it."""
        return (self.pkglibdir / "plpython3.so").exists()

    def __str__(self) -> str:
        return (
            f"{self.version} in {self.bindir}{'' if self.has_plpython else ' without PL/Python 3'}"
        )

    def copy_to(self, tree: Path) -> Installation:
        """Makes `tree` a private copy: real binaries and extension folder, links for everything
        else.
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
    """The server of PG_CONFIG, else the newest one with PL/Python, of this major version if one is
    given.
    """
    seen = list(filter(None, map(Installation.of, _candidates())))
    for installation in seen:
        if (
            installation.has_plpython
            and installation.major >= OLDEST
            and major in (None, installation.major)
        ):
            return installation
    raise FeatureNotSupported(
        f"found no PostgreSQL {major or f'{OLDEST} or newer'} with PL/Python 3 on this machine",
        detail=f"There is {'; '.join(map(str, seen)) or 'none at all'}.",
        hint="Install it (on Debian the packages postgresql and postgresql-plpython3-NN),"
        " or set PG_CONFIG to the pg_config of the server to use.",
    )


def _candidates() -> Iterator[str]:
    if named := os.environ.get("PG_CONFIG"):
        yield named
        return
    versions = Path("/usr/lib/postgresql").glob("*/bin/pg_config")
    yield from map(str, sorted(versions, key=lambda path: float(path.parts[-3]), reverse=True))
    yield "pg_config"


def _link_entries(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        (target / entry.name).symlink_to(entry)
