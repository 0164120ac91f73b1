"""System users: root acts as the owner of the server, or of a folder, for single steps."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cerebro_db.errors import InsufficientPrivilege

PEER_USERS = 200  # most users for whom logins are tried; a directory service may list thousands


@contextmanager
def act_as(user: pwd.struct_passwd) -> Iterator[None]:
    """Give this process the effective user, with that user's home and no variables of libpq.

    The server sees the effective user as the peer of a socket, and the kernel checks its access to
    files. In a folder of somebody else root would follow links that its owner has planted.

    Raises:
        InsufficientPrivilege: this process belongs to another user, who is not root.
    """
    caller = os.geteuid()
    if caller not in (0, user.pw_uid):
        raise InsufficientPrivilege(
            f"this runs as {pwd.getpwuid(caller).pw_name}, but has to act as {user.pw_name}",
            hint=f"Run the command as root, or as {user.pw_name}.",
        )
    environment = dict(os.environ)
    for name in [name for name in environment if name.startswith("PG")]:
        del os.environ[name]
    os.environ["HOME"] = user.pw_dir
    groups = os.getgroups()
    group = os.getegid()
    try:
        if caller != user.pw_uid:
            os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
            os.setegid(user.pw_gid)
            os.seteuid(user.pw_uid)
        yield
    finally:
        if caller != user.pw_uid:
            os.seteuid(caller)
            os.setegid(group)
            os.setgroups(groups)
        os.environ.clear()
        os.environ.update(environment)


def find_owner(path: Path) -> pwd.struct_passwd:
    """Return the owner of the path, or of its nearest folder that exists."""
    while not path.exists():
        path = path.parent
    return pwd.getpwuid(path.stat().st_uid)


def can_act_as(user: pwd.struct_passwd) -> bool:
    """Return whether this process may act as the user."""
    return os.geteuid() in (0, user.pw_uid)


def list_peers() -> list[pwd.struct_passwd]:
    """Return the system users whose logins over the socket this process can try."""
    users = [user for user in pwd.getpwall() if can_act_as(user)]
    return users[:PEER_USERS]
