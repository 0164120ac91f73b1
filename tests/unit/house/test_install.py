"""`make install` by the word of a pg_config, into a folder of the test's own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARE = "/opt/the server/share/postgresql"
PG_CONFIG = """#!/bin/sh
case "$1" in
    --version) echo 'PostgreSQL 12.12';;
    --sharedir) echo '{share}';;
    --bindir) echo '{bindir}';;
    *) exit 1;;
esac
"""


@pytest.fixture(params=["postgres", "greenplum"])
def clone(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """What an image gets of the clone. A copy, since make builds there and tests run side by side."""
    lines = (ROOT / "docker" / f"{request.param}.Dockerfile").read_text().splitlines()
    made = tmp_path / "clone"
    for *names, target in (line.split()[1:] for line in lines if line.startswith("COPY ")):
        for source in () if target.startswith("/") else (ROOT / name for name in names):
            copy = made / target / source.name if target.endswith("/") else made / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy)
            else:
                shutil.copy(source, copy)
    return made


def pg_config(folder: Path) -> Path:
    bindir = folder / "bin"
    bindir.mkdir()
    made = bindir / "pg_config"
    made.write_text(PG_CONFIG.format(share=SHARE, bindir=bindir))
    made.chmod(0o755)
    return made


def scripts() -> set[str]:
    """The script of this version, and those that update each released one."""
    (version,) = re.findall(r"default_version = '(.+)'", (ROOT / "cerebro_db.control").read_text())
    old = [path.name.partition("--")[0] for path in (ROOT / "migrations").glob("*.sql")]
    return {f"cerebro_db--{version}.sql", *(f"cerebro_db--{name}--{version}.sql" for name in old)}


def install(clone: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    command = ["make", "install", f"PLPYTHON={sys.executable}", *(f"{n}={v}" for n, v in variables.items())]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True)


def test_what_is_installed(clone: Path, tmp_path: Path) -> None:
    done = install(clone, PG_CONFIG=pg_config(tmp_path), DESTDIR=tmp_path / "to")
    assert done.returncode == 0, done.stderr
    extension = {path.name for path in (tmp_path / f"to{SHARE}/extension").iterdir()}
    assert {"cerebro_db.control", *scripts()} <= extension
    (package,) = (tmp_path / "to").rglob("site-packages/cerebro_plpy")
    source = ROOT / "plpy/cerebro_plpy"
    shipped = {path.relative_to(source) for path in source.rglob("*") if path.suffix in (".py", ".sql")}
    assert shipped <= {path.relative_to(package) for path in package.rglob("*")}
    assert (package / "VERSION").exists()
    assert (package / "sql-reference.md").read_bytes() == (ROOT / "docs" / "sql-reference.md").read_bytes()
    assert "Greenplum" not in done.stdout


def test_greenplum_is_told_what_its_other_hosts_need(clone: Path, tmp_path: Path) -> None:
    config = pg_config(tmp_path)
    (config.parent / "gpstate").touch()
    done = install(clone, PG_CONFIG=config, DESTDIR=tmp_path / "to")
    assert done.returncode == 0, done.stderr
    told = {line.strip() for line in done.stdout.splitlines() if line.startswith("    /")}
    installed = {str(path) for path in (tmp_path / f"to{SHARE}/extension").iterdir()}
    (package,) = (tmp_path / "to").rglob("site-packages/cerebro_plpy")
    assert told == {*installed, f"{package}/"}


def test_without_a_pg_config_nothing_is_installed(clone: Path, tmp_path: Path) -> None:
    assert install(clone, PG_CONFIG="/nowhere/pg_config", DESTDIR=tmp_path / "to").returncode
    assert not (tmp_path / "to").exists()


def test_a_python_that_is_too_old_is_refused(clone: Path, tmp_path: Path) -> None:
    old = tmp_path / "python"
    code = "import sys; sys.version_info = (3, 6, 8); exec(sys.argv[2])"
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    old.chmod(0o755)
    done = install(clone, PG_CONFIG=pg_config(tmp_path), DESTDIR=tmp_path / "to", PLPYTHON=old)
    assert done.returncode
    assert "must be 3.9 or newer" in done.stderr
    assert not (tmp_path / "to").exists()
