"""The step that lets worker sessions in: lines of pg_hba.conf and pg_ident.conf."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from cerebro_db.errors import ObjectNotReady
from cerebro_db.setup.database_steps import read_setting
from cerebro_db.setup.login_files import (
    HBA_VIEW,
    LoginFile,
    LoginFiles,
    Probe,
    change_files,
    check_files,
    find_obstacle,
    read_files,
)
from cerebro_db.setup.login_rules import Login, read_logins
from cerebro_db.setup.marked_block import (
    BEGIN,
    HbaEntry,
    IdentEntry,
    format_block,
    read_hba,
    read_ident,
    replace_block,
)
from cerebro_db.setup.step import Step
from cerebro_db.setup.target import Target

NAME = "logins"
HOST = re.compile(r"\bhost(addr)?\s*=\s*'?[^/'\s]")
RELOAD = "postgres=# SELECT pg_reload_conf();"
PASSWORD_HINT = (
    "Worker sessions can log in by password instead: see `By password` in\n"
    "docs/reference/operations.md.\n"
    "Or repeat the command with --peer: over the socket, {role} then logs in to {database} only\n"
    "from system users named {role} and {user}, without a password. Logins over TCP stay."
)


def plan_logins(target: Target) -> Step:
    """Plan the lines with which the server's system user may log in as each role.

    Raises:
        ObjectNotReady: the lines would take a login from somebody, or a file cannot be changed now.
    """
    conninfo = read_setting(target, "worker_conninfo") or ""
    if HOST.search(conninfo):
        summary = "worker_conninfo leads over the network, so no line is needed"
        return Step(name=NAME, summary=summary)
    with target.address.connect() as connection:
        files = read_files(connection)
        logins = read_logins(target.address, connection, target.database, target.roles)
        if all(login.works for login in logins):
            return Step(name=NAME, summary=_describe(target, logins))
        check_files(connection, files)
        hba_entries, ident_entries = _list_entries(target, logins)
        if not hba_entries and not ident_entries:
            return Step(name=NAME, summary=_describe(target, logins))
    hba = {*read_hba(files.hba.text), *hba_entries}
    ident = {*read_ident(files.ident.text), *ident_entries}
    texts = _make_texts(files, hba, ident)
    user = target.address.user.pw_name
    probes = [Probe(user, target.database, role) for role in target.roles]
    return _plan_change(target, files, texts, probes)


def plan_login_removal(target: Target, *, whole_database: bool) -> Step:
    """Plan to remove the lines of the target's roles, or of all roles of its database."""
    with target.address.connect() as connection:
        files = read_files(connection)
        hba_entries = read_hba(files.hba.text)
        ident_entries = read_ident(files.ident.text)
        in_database = {entry for entry in hba_entries if entry.database == target.database}
        roles = {*target.roles, *(entry.role for entry in in_database if whole_database)}
        hba = {
            entry for entry in hba_entries if entry not in in_database or entry.role not in roles
        }
        # An entry of pg_ident.conf counts for all databases.
        roles -= {entry.role for entry in hba}
        ident = {entry for entry in ident_entries if entry.role not in roles}
        texts = _make_texts(files, hba, ident)
        is_unchanged = texts[files.hba.path] == files.hba.text
        if is_unchanged and texts[files.ident.path] == files.ident.text:
            return Step(name=NAME, summary="no lines of this command are left")
        check_files(connection, files)
    return _plan_change(target, files, texts, [])


def _list_entries(target: Target, logins: list[Login]) -> tuple[list[HbaEntry], list[IdentEntry]]:
    hba: list[HbaEntry] = []
    ident: list[IdentEntry] = []
    user = target.address.user.pw_name
    for login in logins:
        if login.is_by_password and not target.has_peer_logins:
            raise ObjectNotReady(
                f"{login.role} logs in to {login.database} over the socket by pg_hba.conf, "
                f"{login.rule}; a line for worker sessions would replace that",
                hint=PASSWORD_HINT.format(role=login.role, database=login.database, user=user),
            )
        if login.is_inexplicable:
            raise ObjectNotReady(
                f"{user} cannot log in to {login.database} as {login.role}, although pg_hba.conf "
                f"allows it, {login.rule}: {login.problem}",
                hint="Remove what the message names, then repeat the command.",
            )
        hba_entries, ident_entries = login.list_entries(user)
        hba += hba_entries
        ident += ident_entries
    return hba, ident


def _plan_change(
    target: Target, files: LoginFiles, texts: dict[Path, str], probes: list[Probe]
) -> Step:
    changes = [file for file in (files.hba, files.ident) if texts[file.path] != file.text]
    obstacles = [obstacle for file in changes if (obstacle := find_obstacle(file))]

    def change() -> None:
        change_files(target.address, files, texts, probes, target.database)

    paths = " and ".join(str(file.path) for file in changes)
    backup = "with a backup beside"
    if len(changes) > 1:
        backup = f"each {backup}"
    return Step(
        name=NAME,
        summary=f"{paths}, {backup}",
        commands=(*(_describe_change(file, texts[file.path]) for file in changes), RELOAD),
        apply=None if obstacles else change,
        obstacle="; ".join(obstacles),
    )


def _describe_change(file: LoginFile, text: str) -> str:
    is_hba = file.view == HBA_VIEW
    entries = read_hba(text) if is_hba else read_ident(text)
    if not entries:
        return f"remove the block of cerebro-db from {file.path}"
    place = "at its end"
    if BEGIN in file.text:
        place = "instead of its block of cerebro-db"
    elif is_hba:
        place = "above its first line that begins with local"
    return f"{file.path}, {place}:\n{format_block(entries).rstrip()}"


def _make_texts(
    files: LoginFiles, hba: Collection[HbaEntry], ident: Collection[IdentEntry]
) -> dict[Path, str]:
    return {
        files.hba.path: replace_block(files.hba.text, hba),
        files.ident.path: replace_block(files.ident.text, ident),
    }


def _describe(target: Target, logins: list[Login]) -> str:
    if not logins:
        return "no role was named"
    user = target.address.user.pw_name
    return f"{user} logs in to {target.database} as {', '.join(login.role for login in logins)}"
