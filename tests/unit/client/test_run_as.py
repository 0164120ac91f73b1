"""The folder of a server that several processes start for the first time at once, and calls of root
for its owner.
"""

from __future__ import annotations

import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pytest

from cerebro_db.errors import ObjectNotReady
from cerebro_db.server import run_as

STARTS = 8


def test_concurrent_starts_may_create_the_folder(tmp_path: Path) -> None:
    """No start fails because another one was faster."""
    for number in range(50):
        barrier = Barrier(STARTS)

        def make(data: Path, together: Barrier) -> None:
            together.wait()
            run_as.prepare_folder(data)

        with ThreadPoolExecutor(STARTS) as pool:
            futures = [
                pool.submit(make, tmp_path / str(number) / "data", barrier) for _ in range(STARTS)
            ]
            for future in futures:
                future.result()
        assert (tmp_path / str(number) / "data").is_dir()


def is_owner(data: Path) -> bool:
    """Return whether this process has the rights of the owner of a folder, and no others."""
    user = pwd.getpwuid(data.stat().st_uid)
    groups = set(os.getgrouplist(user.pw_name, user.pw_gid))
    return os.getresuid() == (user.pw_uid,) * 3 and set(os.getgroups()) == groups


def refuse(data: Path) -> bool:
    raise ObjectNotReady(f"{data} is refused", hint="Try another one.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_stops_a_server_as_its_owner_who_cannot_execute_this_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_as, "find_interpreter", lambda: Path("/nowhere/python"))
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        assert run_as.call_as_owner(Path(folder), is_owner)
        assert not is_owner(Path(folder))
        with pytest.raises(ObjectNotReady, match="refused") as caught:
            run_as.call_as_owner(Path(folder), refuse)
    assert caught.value.hint == "Try another one."
