"""The folder whose content trainers execute: one where nobody but the server's own system user can
have put anything.

By default it lies in the home of that user, with a server's name, or among temporary files where
that home cannot be used; never in the data directory, where base backups would carry code. What is
not safe is not used. Where an administrator has named a folder that is not, calls are refused;
where none was named, trainers keep no code, and `cerebro.trainer_report` says why.
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

LEAST_FREE = 2 << 30
"""Bytes of a disk that the default is to share; trainers keep half as many."""


@dataclass(frozen=True)
class CodeFolder:
    """Where trainers keep what they compiled; or why nowhere, unless that is what was wanted."""

    path: str | None
    problem: str | None = None


def chosen(setting: str | None) -> CodeFolder:
    """The folder that the setting names, none where it is empty, the usual one where there is no
    such setting.
    """
    if setting is None:
        return _usual()
    return CodeFolder(_checked(setting) if setting else None)


def _checked(path: str) -> str:
    """A folder that an administrator has named."""
    try:
        if not os.path.isabs(path) or not stat.S_ISDIR(os.lstat(path).st_mode):
            raise _unsuitable(path, "it is no folder by its absolute path")
        _check_private(path)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is no path"
        raise InvalidParameter(
            f"compilation_cache is {path!r}; expected the absolute path of a folder of the system "
            f"user {_user()} with mode 0700: {problem}",
            hint=f"mkdir -m 0700 {path}, as {_user()}; or remove compilation_cache from "
            "cerebro.setting.",
        ) from error
    return path


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container a user may be any number
        return str(os.geteuid())


def _usual() -> CodeFolder:
    """This server's folder in the first of the usual places that can be used."""
    problems = []
    for place in PLACES:
        try:
            return CodeFolder(_of_server(place()))
        except OSError as error:
            problems.append(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return CodeFolder(None, "; ".join(problems))


def _in_home() -> str:
    """Not by HOME, which may be that of whoever started the server."""
    try:
        home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise _unsuitable(f"system user {os.geteuid()}", "it has no home") from None
    _check_surroundings(home)
    cache = os.path.join(home, ".cache")
    _make(cache)
    return os.path.join(os.path.realpath(cache), "cerebro_db")


def _among_temporary_files() -> str:
    return os.path.join(os.path.realpath(tempfile.gettempdir()), f"cerebro_db-{os.geteuid()}")


PLACES: tuple[Callable[[], str], ...] = (_in_home, _among_temporary_files)
"""Where the servers of a system user have their folders."""


def _of_server(place: str) -> str:
    """The folder there that has the name of this server's data directory, in which its backends
    work.
    """
    data = os.path.realpath(os.curdir)
    if os.path.commonpath((data, place)) == data:
        raise _unsuitable(place, "it lies in the data directory")
    _check_surroundings(os.path.dirname(place))
    _make(place)
    _check_private(place)
    folder = os.path.join(place, data.replace("%", "%25").replace(os.sep, "%2F"))
    if _make(folder):
        _sweep(place)
    _check_private(folder)
    free = os.statvfs(folder)
    if free.f_bavail * free.f_frsize < LEAST_FREE:
        raise _unsuitable(folder, f"less than {LEAST_FREE >> 30} GB of its disk are free")
    return folder


def _make(folder: str) -> bool:
    """Whether there was none."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    return True


def _sweep(place: str) -> None:
    """Remove the folders of servers whose data directory is gone."""
    for name in os.listdir(place):
        data = name.replace("%2F", os.sep).replace("%25", "%")
        if os.path.isabs(data) and not os.path.exists(data):
            shutil.rmtree(os.path.join(place, name), ignore_errors=True)


def _check_private(path: str) -> None:
    """Raise unless this is a folder, and no link to one, that only this system user can look into
    and write to.
    """
    facts = os.lstat(path)
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISDIR(facts.st_mode):
        raise _unsuitable(path, "it is no folder")
    if facts.st_uid != os.geteuid() or mode != 0o700:
        raise _unsuitable(path, f"it has owner {facts.st_uid} and mode {mode:04o}")


def _check_surroundings(folder: str) -> None:
    """Raise where somebody else could put another folder in place of one in this folder, or of one
    around it.
    """
    for path in _way_to(folder):
        facts = os.lstat(path)
        others_write = facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX
        if not stat.S_ISDIR(facts.st_mode) or others_write or facts.st_uid not in (0, os.geteuid()):
            mode = stat.S_IMODE(facts.st_mode)
            raise _unsuitable(
                path, f"others can change it: it has owner {facts.st_uid} and mode {mode:04o}"
            )


def _way_to(folder: str) -> Iterator[str]:
    """A folder, and those around it up to the root.

    >>> [*_way_to("/a/b")]
    ['/a/b', '/a', '/']
    """
    yield folder
    while (around := os.path.dirname(folder)) != folder:
        yield (folder := around)


def _unsuitable(path: str, why: str) -> OSError:
    return OSError(errno.EPERM, why, path)
