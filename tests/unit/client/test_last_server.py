"""The embedded server that was started last is the one that commands without a URL use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cerebro_db.commands.database import LIBPQ_VARIABLES, choose_url
from cerebro_db.errors import ObjectNotReady
from cerebro_db.server import embedded_server, last_server
from cerebro_db.server.cluster import Cluster, RunningServer


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has started nothing, and whose default folder is `default`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in LIBPQ_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    default = tmp_path / "default"
    monkeypatch.setattr(embedded_server, "choose_folder", lambda: default)
    return tmp_path


def run_servers(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let servers run in these folders."""

    def find_server(cluster: Cluster) -> RunningServer | None:
        if cluster.data.parent not in folders:
            return None
        return RunningServer(pid=7, port=5432, socket=cluster.data.parent / "run")

    monkeypatch.setattr(Cluster, "find_server", find_server)


def test_the_last_one_is_chosen_and_the_default_one_if_it_does_not_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [home / name for name in ("default", "first", "last")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[1:]:
        last_server.remember_folder(folder)
    run_servers(monkeypatch, *folders)
    assert "last" in choose_url(None)
    run_servers(monkeypatch, *folders[:2])
    assert "default" in choose_url(None)
    monkeypatch.setenv("PGHOST", "elsewhere")
    assert choose_url(None) == "postgresql://"
    assert choose_url("postgresql://other") == "postgresql://other"
    monkeypatch.delenv("PGHOST")
    run_servers(monkeypatch)
    with pytest.raises(ObjectNotReady) as caught:
        choose_url(None)
    assert str(home / "last") in caught.value.message
    (home / "last").rmdir()
    with pytest.raises(ObjectNotReady) as caught:
        choose_url(None)
    assert str(home / "default") in caught.value.message


def test_each_environment_remembers_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_server.remember_folder(home)
    assert last_server.find_folder() == home
    monkeypatch.setattr(sys, "prefix", "/other/environment")
    assert last_server.find_folder() is None


def test_a_home_that_cannot_be_written_to_is_no_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "state").write_text("a file")
    last_server.remember_folder(home)
    assert last_server.find_folder() is None
