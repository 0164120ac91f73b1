"""The folder for compiled code, which trainers execute: only the server's system user may write it.

By default it is in the home of that user, one folder per server, or among temporary files if that
home cannot be used. It is never in the data directory, because base backups would contain code. An
unsafe folder is not used. If an administrator has named an unsafe folder, calls are refused. If
the default folder is unsafe, trainers store no code, and `cerebro.trainer_report` shows the reason.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

# Free space on the disk that the default requires; trainers store half as much.
MIN_FREE_BYTES = 2 << 30


@dataclass(frozen=True)
class CodeFolder:
    """The folder where trainers store compiled code."""

    path: str | None
    problem: str | None = None  # the reason why there is none, unless the setting is empty


def choose_folder(setting: str | None) -> CodeFolder:
    """Return the folder that the setting names, or the default folder without a setting.

    An empty setting means no folder.
    """
    if setting is None:
        return _find_default()
    return CodeFolder(_check_named(setting) if setting else None)


def _check_named(path: str) -> str:
    """Return a folder that an administrator has named."""
    try:
        if not os.path.isabs(path) or not stat.S_ISDIR(os.lstat(path).st_mode):
            raise _unsuitable(path, "it is no folder by its absolute path")
        _check_private(path)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is no path"
        raise InvalidParameter(
            f"compilation_cache is {path!r}; expected the absolute path of a folder of the system "
            f"user {_user()} with mode 0700: {problem}",
            hint=f"mkdir -m 0700 {path}, as {_user()}; or, as an administrator: "
            "SELECT cerebro.set('compilation_cache', NULL);",
        ) from error
    return path


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container a user may be any number
        return str(os.geteuid())


def _find_default() -> CodeFolder:
    """Return this server's folder in the first of the default locations that can be used."""
    problems = []
    for find_parent in PARENTS:
        try:
            return CodeFolder(_create_folder(find_parent()))
        except OSError as error:
            problems.append(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return CodeFolder(None, "; ".join(problems))


def _parent_in_home() -> str:
    """Return a folder in the home of the system user.

    The variable HOME is not used: it may be that of the user who started the server.
    """
    try:
        home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise _unsuitable(f"system user {os.geteuid()}", "it has no home") from None
    _check_ancestors(home)
    cache = os.path.join(home, ".cache")
    _create(cache)
    return os.path.join(os.path.realpath(cache), "cerebro_db")


def _parent_in_temporary_files() -> str:
    return os.path.join(os.path.realpath(tempfile.gettempdir()), f"cerebro_db-{os.geteuid()}")


# Default locations of the folders of a system user's servers.
PARENTS: tuple[Callable[[], str], ...] = (_parent_in_home, _parent_in_temporary_files)


def _create_folder(parent: str) -> str:
    """Return the folder of this server, which has the name of its data directory."""
    data = os.path.realpath(os.curdir)  # a backend's working directory
    if os.path.commonpath((data, parent)) == data:
        raise _unsuitable(parent, "it lies in the data directory")
    _check_ancestors(os.path.dirname(parent))
    _create(parent)
    _check_private(parent)
    folder = os.path.join(parent, data.replace("%", "%25").replace(os.sep, "%2F"))
    if _create(folder):
        _remove_stale(parent)
    _check_private(folder)
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
        raise _unsuitable(folder, f"less than {MIN_FREE_BYTES >> 30} GB of its disk are free")
    return folder


def _create(folder: str) -> bool:
    """Create a folder; return False if it exists."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    return True


def _remove_stale(parent: str) -> None:
    """Remove the folders of servers whose data directory does not exist."""
    for name in os.listdir(parent):
        data = name.replace("%2F", os.sep).replace("%25", "%")
        if os.path.isabs(data) and not os.path.exists(data):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _check_private(path: str) -> None:
    """Raise unless this is a folder, not a link, that only this system user can read and write."""
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        raise _unsuitable(path, "it is no folder")
    if status.st_uid != os.geteuid() or mode != 0o700:
        raise _unsuitable(path, f"it has owner {status.st_uid} and mode {mode:04o}")


def _check_ancestors(folder: str) -> None:
    """Raise if another user could replace an entry of this folder or of its ancestors."""
    for path in _ancestors(folder):
        status = os.lstat(path)
        others_write = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        is_trusted = status.st_uid in (0, os.geteuid())
        if not stat.S_ISDIR(status.st_mode) or others_write or not is_trusted:
            mode = stat.S_IMODE(status.st_mode)
            raise _unsuitable(
                path, f"others can change it: it has owner {status.st_uid} and mode {mode:04o}"
            )


def _ancestors(folder: str) -> Iterator[str]:
    """Yield a folder and its ancestors up to the root.

    >>> [*_ancestors("/a/b")]
    ['/a/b', '/a', '/']
    """
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        yield (folder := parent)


def _unsuitable(path: str, reason: str) -> OSError:
    return OSError(errno.EPERM, reason, path)
