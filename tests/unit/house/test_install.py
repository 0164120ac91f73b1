"""`make install` by the word of a pg_config, into a folder of the test's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

import pytest
from sources import read_reference

ROOT = Path(__file__).parents[3]
SHARE = "/opt/the server/share/postgresql"
PG_CONFIG = """#!/bin/sh
case "$1" in
    --version) echo 'PostgreSQL {version}';;
    --sharedir) echo '{share}';;
    --bindir) echo '{bindir}';;
    --pkglibdir) echo '{bindir}';;
    *) exit 1;;
esac
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing is built: what is refused is refused before."""
    return of_image("postgres", tmp_path_factory.mktemp("shared"))


def of_image(image: str, folder: Path) -> Path:
    """What an image gets of the clone. A copy, since make builds there and tests run side by
    side.
    """
    sent = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    lines = (ROOT / "docker" / f"{image}.Dockerfile").read_text().splitlines()
    made = folder / "clone"
    for *names, target in (line.split()[1:] for line in lines if line.startswith("COPY ")):
        for name in () if target.startswith("/") else names:
            assert name in sent
            source = ROOT / name
            copy = made / target / source.name if target.endswith("/") else made / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
    return made


def pg_config(folder: Path, version: str = "14.1") -> Path:
    bindir = folder / "bin"
    bindir.mkdir()
    return script(
        bindir / "pg_config", PG_CONFIG.format(share=SHARE, bindir=bindir, version=version)
    )


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def python(path: Path, version: tuple[int, int, int]) -> Path:
    """An interpreter that says it has another version."""
    code = f"import sys; sys.version_info = {version}; exec(sys.argv[2])"
    return script(
        path,
        f'#!/bin/sh\n[ "$1" = -V ] && echo Python {".".join(map(str, version))} && exit\n'
        f"exec {sys.executable} -c '{code}' \"$@\"\n",
    )


def scripts() -> set[str]:
    """The script of this version, and those that update each released one."""
    (version,) = re.findall(r"default_version = '(.+)'", (ROOT / "cerebro_db.control").read_text())
    old = [path.name.partition("--")[0] for path in (ROOT / "migrations").glob("*.sql")]
    return {f"cerebro_db--{version}.sql", *(f"cerebro_db--{name}--{version}.sql" for name in old)}


def install(clone: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    command = [
        "make",
        "install",
        f"PLPYTHON={sys.executable}",
        *(f"{n}={v}" for n, v in variables.items()),
    ]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True)


@pytest.mark.parametrize("image", ["postgres", "greenplum"])
def test_what_is_installed(image: str, tmp_path: Path) -> None:
    """And on Greenplum, what its other hosts need is listed."""
    config = pg_config(tmp_path, "14.1" if image == "postgres" else "12.12")
    if image == "greenplum":
        (config.parent / "gpstate").touch()
    done = install(of_image(image, tmp_path), PG_CONFIG=config, DESTDIR=tmp_path / "to")
    assert done.returncode == 0, done.stderr
    extension = {str(path) for path in (tmp_path / f"to{SHARE}/extension").iterdir()}
    assert {"cerebro_db.control", *scripts()} <= {Path(path).name for path in extension}
    (package,) = (tmp_path / "to").rglob("site-packages/cerebro_plpy")
    source = ROOT / "plpy/cerebro_plpy"
    shipped = {
        path.relative_to(source) for path in source.rglob("*") if path.suffix in (".py", ".sql")
    }
    assert shipped <= {path.relative_to(package) for path in package.rglob("*")}
    assert (package / "VERSION").exists()
    assert (package / "sql-reference.md").read_text() == read_reference()
    told = {line.strip() for line in done.stdout.splitlines() if line.startswith("    /")}
    assert told == ({*extension, f"{package}/"} if image == "greenplum" else set())
    assert ("Greenplum" in done.stdout) == (image == "greenplum")
    check_compiled(package)


def check_compiled(package: Path) -> None:
    """By what is in each file: who imports a copy may not be able to write there, and would compile
    it each time.
    """
    by_hash, checked = 1, 2
    for source in package.rglob("*.py"):
        head = Path(cache_from_source(str(source))).read_bytes()[:16]
        assert head[:8] == MAGIC_NUMBER + (by_hash | checked).to_bytes(4, "little")
        assert head[8:] == source_hash(source.read_bytes())


@pytest.mark.parametrize("version", ["9.4.26", "13.4", "16.2"])
def test_a_greenplum_of_another_postgresql_is_refused(
    clone: Path, tmp_path: Path, version: str
) -> None:
    config = pg_config(tmp_path, version)
    (config.parent / "gpstate").touch()
    told = refusal(install(clone, PG_CONFIG=config, DESTDIR=tmp_path / "to"))
    assert f"PostgreSQL {version}" in told and "Greenplum 7" in told
    assert not (tmp_path / "to").exists()


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """What is said of an installation that is not begun: nothing of a command that the shell does
    not find.
    """
    assert done.returncode
    assert "not found" not in done.stderr
    return done.stderr


def test_a_server_that_cannot_have_it_is_named_with_what_is_needed(
    clone: Path, tmp_path: Path
) -> None:
    target = tmp_path / "to"
    told = refusal(install(clone, PG_CONFIG="/nowhere/pg_config", DESTDIR=target))
    assert "/nowhere/pg_config" in told and "PostgreSQL 14 or newer" in told
    told = refusal(
        install(
            clone, PG_CONFIG=pg_config(tmp_path, "13.18 (Debian 13.18-0+deb11u1)"), DESTDIR=target
        )
    )
    assert "PostgreSQL 13.18" in told and "PostgreSQL 14 or newer" in told
    assert not target.exists()


def test_a_python_that_cannot_run_it_is_named_with_what_is_needed(
    clone: Path, tmp_path: Path
) -> None:
    target, config = tmp_path / "to", pg_config(tmp_path)
    old = python(tmp_path / "python", (3, 6, 8))
    told = refusal(install(clone, PG_CONFIG=config, DESTDIR=target, PLPYTHON=old))
    assert "Python 3.6.8" in told and "3.9 or newer" in told
    assert "/nowhere/python" in refusal(
        install(clone, PG_CONFIG=config, DESTDIR=target, PLPYTHON="/nowhere/python")
    )
    assert not target.exists()


def bootstrapped(clone: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    """What `make demo` begins with, as an ordinary user where root would install something."""
    environment = {
        "PATH": os.environ["PATH"],
        **{name: str(value) for name, value in variables.items()},
    }
    return subprocess.run(
        [clone / ".ci/bootstrap"], env=environment, capture_output=True, text=True
    )


def test_a_machine_that_has_what_is_too_old_is_told_what_was_found(
    clone: Path, tmp_path: Path
) -> None:
    old = pg_config(tmp_path, "13.18")
    (tmp_path / "bin/plpython3.so").touch()
    told = refusal(bootstrapped(clone, PG_CONFIG=old))
    assert f"PostgreSQL 13.18 ({old})" in told and "PostgreSQL 14 or newer" in told
    told = refusal(bootstrapped(clone, PYTHON=python(tmp_path / "python", (3, 10, 4))))
    assert "Python 3.10.4" in told and "Python 3.11, 3.12 or 3.13" in told


def test_a_python_that_has_no_tensorflow_yet_is_passed_over(clone: Path, tmp_path: Path) -> None:
    new = python(tmp_path / "python", (3, 14, 0))
    assert "Python 3.14.0" in refusal(bootstrapped(clone, PYTHON=new))
    chosen = subprocess.run(
        [clone / ".ci/python"], env={**os.environ, "PYTHON": f"{new} {sys.executable}"}, stdout=-1
    )
    assert chosen.stdout.decode().strip() == sys.executable


def test_without_a_python_make_says_nothing_of_its_own(clone: Path) -> None:
    done = subprocess.run(["make", "help", "PYTHON="], cwd=clone, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


VENV = """#!/bin/sh
echo anew >>venvs
rm -rf .venv
mkdir -p .venv/bin
printf '%s\\n' '#!/bin/sh' >.venv/bin/python
echo 'case "$*" in *install*) exec ./pip;; *) exec ./import;; esac' >>.venv/bin/python
chmod +x .venv/bin/python
"""


@pytest.mark.parametrize("broken", ["pip", "import"])
def test_an_installation_that_broke_off_is_begun_anew(tmp_path: Path, broken: str) -> None:
    """pip takes what a killed pip left for whole; so does whoever looks at a folder only."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/packages", tmp_path / ".ci")
    venv = script(tmp_path / ".ci/venv", VENV)
    for name in ("pip", "import"):
        script(tmp_path / name, "#!/bin/sh\nexit 0\n")
    script(tmp_path / broken, "#!/bin/sh\nexit 1\n")
    subprocess.run([venv], cwd=tmp_path, check=True)
    begun = []
    for works in (False, True, True):
        if works:
            script(tmp_path / broken, "#!/bin/sh\nexit 0\n")
        done = subprocess.run([".ci/packages", "python", "demo"], cwd=tmp_path)
        assert (done.returncode == 0) == works
        begun.append((tmp_path / "venvs").read_text().count("anew"))
    assert begun == [1, 2, 2]


def setup(*arguments: str, **variables: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"]} | {n: str(v) for n, v in variables.items()}
    return subprocess.run(
        [ROOT / "setup", *arguments], env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["--role", "a"], 2)])
def test_setup_says_how_it_is_called(arguments: list[str], status: int, tmp_path: Path) -> None:
    """Before anything is installed."""
    done = setup(*arguments, CEREBRO_HOME=tmp_path / "home")
    assert done.returncode == status
    assert "./setup --database flowers --role ann" in done.stdout
    assert not (tmp_path / "home").exists()


def test_a_dry_run_of_setup_prints_what_it_would_install(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = setup("--database", "flowers", "--dry-run", CEREBRO_HOME=home)
    assert done.returncode == 0, done.stderr
    assert f"-m venv {home}\n" in done.stdout
    assert f"{home}/bin/python -m pip install {ROOT}\n" in done.stdout
    assert "After them the same call prints the other steps" in done.stdout
    assert not home.exists()


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--drop-extension"]])
def test_a_removal_installs_nothing(more: list[str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = setup("--database", "flowers", "--remove", *more, CEREBRO_HOME=home)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"There is no {home}/bin/cerebro-db" in done.stderr
    assert not home.exists()


def test_a_removal_needs_no_new_environment(tmp_path: Path) -> None:
    """What is there removes, whatever its version; the arguments reach it as they are."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/cerebro-db", '#!/bin/sh\nprintf "<%s>" "$@"\n')
    arguments = ["--database", "two words", "--remove"]
    done = setup(*arguments, CEREBRO_HOME=tmp_path)
    assert done.stdout == "<setup><--database><two words><--remove>"
    assert os.listdir(tmp_path) == ["bin"]
