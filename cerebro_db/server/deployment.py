"""Puts what this package ships where a server finds it: the extension script, the Python for
backends.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cerebro_db.errors import ObjectNotReady

PACKAGE = "cerebro_plpy"
EXTENSION = Path(__file__).parents[1] / "extension"
REFERENCE = "sql-reference.md"


@dataclass(frozen=True, kw_only=True)
class Build:
    """The extension script that came with this package. The digest tells two builds of one version
    apart.
    """

    version: str
    digest: str


def build() -> Build:
    """The build at hand; an error where the package was put together without `make`."""
    script = EXTENSION / f"cerebro_db--{version('cerebro_db')}.sql"
    if not script.exists():
        raise ObjectNotReady(
            f"this installation of cerebro_db has no {script.name}", hint="Install it with `make`."
        )
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return Build(version=version("cerebro_db"), digest=digest)


def interpreter() -> Path:
    """The Python of this virtual environment, by a path without links to folders that others cannot
    read.
    """
    python = Path(sys.executable)
    return python.parent.resolve() / python.name


def place_extension(target: Path) -> None:
    """Puts the control file and the scripts into the folder where a server looks for extensions."""
    for stale in target.glob("cerebro_db--*.sql"):
        stale.unlink()
    for source in (*EXTENSION.glob("*.sql"), *EXTENSION.glob("*.control")):
        (target / source.name).unlink(missing_ok=True)
        shutil.copyfile(source, target / source.name)


def place_backend(folder: Path) -> bool:
    """Puts the package for backends into `folder`, on the server's path; True if it replaced
    another.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ObjectNotReady(
            f"the package {PACKAGE} is not installed", hint="Install cerebro_db with `make`."
        )
    source, target = Path(spec.submodule_search_locations[0]), folder / PACKAGE
    beside = {
        "VERSION": f"{version('cerebro_db')}\n".encode(),
        REFERENCE: (EXTENSION / REFERENCE).read_bytes(),
    }
    shipped = _contents(source) | beside
    if target.exists() and _contents(target) == shipped:
        return False
    fresh = folder / f"{PACKAGE}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    for name, content in shipped.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    replaced = target.exists()
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return replaced


def lend_psycopg2(folder: Path, server_python: str) -> None:
    """Links this interpreter's psycopg2 into `folder`, for a server whose own Python has none.

    A compiled module serves one minor version of Python only: the server's must be the same as
    ours.
    """
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if server_python != ours:
        raise ObjectNotReady(
            f"the server's Python {server_python} has no psycopg2, and that of Python {ours} does "
            "not fit it",
            hint=f"Install psycopg2 for Python {server_python} (on Debian the package "
            "python3-psycopg2).",
        )
    spec = importlib.util.find_spec("psycopg2")
    assert (
        spec is not None and spec.submodule_search_locations
    )  # the client itself cannot work without it
    package = Path(spec.submodule_search_locations[0])
    for name in ("psycopg2", "psycopg2_binary.libs"):
        (folder / name).unlink(missing_ok=True)
        if (package.parent / name).exists():
            (folder / name).symlink_to(package.parent / name)


def _contents(package: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
