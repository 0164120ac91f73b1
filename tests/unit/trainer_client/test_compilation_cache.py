"""The folder of compiled code: whose it is, where it is none, and that nobody else's is ever
used.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.trainer_client.process.compilation_cache import CodeFolder, choose_folder
from cerebro_plpy.trainer_client.settings import FRAMEWORKS, Settings, TrainerOptions, trainer_spec

OTHER = 12345
"""A system user that is none of this process."""


class Machine:
    """A home, a folder of temporary files, and data directories of servers, each of which may be
    wrong.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._patch = root, monkeypatch
        self.home, self.temporary = self.folder("home", 0o755), self.folder("tmp", 0o1777)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(self.temporary))
        self.users({"pw_dir": str(self.home), "pw_name": "postgres"})
        self.serve("data")

    def folder(self, name: str, mode: int = 0o700) -> Path:
        """Make one."""
        path = self.root / name
        path.mkdir()
        path.chmod(mode)
        return path

    def users(self, user: dict[str, str] | None) -> None:
        """What the system says of its user, if it knows it."""

        def found(number: int) -> SimpleNamespace:
            if user is None:
                raise KeyError(number)
            return SimpleNamespace(**user)

        self._patch.setattr(pwd, "getpwuid", found)

    def serve(self, name: str) -> Path:
        """Be a backend of a server with this data directory."""
        path = self.root / name
        if not path.exists():
            self.folder(name)
        self._patch.chdir(path)
        return path

    def of_another(self, path: Path) -> None:
        """Let a folder be somebody else's."""
        real = os.lstat

        def lstat(asked: str | Path) -> os.stat_result:
            facts = list(real(asked))
            if Path(asked) == path:
                facts[4] = OTHER
            return os.stat_result(facts)

        self._patch.setattr(os, "lstat", lstat)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_it_is_private_and_lies_in_the_home_of_the_server_s_user(machine: Machine) -> None:
    path = choose_folder(None).path
    assert path is not None
    assert machine.home in Path(path).parents
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert choose_folder(None) == CodeFolder(path)


def test_two_servers_do_not_share(machine: Machine) -> None:
    first = choose_folder(None).path
    machine.serve("other data")
    assert choose_folder(None).path not in (None, first)
    machine.serve("data")
    assert choose_folder(None).path == first


def test_the_folder_of_a_server_goes_when_another_comes_after_it(machine: Machine) -> None:
    gone, stays = machine.serve("gone"), machine.serve("stays")
    folders = []
    for data in (gone, stays):
        machine.serve(data.name)
        folders.append(Path(str(choose_folder(None).path)))
        (folders[-1] / "code").touch()
    machine.serve("new")
    gone.rmdir()
    choose_folder(None)
    assert [(folder / "code").exists() for folder in folders] == [False, True]


def test_an_empty_setting_means_none(machine: Machine) -> None:
    assert choose_folder("") == CodeFolder(None)
    assert not list(machine.home.iterdir())


def test_whoever_keeps_no_code_is_given_no_folder(machine: Machine) -> None:
    usual, named = (
        Settings(trainer_python="/python"),
        Settings(trainer_python="/python", compilation_cache="/nowhere"),
    )
    for framework in FRAMEWORKS:
        asked = TrainerOptions(framework=framework)
        assert bool(trainer_spec(usual, asked).compilation_cache) == (framework == "jax")
        with pytest.raises(InvalidParameter, match="compilation_cache is"):
            trainer_spec(named, asked)


def link(machine: Machine, path: Path) -> None:
    path.symlink_to(machine.folder("elsewhere"))


def open_to_all(machine: Machine, path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def open_to_readers(machine: Machine, path: Path) -> None:
    path.mkdir()
    path.chmod(0o750)


def another_s(machine: Machine, path: Path) -> None:
    path.mkdir(mode=0o700)
    machine.of_another(path)


def a_file(machine: Machine, path: Path) -> None:
    path.touch()


WRONG = (link, open_to_all, open_to_readers, another_s, a_file)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("depth", [0, 1])
def test_what_somebody_else_could_have_made_is_not_used(
    machine: Machine, wrong: Callable[[Machine, Path], None], depth: int
) -> None:
    """Of the folder itself, and of that around it: the next place serves, and after that none."""
    usual = Path(str(choose_folder(None).path))
    place = (usual, usual.parent)[depth]
    usual.rmdir()
    if depth:
        place.rmdir()
    wrong(machine, place)
    second = choose_folder(None).path
    assert second is not None
    assert machine.temporary in Path(second).parents
    machine.temporary.chmod(0o777)  # in which anybody can put another in its place
    found = choose_folder(None)
    assert found.path is None
    assert str(place) in str(found.problem)
    assert str(machine.temporary) in str(found.problem)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_setting_that_is_not_safe_is_refused(
    machine: Machine, wrong: Callable[[Machine, Path], None]
) -> None:
    path = machine.root / "named"
    wrong(machine, path)
    with pytest.raises(InvalidParameter, match="compilation_cache is"):
        choose_folder(str(path))


def test_a_home_that_others_can_write_to_is_not_used(machine: Machine) -> None:
    machine.home.chmod(0o777)
    assert machine.temporary in Path(str(choose_folder(None).path)).parents
    assert not list(machine.home.iterdir())


def test_a_user_may_have_no_home(machine: Machine) -> None:
    for user in (None, {"pw_dir": "/nonexistent", "pw_name": "nobody"}):
        machine.users(user)
        assert machine.temporary in Path(str(choose_folder(None).path)).parents


def test_it_is_never_in_the_data_directory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.home)
    assert machine.temporary in Path(str(choose_folder(None).path)).parents


def test_a_disk_that_is_nearly_full_is_left_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "statvfs", lambda path: SimpleNamespace(f_bavail=(1 << 19) - 1, f_frsize=4096)
    )
    found = choose_folder(None)
    assert found.path is None
    assert "less than 2 GB of its disk are free" in str(found.problem)
