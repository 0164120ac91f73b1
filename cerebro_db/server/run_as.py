"""Calls of root, which are repeated as another system user: PostgreSQL does not run as root."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

from cerebro_db.errors import InsufficientPrivilege, ObjectNotReady
from cerebro_db.server.deployment import find_interpreter

USER = "postgres"


def prepare_folder(data: Path) -> None:
    """Create the folder of the server for its user, who may lack the permission to create it.

    A folder that is not empty keeps its owner.
    """
    missing = [path for path in (data, *data.parents) if not path.exists()]
    for path in reversed(missing):
        with suppress(FileExistsError):  # a concurrent start created it
            path.mkdir()
            path.chmod(0o700 if path == data else 0o755)
    if data.stat().st_uid == 0 and not any(data.iterdir()):
        user = _choose_user(data)
        os.chown(data, user.pw_uid, user.pw_gid)


def call_as_owner(data: Path, function: Callable[[Path], bool]) -> bool:
    """Return the result of a function, which a process of the user who owns `data` calls with it.

    The process is a copy of this one: that user need not be able to execute this Python.
    """
    context = multiprocessing.get_context("fork")
    user = _choose_user(data)
    with ProcessPoolExecutor(1, context, initializer=_become, initargs=(user,)) as pool:
        return pool.submit(function, data).result()


def _become(user: pwd.struct_passwd) -> None:
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def run_command(data: Path, arguments: Sequence[str], report: Callable[[str], None]) -> str:
    """Run `cerebro-db` with these arguments as the user who owns `data`, or will own it.

    Args:
        report: receives the lines of the standard error.

    Returns:
        The standard output.

    Raises:
        ObjectNotReady: the command failed.
        InsufficientPrivilege: the user cannot execute this Python.
    """
    user = _choose_user(data)
    try:
        result = subprocess.run(
            [find_interpreter(), "-I", "-m", "cerebro_db", *arguments],
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid),
            cwd="/",
            env={**os.environ, "HOME": user.pw_dir, "USER": user.pw_name},
            capture_output=True,
            text=True,
        )
    except PermissionError as error:
        raise InsufficientPrivilege(
            f"the system user {user.pw_name} cannot run {find_interpreter()}",
            hint="Make the virtual environment with `make`, which puts it where that user can "
            "read it.",
        ) from error
    messages, _, error_message = result.stderr.partition("ERROR:")
    for line in messages.splitlines():
        report(line)
    if result.returncode:
        raise ObjectNotReady(
            error_message.strip() or f"the command failed with exit status {result.returncode}"
        )
    return result.stdout


def _choose_user(data: Path) -> pwd.struct_passwd:
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid)
    try:
        return pwd.getpwnam(USER)
    except KeyError as error:
        raise ObjectNotReady(
            f"PostgreSQL refuses to run as root, and there is no system user {USER} to run it",
            hint="Install PostgreSQL from your system's packages, which make that user.",
        ) from error
