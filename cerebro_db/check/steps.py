"""Checks a server step by step, from the outside in, and says what to do about each failure.

The order is that of an installation: each step needs only what the steps before it have proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.text import Text

from cerebro_db.check import machine, segments
from cerebro_db.check.finding import Finding
from cerebro_db.check.segments import row
from cerebro_db.display.boards import escape_text
from cerebro_db.driver import get_engine, translate_errors
from cerebro_db.errors import CerebroError, convert_driver_error

OLDEST = 14
STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def told(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, each printed as soon as it is there."""
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(
            Text(f"{finding.state:<5}", STYLES[finding.state]),
            escape_text(f"{finding.step}: {finding.told}"),
        )
        for line in finding.remedy.splitlines():
            console.print(escape_text(f"      {line}"))
        yield finding


def examine(url: str) -> Iterator[Finding]:
    """The findings, in order; after a failure of a step that the others need there are no more."""
    try:
        with translate_errors(), get_engine(url).connect() as connection:
            for name, others_need_it, step in STEPS:
                finding = _taken(step, connection)
                if finding is not None:
                    yield replace(finding, step=name)
                    if others_need_it and finding.state == "FAIL":
                        return
    except CerebroError as error:
        remedy = (
            "Is it running, and is the URL right? `cerebro-db server start` starts the embedded "
            "one."
        )
        yield Finding(step="server", state="FAIL", told=error.message, remedy=error.hint or remedy)


def _taken(
    step: Callable[[sa.Connection], Finding | None], connection: sa.Connection
) -> Finding | None:
    try:
        with translate_errors(), connection.begin():
            return step(connection)
    except CerebroError as error:
        told = "; ".join(filter(None, (error.message, error.detail)))
        return Finding(
            state="FAIL", told=told, remedy=error.hint or "The server's log may say more."
        )


def _server(connection: sa.Connection) -> Finding:
    number, name, user, database = row(
        connection,
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " session_user, current_database()",
    )
    product = segments.greenplum(connection)
    server = f"{product}, PostgreSQL {name}" if product else f"PostgreSQL {name}"
    told = f"{server}, database {database}, as {user}"
    known = number // 10000 in segments.KERNELS if product else number >= OLDEST * 10000
    if not known:
        kernels = "; or ".join(
            f"PostgreSQL {kernel} ({of})" for kernel, of in segments.KERNELS.items()
        )
        needed = f"A server with segments is known that is made of {kernels}." if product else ""
        return Finding(
            state="FAIL", told=told, remedy=needed or f"PostgreSQL {OLDEST} or newer is needed."
        )
    return Finding(told=told)


def _extension(connection: sa.Connection) -> Finding:
    ours = version("cerebro_db")
    found = connection.exec_driver_sql(
        "SELECT extversion, extnamespace::regnamespace::text FROM pg_extension WHERE extname = "
        "'cerebro_db'"
    ).first()
    if found is None:
        remedy = "As a superuser of this database: CREATE EXTENSION cerebro_db CASCADE;"
        return Finding(state="FAIL", told="not in this database", remedy=remedy)
    told = f"version {found[0]} in schema {found[1]}"
    if found[0] != ours:
        return Finding(
            state="FAIL",
            told=f"{told}, but this client is version {ours}",
            remedy=f"Install version {ours} on the server and, as a superuser, run\n"
            f"ALTER EXTENSION cerebro_db UPDATE; or install version {found[0]} of this client.",
        )
    return Finding(told=told)


def _plpython(connection: sa.Connection) -> Finding:
    report = _report(connection, "python_version")
    python = report["python"]
    told = f"Python {python}, cerebro_plpy {report['package']}, psycopg2 {report['psycopg2']}"
    if report["package"] != report["extension"]:
        return Finding(
            state="FAIL",
            told=f"{told}, but the extension is version {report['extension']}",
            remedy="Install both from one version (`make install`), then connect anew.",
        )
    if report["psycopg2"] is None:
        return Finding(
            state="FAIL",
            told=told,
            remedy=f"Install psycopg2 for the server's Python {python} (on Debian: "
            "python3-psycopg2).",
        )
    return Finding(told=told)


def _trainer(connection: sa.Connection) -> Finding:
    if segments.greenplum(connection):
        return segments.trainers(connection, version("cerebro_db"))
    report = _report(connection, "trainer_report")
    framework = (
        f"{report['framework']} {report['framework_version']}, Keras {report['keras_version']}"
    )
    machine = f"{report['threads']} threads, devices {', '.join(report['devices'])}"
    return Finding(told=f"{framework}, Python {report['python_version']}, {machine}")


def _workers(connection: sa.Connection) -> Finding:
    user, database = row(connection, "SELECT current_user, current_database()")
    try:
        with connection.begin_nested():
            report = _report(connection, "worker_report")
    except sa.exc.DBAPIError as error:
        told = convert_driver_error(error.orig or error).message.splitlines()[0]
        return Finding(state="FAIL", told=told, remedy=_authentication(connection, user, database))
    told = f"a session opens as {report['user']}"
    if report["user"] != user or not report["same_server"]:
        remedy = (
            "cerebro.setting's row worker_conninfo must lead to this very server, past any pooler."
        )
        return Finding(
            state="FAIL", told=f"{told}, same server: {report['same_server']}", remedy=remedy
        )
    return Finding(told=told)


def _authentication(connection: sa.Connection, user: str, database: str) -> str:
    """What lets the server's own system user, which here is taken to be the usual one, connect as
    `user`.
    """
    told = connection.exec_driver_sql(
        "SELECT setting FROM pg_settings WHERE name = 'unix_socket_directories' AND setting <> ''"
    ).scalar()
    greenplum = segments.greenplum(connection)
    system, folder = ("gpadmin", "/tmp") if greenplum else ("postgres", "/var/run/postgresql")
    socket = told.split(",")[0].strip() if told else folder
    port = connection.exec_driver_sql("SHOW port").scalar_one()
    return (
        f"Worker sessions connect from the {'coordinator' if greenplum else 'server'} to itself as "
        "the calling user. To let them in:\n"
        f"add to pg_ident.conf (`{system}` stands for the system user that runs the server;\n"
        "the second line keeps letting system users in under their own names)\n"
        f'    cerebro  {system:<9}  "{user}"\n'
        "    cerebro  /^(.*)$    \\1\n"
        "add to pg_hba.conf, before its other lines\n"
        f'    local  "{database}"  "{user}"  peer  map=cerebro\n'
        "and then, as a superuser\n"
        "    SELECT pg_reload_conf();\n"
        f"    INSERT INTO cerebro.setting VALUES ('worker_conninfo', 'host={socket} "
        f"port={port}')\n"
        "      ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
    )


def _report(connection: sa.Connection, function: str) -> dict[str, Any]:
    report: dict[str, Any] = connection.exec_driver_sql(f"SELECT cerebro.{function}()").scalar_one()
    return report


# name, whether the steps after it need it, what it does
STEPS: tuple[tuple[str, bool, Callable[[sa.Connection], Finding | None]], ...] = (
    ("server", True, _server),
    ("extension", True, _extension),
    ("PL/Python", True, _plpython),
    ("trainer", False, _trainer),
    ("worker sessions", False, _workers),
    ("compiled code", False, machine.compiled_code),
    ("cancels", False, segments.cancels),
    ("out of memory", False, machine.out_of_memory),
    ("process 1", False, machine.first_process),
)
