"""Whose server it is: PostgreSQL refuses to run as root, so root's calls are repeated as another
user.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from cerebro_db.errors import InsufficientPrivilege, ObjectNotReady
from cerebro_db.server.deployment import interpreter

USER = "postgres"


def give(data: Path) -> None:
    """Makes the folder for the server user, who may be unable to; one that is in use keeps its
    owner.
    """
    missing = [path for path in (data, *data.parents) if not path.exists()]
    for path in reversed(missing):
        with suppress(FileExistsError):  # another start made it just now
            path.mkdir()
            path.chmod(0o700 if path == data else 0o755)
    if data.stat().st_uid == 0 and not any(data.iterdir()):
        user = _user_of(data)
        os.chown(data, user.pw_uid, user.pw_gid)


def run(data: Path, arguments: Sequence[str], say: Callable[[str], None]) -> str:
    """Runs `cerebro-db` with these arguments as the user who owns `data`, or is to own it.

    Gives what it printed; what it said beside that is passed on, or raised if it failed.
    """
    user = _user_of(data)
    try:
        done = subprocess.run(
            [interpreter(), "-I", "-m", "cerebro_db", *arguments],
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
            f"the system user {user.pw_name} cannot run {interpreter()}",
            hint="Make the virtual environment with `make`, which puts it where that user can "
            "read it.",
        ) from error
    told, _, failure = done.stderr.partition("ERROR:")
    for line in told.splitlines():
        say(line)
    if done.returncode:
        raise ObjectNotReady(
            failure.strip() or f"the command failed with exit status {done.returncode}"
        )
    return done.stdout


def _user_of(data: Path) -> pwd.struct_passwd:
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid)
    try:
        return pwd.getpwnam(USER)
    except KeyError as error:
        raise ObjectNotReady(
            f"PostgreSQL refuses to run as root, and there is no system user {USER} to run it",
            hint="Install PostgreSQL from your system's packages, which make that user.",
        ) from error
