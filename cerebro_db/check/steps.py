"""The steps of `cerebro-db check`, in the order of an installation.

Each step requires only the parts that earlier steps have checked.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.text import Text

from cerebro_db.check import machine, segments
from cerebro_db.check.finding import Finding
from cerebro_db.check.old_runs import check_old_runs
from cerebro_db.check.segments import describe_machine, describe_software, fetch_row
from cerebro_db.display.boards import escape_text
from cerebro_db.driver import get_engine, translate_errors
from cerebro_db.errors import CerebroError, convert_driver_error
from cerebro_db.server.deployment import find_release

MIN_POSTGRESQL = 14
Check = Callable[[sa.Connection], Finding | None]
"""A step; it returns None if it does not apply to the server."""
STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def print_findings(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings, and print each one first."""
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(
            Text(f"{finding.state:<5}", STYLES[finding.state]),
            escape_text(f"{finding.step}: {finding.summary}"),
        )
        for line in finding.remedy.splitlines():
            console.print(escape_text(f"      {line}"))
        yield finding


def check_server(url: str) -> Iterator[Finding]:
    """Yield the findings of all steps, until a step fails that the later ones require."""
    try:
        with translate_errors(), get_engine(url).connect() as connection:
            for name, is_required, check in STEPS:
                finding = _run_step(check, connection)
                if finding is None:
                    continue
                yield replace(finding, step=name)
                if is_required and finding.state == "FAIL":
                    return
    except CerebroError as error:
        remedy = (
            "Is it running, and is the URL right? `cerebro-db server start` starts the embedded "
            "one."
        )
        yield Finding(
            step="server", state="FAIL", summary=error.message, remedy=error.hint or remedy
        )


def _run_step(check: Check, connection: sa.Connection) -> Finding | None:
    """Run a step in a transaction of its own; an error becomes a finding."""
    try:
        with translate_errors(), connection.begin():
            return check(connection)
    except CerebroError as error:
        summary = "; ".join(filter(None, (error.message, error.detail)))
        remedy = error.hint or "The server's log may say more."
        return Finding(state="FAIL", summary=summary, remedy=remedy)


def _check_version(connection: sa.Connection) -> Finding:
    number, name, user, database = fetch_row(
        connection,
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " session_user, current_database()",
    )
    summary = f"PostgreSQL {name}, database {database}, as {user}"
    product = segments.find_product(connection)
    if product is None:
        is_supported = number >= MIN_POSTGRESQL * 10000
        remedy = f"PostgreSQL {MIN_POSTGRESQL} or newer is needed."
    else:
        summary = f"{product}, {summary}"
        is_supported = number // 10000 in segments.KERNELS
        kernels = "; or ".join(
            f"PostgreSQL {kernel} ({servers})" for kernel, servers in segments.KERNELS.items()
        )
        remedy = f"A server with segments is known that is made of {kernels}."
    if not is_supported:
        return Finding(state="FAIL", summary=summary, remedy=remedy)
    return Finding(summary=summary)


def _check_extension(connection: sa.Connection) -> Finding:
    client_version = find_release()
    extension = connection.exec_driver_sql(
        "SELECT extversion, extnamespace::regnamespace::text AS schema FROM pg_extension "
        "WHERE extname = 'cerebro_db'"
    ).first()
    if extension is None:
        remedy = "As a superuser of this database: CREATE EXTENSION cerebro_db CASCADE;"
        return Finding(state="FAIL", summary="not in this database", remedy=remedy)
    server_version = extension.extversion
    summary = f"version {server_version} in schema {extension.schema}"
    if server_version != client_version:
        return Finding(
            state="FAIL",
            summary=f"{summary}, but this client is version {client_version}",
            remedy=f"Install version {client_version} on the server and, as a superuser, run\n"
            "ALTER EXTENSION cerebro_db UPDATE; or install version "
            f"{server_version} of this client.",
        )
    return Finding(summary=summary)


def _check_plpython(connection: sa.Connection) -> Finding:
    report = _read_report(connection, "python_version")
    python = report["python"]
    summary = f"Python {python}, cerebro_plpy {report['package']}, psycopg2 {report['psycopg2']}"
    if report["package"] != report["extension"]:
        return Finding(
            state="FAIL",
            summary=f"{summary}, but the extension is version {report['extension']}",
            remedy="Install both from one version (`make install`), then connect anew.",
        )
    if report["psycopg2"] is None:
        return Finding(
            state="FAIL",
            summary=summary,
            remedy=f"Install psycopg2 for the server's Python {python} (on Debian: "
            "python3-psycopg2).",
        )
    return Finding(summary=summary)


def _check_trainer(connection: sa.Connection) -> Finding:
    if segments.find_product(connection):
        return segments.check_trainers(connection, find_release())
    report = _read_report(connection, "trainer_report")
    return Finding(summary=f"{describe_software(report)}, {describe_machine(report)}")


def _check_trees(connection: sa.Connection) -> Finding | None:
    """Check that trainers can grow boosted trees, which need a library of their own."""
    if segments.find_product(connection):
        return None  # trees learn from all rows at once, which lie apart there
    try:
        with connection.begin_nested():
            library = _read_report(connection, "trainer_report")["lightgbm"]
    except sa.exc.DBAPIError:
        return None  # the step before has reported why no trainer starts
    if library["version"]:
        return Finding(summary=f"LightGBM {library['version']}")
    python = connection.exec_driver_sql(
        "SELECT value FROM cerebro.setting WHERE name = 'trainer_python'"
    ).scalar()
    return Finding(
        state="WARN",
        summary=f"template boosting is left out: {library['problem']}",
        remedy=f"Install LightGBM for the trainers: {python} -m pip install 'lightgbm>=4.5'\n"
        "It needs OpenMP's library: on Debian, apt-get install libgomp1",
    )


def _check_workers(connection: sa.Connection) -> Finding:
    user, database = fetch_row(connection, "SELECT current_user, current_database()")
    try:
        with connection.begin_nested():
            report = _read_report(connection, "worker_report")
    except sa.exc.DBAPIError as error:
        summary = convert_driver_error(error.orig or error).message.splitlines()[0]
        remedy = _explain_authentication(connection, user, database)
        return Finding(state="FAIL", summary=summary, remedy=remedy)
    summary = f"a session opens as {report['user']}"
    if report["user"] != user or not report["same_server"]:
        return Finding(
            state="FAIL",
            summary=f"{summary}, same server: {report['same_server']}",
            remedy="cerebro.setting's row worker_conninfo must lead to this very server, past any "
            "pooler.",
        )
    return Finding(summary=summary)


def _explain_authentication(connection: sa.Connection, user: str, database: str) -> str:
    """Return the settings that allow the server's system user to connect as `user`.

    The system user is assumed to have the usual name.
    """
    if segments.find_product(connection):
        server = "coordinator"
        shortcut = ""
        system_user = "gpadmin"
        socket = "/tmp"
    else:
        server = "server"
        names = f"--database {shlex.quote(database)} --role {shlex.quote(user)}"
        shortcut = f"`cerebro-db setup {names}`, as root on the server, does this:\n"
        system_user = "postgres"
        socket = "/var/run/postgresql"
    folders = connection.exec_driver_sql(
        "SELECT setting FROM pg_settings WHERE name = 'unix_socket_directories' AND setting <> ''"
    ).scalar()
    if folders:
        socket = folders.split(",")[0].strip()
    port = connection.exec_driver_sql("SHOW port").scalar_one()
    return (
        f"Worker sessions connect from the {server} to itself as the calling user. "
        "To let them in:\n"
        f"{shortcut}"
        f"add to pg_ident.conf (`{system_user}` stands for the system user that runs the server;\n"
        "the second line keeps letting system users in under their own names)\n"
        f'    cerebro  {system_user:<9}  "{user}"\n'
        "    cerebro  /^(.*)$    \\1\n"
        "add to pg_hba.conf, before its other lines\n"
        f'    local  "{database}"  "{user}"  peer  map=cerebro\n'
        "and then, as a superuser\n"
        "    SELECT pg_reload_conf();\n"
        f"    SELECT cerebro.set('worker_conninfo', 'host={socket} port={port}');"
    )


def _read_report(connection: sa.Connection, function: str) -> dict[str, Any]:
    report: dict[str, Any] = connection.exec_driver_sql(f"SELECT cerebro.{function}()").scalar_one()
    return report


# Name of a step, whether the later steps require it, and its function.
STEPS: tuple[tuple[str, bool, Check], ...] = (
    ("server", True, _check_version),
    ("extension", True, _check_extension),
    ("PL/Python", True, _check_plpython),
    ("trainer", False, _check_trainer),
    ("boosted trees", False, _check_trees),
    ("worker sessions", False, _check_workers),
    ("compiled code", False, machine.check_compilation_cache),
    ("old runs", False, check_old_runs),
    ("cancels", False, segments.check_cancels),
    ("out of memory", False, machine.check_out_of_memory),
    ("process 1", False, machine.check_first_process),
)
