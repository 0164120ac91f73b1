"""What `make dist` writes is installed and tried: a wheel, its sources, an archive for PGXN."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import psycopg2
import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[3]


def run(*command: str | Path, cwd: Path = Path("/")) -> str:
    """Run a command without the environment's own packages in the way; return its output."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the three archives, built from a copy of the working tree."""
    folder = tmp_path_factory.mktemp("archives")
    run(sys.executable, ROOT / "assembly.py", "archive", folder)
    (archive,) = folder.glob("*.zip")
    clone = unpack(archive, tmp_path_factory.mktemp("clone"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=clone)
    return folder


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive of PGXN; return its folder."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    return folder / archive.stem


def make_environment(folder: Path, archive: Path) -> Path:
    """Install an archive into a new environment, which has the other packages of this one."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    paths = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    site = Path(paths.strip())
    # Its own folder comes first, so that a package there hides the one of this environment.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    words = ("--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(sys.executable, "-m", "pip", "--python", python, "install", *words, archive)
    return python


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def find_package(python: Path, name: str) -> Path:
    """Return the folder of a package in an environment."""
    code = f"import {name}; print({name}.__path__[0])"
    package = Path(run(python, "-I", "-c", code).strip())
    assert package.is_relative_to(python.parents[1]), "not that of this environment"
    return package


def test_the_wheel_has_a_server_and_the_source_archive_is_the_same(
    archives: Path, shared_folder: Path
) -> None:
    (wheel,) = archives.glob("*.whl")
    (source,) = archives.glob("*.tar.gz")
    release = json.loads((ROOT / "META.json").read_text())["version"]
    for archive in (wheel, source):
        assert archive.name.startswith(f"cerebro_db-{release}")
    python = make_environment(shared_folder / "wheel", wheel)
    command = python.with_name("cerebro-db")
    data = shared_folder / "server"
    url = run(command, "server", "start", "--data", data, "--no-remember").split()[-1]
    connection = psycopg2.connect(url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'")
        assert cursor.fetchone() == (release,)
    connection.close()
    findings = json.loads(run(command, "check", "--json", "--url", url))
    assert {"OK"} <= {finding["state"] for finding in findings} <= {"OK", "WARN"}
    run(command, "server", "stop", "--data", data)
    other = make_environment(shared_folder / "source", source)
    for name in ("cerebro_db", "cerebro_plpy", "cerebro_trainer"):
        assert read_files(find_package(python, name)) == read_files(find_package(other, name))


def test_the_archive_for_pgxn_installs_what_the_wheel_has(archives: Path, tmp_path: Path) -> None:
    (archive,) = archives.glob("*.zip")
    folder = unpack(archive, tmp_path)
    assert json.loads((folder / "META.json").read_text())["version"] == archive.stem[11:]
    target = tmp_path / "installed"
    run("make", "install", f"DESTDIR={target}", cwd=folder)
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        shipped = {name: file.read(name) for name in file.namelist() if ".dist-info/" not in name}
    (control,) = target.rglob("cerebro_db.control")
    extension = {
        name.rpartition("/")[2]: content
        for name, content in shipped.items()
        if name.startswith("cerebro_db/extension/")
    }
    backend = {
        name.removeprefix("cerebro_plpy/"): content
        for name, content in shipped.items()
        if name.startswith("cerebro_plpy/")
    }
    pages = {name: extension.pop(name) for name in ("VERSION", "sql-reference.md")}
    assert read_files(control.parent) == extension
    (package,) = target.rglob("cerebro_plpy")
    assert read_files(package) == {**backend, **pages}
