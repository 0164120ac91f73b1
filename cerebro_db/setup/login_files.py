"""Changes of pg_hba.conf and pg_ident.conf after which everybody can log in who could before."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from cerebro_db.errors import CerebroError, ObjectNotReady
from cerebro_db.setup.marked_block import find_manager, replace_block
from cerebro_db.setup.server_address import MAINTENANCE, ServerAddress
from cerebro_db.setup.system_user import act_as, can_act_as, find_owner, list_peers

BACKUP = ".before-cerebro"
RELOAD_SECONDS = 30
HBA_VIEW = "pg_catalog.pg_hba_file_rules"
IDENT_VIEW = "pg_catalog.pg_ident_file_mappings"  # since PostgreSQL 15
ERRORS = "SELECT v.line_number, v.error FROM {} v WHERE v.error IS NOT NULL ORDER BY 1 LIMIT 1"


class LoginFile(NamedTuple):
    """A file that decides logins, and its text."""

    path: Path
    view: str  # contains the file's errors
    text: str


class Probe(NamedTuple):
    """A login over the socket: system user, database and role."""

    system_user: str
    database: str
    role: str


@dataclass(frozen=True, kw_only=True)
class LoginFiles:
    """The two files of a server."""

    hba: LoginFile
    ident: LoginFile


def read_files(connection: sa.Connection) -> LoginFiles:
    """Return the files that the server has loaded.

    Raises:
        ObjectNotReady: a file cannot be read.
    """
    return LoginFiles(
        hba=_read_file(connection, "hba_file", HBA_VIEW),
        ident=_read_file(connection, "ident_file", IDENT_VIEW),
    )


def find_obstacle(file: LoginFile) -> str | None:
    """Return why the file must not be edited here; None if it may be."""
    status = file.path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return f"{file.path} is a link"
    manager = find_manager(file.text)
    if manager is not None:
        return f"{file.path} belongs to another program, or to several files: {manager}"
    folder = find_owner(file.path.parent)
    if status.st_uid != folder.pw_uid:
        return f"{file.path} and its folder belong to different system users"
    if not can_act_as(folder):
        return f"{file.path} belongs to {folder.pw_name}"
    return None


def check_files(connection: sa.Connection, files: LoginFiles) -> None:
    """Check that loading the files as they are on disk would change nothing.

    Raises:
        ObjectNotReady: a file has an error, or changes that the server has not loaded.
    """
    query = "SELECT EXTRACT(epoch FROM pg_catalog.pg_conf_load_time())::double precision"
    load_time = connection.exec_driver_sql(query).scalar_one()
    for file in (files.hba, files.ident):
        check_errors(connection, file)
        if file.path.stat().st_mtime > load_time:
            raise ObjectNotReady(
                f"{file.path} has changes that the server has not loaded yet",
                hint="Look at them, then load them: SELECT pg_reload_conf();",
            )


def check_errors(connection: sa.Connection, file: LoginFile) -> None:
    """Check the file as it is on disk.

    Raises:
        ObjectNotReady: the server would refuse it.
    """
    query = "SELECT pg_catalog.to_regclass(%s)"
    if connection.exec_driver_sql(query, (file.view,)).scalar() is None:
        return
    error = connection.exec_driver_sql(ERRORS.format(file.view)).first()
    if error is not None:
        raise ObjectNotReady(
            f"{file.path} has an error in line {error.line_number}: {error.error}",
            hint="Correct that line, then repeat the command. Nothing was changed.",
        )


def change_files(
    address: ServerAddress,
    files: LoginFiles,
    texts: Mapping[Path, str],
    probes: Iterable[Probe],
    database: str,
) -> None:
    """Write new texts into files, and have the server load them.

    Args:
        texts: the new text of each file to change.
        probes: logins that must work afterwards.
        database: the database, besides the one of maintenance, whose logins must work as before.

    Raises:
        ObjectNotReady: the files would have an error, or somebody could no longer log in. All files
            have their old bytes then, and the server has loaded those.
    """
    both = (files.hba, files.ident)
    changes = [file for file in both if texts.get(file.path, file.text) != file.text]
    if not changes:
        return
    # This session stays open: after a change that locks everybody out it loads the old files.
    with address.connect() as connection:
        check_files(connection, files)
        logins = find_logins(address, {database})
        with _restore_on_error(address, connection, changes):
            for file in changes:
                # Without lines of an earlier call: what the administrator has written.
                write_file(file.path, texts[file.path], backup=replace_block(file.text, ()))
            for file in changes:
                check_errors(connection, file)
            reload(address, connection)
            _check_logins(address, [*logins, *probes])


def find_logins(address: ServerAddress, databases: Iterable[str]) -> list[Probe]:
    """Return the logins over the socket that work now under the own names of system users."""
    with address.connect() as connection:
        query = "SELECT r.rolname::text FROM pg_catalog.pg_roles r WHERE r.rolcanlogin"
        roles = set(connection.exec_driver_sql(query).scalars())
    return [
        Probe(peer.pw_name, database, peer.pw_name)
        for peer in list_peers()
        for database in sorted({MAINTENANCE, *databases})
        if peer.pw_name in roles and address.can_log_in(peer, database, peer.pw_name)
    ]


def write_file(path: Path, text: str, *, backup: str | None = None) -> None:
    """Replace a file at once, with its old owner and mode; a backup of `backup` lies beside it."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    with act_as(find_owner(path.parent)):
        if backup is not None:
            _write(path.with_name(path.name + BACKUP), backup, mode, status.st_gid)
        _write(path, text, mode, status.st_gid)


def reload(address: ServerAddress, connection: sa.Connection) -> None:
    """Have the server load its files, and wait until a new session would see that.

    Raises:
        ObjectNotReady: the superuser cannot log in, or the server does not load the files.
    """
    query = "SELECT pg_catalog.pg_conf_load_time()::text"
    old_time = connection.exec_driver_sql(query).scalar_one()
    connection.exec_driver_sql("SELECT pg_catalog.pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_SECONDS
    error: CerebroError | None = None
    while time.monotonic() < deadline:
        try:
            with address.connect() as session:
                if session.exec_driver_sql(query).scalar_one() != old_time:
                    return
        except CerebroError as failure:
            error = failure
            break
        time.sleep(0.02)
    raise ObjectNotReady(
        f"the superuser cannot log in any more: {error.message}"
        if error
        else f"the server has not loaded its files within {RELOAD_SECONDS} seconds"
    )


@contextmanager
def _restore_on_error(
    address: ServerAddress, connection: sa.Connection, files: list[LoginFile]
) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        for file in files:
            write_file(file.path, file.text)
        with suppress(CerebroError):
            reload(address, connection)
        if not isinstance(error, CerebroError):
            raise
        names = " and ".join(file.path.name for file in files)
        raise ObjectNotReady(
            error.message,
            detail=f"{names} were restored, and the server has loaded the old bytes again.",
            hint="Write the lines by hand: `cerebro-db setup --dry-run` prints them.",
        ) from error


def _check_logins(address: ServerAddress, probes: Iterable[Probe]) -> None:
    peers = {peer.pw_name: peer for peer in list_peers()} | {address.user.pw_name: address.user}
    for probe in probes:
        problem = address.try_login(peers[probe.system_user], probe.database, probe.role)
        if problem is not None:
            raise ObjectNotReady(
                f"with the new lines the system user {probe.system_user} cannot log in as "
                f"{probe.role} in the database {probe.database}: {problem}"
            )


def _read_file(connection: sa.Connection, setting: str, view: str) -> LoginFile:
    path = Path(connection.exec_driver_sql(f"SHOW {setting}").scalar_one())
    try:
        # Bytes that are not UTF-8 must come out as they went in.
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise ObjectNotReady(
            f"cannot read {path}: {error.strerror}",
            hint="Run the command as root, on the machine of the server.",
        ) from error
    return LoginFile(path, view, text)


def _write(path: Path, text: str, mode: int, group: int) -> None:
    part = path.with_name(path.name + ".new")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as stream:
        with suppress(PermissionError):  # the owner may be no member of the file's group
            os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, mode)
        stream.write(text.encode("utf-8", "surrogateescape"))
        stream.flush()
        os.fsync(descriptor)
    part.replace(path)
