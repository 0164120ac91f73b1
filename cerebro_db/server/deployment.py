"""Deployment of the package's files to a server: the extension and the Python of the backend."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from filecmp import cmp
from importlib.metadata import version
from pathlib import Path

import cerebro_db
from cerebro_db.errors import ObjectNotReady

PACKAGE = "cerebro_plpy"
EXTENSION = Path(cerebro_db.__file__).parent / "extension"
REFERENCE = "sql-reference.md"


@dataclass(frozen=True, kw_only=True)
class Build:
    """The extension script of this package."""

    version: str
    digest: str  # of the script; distinguishes builds of one version


def find_release() -> str:
    """Return the release of this package, without the suffix of a development release."""
    return version("cerebro_db").partition(".dev")[0]


def read_build() -> Build:
    """Return the build of this package.

    Raises:
        ObjectNotReady: the package was installed without `make` and has no script.
    """
    release = find_release()
    script = EXTENSION / f"cerebro_db--{release}.sql"
    if not script.exists():
        raise ObjectNotReady(
            f"this installation of cerebro_db has no {script.name}", hint="Install it with `make`."
        )
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return Build(version=release, digest=digest)


def find_interpreter() -> Path:
    """Return the Python of this virtual environment.

    The path has no links in its folders, which other users might be unable to read.
    """
    python = Path(sys.executable)
    return python.parent.resolve() / python.name


def place_extension(target: Path) -> None:
    """Copy the control file and the scripts to the extension folder of a server."""
    for old_script in target.glob("cerebro_db--*.sql"):
        old_script.unlink()
    for source in (*EXTENSION.glob("*.sql"), *EXTENSION.glob("*.control")):
        (target / source.name).unlink(missing_ok=True)
        shutil.copyfile(source, target / source.name)


def is_extension_current(target: Path) -> bool:
    """Return whether the extension folder of a server has the files of this package."""
    sources = (*EXTENSION.glob("*.sql"), *EXTENSION.glob("*.control"))
    if {path.name for path in target.glob("cerebro_db--*.sql")} - {path.name for path in sources}:
        return False
    return all(
        (target / source.name).exists() and cmp(source, target / source.name, shallow=False)
        for source in sources
    )


def find_backend() -> Path:
    """Return the folder of the package for backends in this environment."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ObjectNotReady(
            f"the package {PACKAGE} is not installed", hint="Install cerebro_db with `make`."
        )
    return Path(spec.submodule_search_locations[0])


def is_backend_current(folder: Path) -> bool:
    """Return whether a folder on the server's path has the package of this environment."""
    target = folder / PACKAGE
    return target.exists() and _read_files(target) == _read_backend()


def place_backend(folder: Path) -> bool:
    """Copy the package for backends to a folder on the server's path.

    Returns:
        True if another build of the package was replaced.
    """
    files = _read_backend()
    target = folder / PACKAGE
    is_replaced = target.exists()
    if is_replaced and _read_files(target) == files:
        return False
    new_package = folder / f"{PACKAGE}.new"
    shutil.rmtree(new_package, ignore_errors=True)
    for name, content in files.items():
        path = new_package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    shutil.rmtree(target, ignore_errors=True)
    new_package.rename(target)
    return is_replaced


def link_psycopg2(folder: Path, server_python: str) -> None:
    """Link this interpreter's psycopg2 into a folder on the path of a server without psycopg2.

    Args:
        server_python: minor version of the server's Python, such as "3.11"; a compiled module works
            with one minor version only.

    Raises:
        ObjectNotReady: the server has another version than this interpreter.
    """
    client_python = f"{sys.version_info.major}.{sys.version_info.minor}"
    if server_python != client_python:
        raise ObjectNotReady(
            f"the server's Python {server_python} has no psycopg2, and that of Python "
            f"{client_python} does not fit it",
            hint=f"Install psycopg2 for Python {server_python} (on Debian the package "
            "python3-psycopg2).",
        )
    spec = importlib.util.find_spec("psycopg2")
    # The client itself requires psycopg2.
    assert spec is not None
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    for name in ("psycopg2", "psycopg2_binary.libs"):
        (folder / name).unlink(missing_ok=True)
        if (package.parent / name).exists():
            (folder / name).symlink_to(package.parent / name)


def _read_backend() -> dict[str, bytes]:
    """Return the files of the package for backends by relative path."""
    files = _read_files(find_backend())
    files["VERSION"] = f"{find_release()}\n".encode()
    files[REFERENCE] = (EXTENSION / REFERENCE).read_bytes()
    return files


def _read_files(package: Path) -> dict[str, bytes]:
    """Return the contents of the package's files by relative path."""
    return {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
