"""The package as pip and a registry see it: built of a fresh clone, whole, and with requirements
that are true.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MADE_THERE = (
    ".venv",
    ".floors",
    ".matrix",
    ".git",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    ".cerebro",
)
REQUIREMENTS = [
    Requirement(text)
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in group
]
NEXT_TENSORFLOW = "2.22.0rc0"
"""All that there is for some Python."""


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of the packages in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


def ran(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing was built, but for what an earlier build left of a module that is
    gone.
    """
    made = tmp_path_factory.mktemp("fresh") / "clone"
    shutil.copytree(ROOT, made, ignore=shutil.ignore_patterns(*MADE_THERE), symlinks=True)
    (made / "build/lib/cerebro_db").mkdir(parents=True)
    (made / "build/lib/cerebro_db/removed.py").touch()
    return made


@pytest.fixture(scope="module")
def wheel(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a wheel of that clone has."""
    made = tmp_path_factory.mktemp("wheel")
    ran(
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        made,
        ".",
        cwd=fresh,
    )
    (found,) = made.glob("*.whl")
    return contents(found)


@pytest.mark.long
def test_a_fresh_clone_becomes_a_wheel_and_through_an_archive_the_same(
    fresh: Path, wheel: dict[str, bytes], tmp_path: Path
) -> None:
    ran("build", "--no-isolation", "--outdir", tmp_path / "archive", cwd=fresh)
    (by_archive,) = (tmp_path / "archive").glob("*.whl")
    assert wheel == contents(by_archive)
    packages = ((ROOT / "cerebro_db", ROOT), (ROOT / "plpy/cerebro_plpy", ROOT / "plpy"))
    shipped = {
        str(path.relative_to(parent))
        for package, parent in (*packages, (ROOT / "plpy/cerebro_trainer", ROOT / "plpy"))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel if not name.startswith("cerebro_db/extension/")} == shipped
    ran("twine", "check", "--strict", *(tmp_path / "archive").iterdir(), cwd=fresh)


def test_a_wheel_has_what_make_install_has(fresh: Path, wheel: dict[str, bytes]) -> None:
    subprocess.run(
        ["make", "all", f"PLPYTHON={sys.executable}"], cwd=fresh, check=True, capture_output=True
    )
    made = {path.name: path.read_bytes() for path in (fresh / "build").iterdir() if path.is_file()}
    folder = "cerebro_db/extension/"
    assert made == {
        n.removeprefix(folder): text for n, text in wheel.items() if n.startswith(folder)
    }


def test_no_message_names_a_package_of_a_registry_as_ours() -> None:
    """The package is installed from its clone; what has its name elsewhere is somebody else's."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    sources = [
        path for folder in ("cerebro_db", "plpy", "sql") for path in (ROOT / folder).rglob("*.*")
    ]
    for path in (*pages, *sources):
        if path.suffix in (".md", ".py", ".sql"):
            assert not re.search(
                r"cerebro[_-]db\[|install ['\"]?cerebro[_-]db", path.read_text()
            ), path


def test_python_is_one_for_which_the_requirements_can_be_had() -> None:
    """The oldest Keras that is allowed wants this Python, too; make floors has it installed."""
    wanted = SpecifierSet(PROJECT["requires-python"])
    assert Version("3.11") in wanted and Version("3.10") not in wanted
    assert metadata.metadata("keras")["Requires-Python"] == str(wanted)


@pytest.mark.parametrize(
    "found", [r for r in REQUIREMENTS if r.name.startswith("tensorflow")], ids=str
)
def test_a_pre_release_is_not_taken_because_there_is_nothing_else(found: Requirement) -> None:
    assert not [*found.specifier.filter([NEXT_TENSORFLOW])]
    assert [*found.specifier.filter(["2.19.0", NEXT_TENSORFLOW])] == ["2.19.0"]


def test_requirements_have_a_floor() -> None:
    for found in REQUIREMENTS:
        assert any(one.operator in (">=", "==") for one in found.specifier), found
