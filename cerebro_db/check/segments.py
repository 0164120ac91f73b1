"""The segments of a Greenplum, each of which must be able to start a trainer of the same kind.

Every segment is asked in a session of its own: what is wrong with one of them does not disturb the
next, and only one trainer at a time takes memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from cerebro_db.check.finding import Finding
from cerebro_db.driver import translate_errors
from cerebro_db.errors import CerebroError

Report = Mapping[str, Any]

# What must be the same everywhere, and what it is called.
ALIKE = {
    "package": "cerebro_plpy",
    "version": "the trainers' cerebro_db",
    "framework_version": "TensorFlow",
    "keras_version": "Keras",
}
SEGMENTS = (
    "SELECT content, hostname::text, port FROM pg_catalog.gp_segment_configuration"
    " WHERE role = 'p' AND content >= 0 ORDER BY content"
)
KERNELS = {12: "Greenplum 7 and what is made of it", 14: "Apache Cloudberry 1 and 2"}
# Since when, by gp_server_version_num, an interrupt at the beginning of a statement of PL/Python no
# longer leaves Python's frames behind; of other products no version is known that does it.
MENDED = {"Greenplum Database": 70100, "WarehousePG": 70100}
KEY = "SELECT k.key FROM cerebro.segment_key k WHERE k.gp_segment_id = %s LIMIT 1"
REPORT = "SELECT cerebro.trainer_report() FROM cerebro.segment_key k WHERE k.key = %s"


@dataclass(frozen=True)
class Segment:
    """A primary segment."""

    number: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"segment {self.number} ({self.host}, port {self.port})"


def product(version: str) -> str:
    """What a Greenplum, or what descends from it, calls itself in its version().

    >>> product("PostgreSQL 12.12 (Greenplum Database 7.1.0 build 1) on x86_64")
    'Greenplum Database 7.1.0'
    """
    found = re.search(r"\(([^()]*)\)", version)
    return found.group(1).partition(" build ")[0] if found else "a server with segments"


def greenplum(connection: sa.Connection) -> str | None:
    """What the server calls itself where it is a Greenplum or descends from one, which its catalog
    says.
    """
    name, is_one = row(
        connection,
        "SELECT version(), to_regclass('pg_catalog.gp_segment_configuration') IS NOT NULL",
    )
    return product(name) if is_one else None


def cancels(connection: sa.Connection) -> Finding | None:
    """Whether a cancel at a bad moment, or a segment that is lost then, can end the whole
    coordinator.
    """
    name = greenplum(connection)
    if name is None:
        return None
    (number,) = row(connection, "SELECT current_setting('gp_server_version_num', true)::int")
    return mended(name, number)


def mended(name: str, number: int | None) -> Finding:
    """See `cancels`, by the name of the product and its gp_server_version_num."""
    since = next((since for title, since in MENDED.items() if name.startswith(title)), None)
    if since is not None and number is not None and number >= since:
        return Finding(told=f"{name} survives a cancel at any moment of a call")
    return Finding(
        state="WARN",
        told=f"in {name} a cancel, or a lost segment, at a bad moment of a call can end all "
        "sessions",
        remedy="The coordinator then starts anew; no data are lost. It is a defect of the "
        "server's PL/Python, which\n"
        "Greenplum 7.1.0 mended. Packing is exposed for longest: do not cancel it where others "
        "work.",
    )


def row(connection: sa.Connection, query: str) -> tuple[Any, ...]:
    """The only row of a query."""
    return tuple(connection.exec_driver_sql(query).one())


def listed(connection: sa.Connection) -> list[Segment]:
    """The primary segments, in order."""
    return [Segment(*row) for row in connection.exec_driver_sql(SEGMENTS)]


def trainers(connection: sa.Connection, version: str) -> Finding:
    """Whether every segment starts a trainer, and all of the same versions, which are those of the
    extension.
    """
    segments = listed(connection)
    reports: dict[Segment, Report] = {}
    wrong: list[str] = []
    for segment in segments:
        try:
            reports[segment] = _report(connection.engine, segment)
        except CerebroError as error:
            hint = error.hint or "The log of that segment may say more."
            told = [*filter(None, (error.message, error.detail)), *hint.splitlines()]
            wrong += [f"{segment}:", *(f"    {line}" for line in told)]
    if wrong:
        told_of = f"{len(segments) - len(reports)} of {len(segments)} segments start none"
        return Finding(state="FAIL", told=told_of, remedy="\n".join(wrong))
    return compared(reports, version)


def key_of(connection: sa.Connection, segment: Segment) -> int:
    """A key by which statements are sent to a segment; the others need not be there."""
    connection.exec_driver_sql("SET optimizer = off")  # the other planner asks all segments
    key: int | None = connection.exec_driver_sql(KEY, (segment.number,)).scalar()
    if key is None:
        raise CerebroError(
            "no row of cerebro.segment_key lies there",
            hint="Where the cluster was expanded, the tables of schema cerebro must be, too.",
        )
    return key


def _report(engine: sa.Engine, segment: Segment) -> Report:
    with (
        translate_errors(),
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as session,
    ):
        session.detach()  # so that it ends here, and its trainer with it
        report: Report = session.exec_driver_sql(REPORT, (key_of(session, segment),)).scalar_one()
        return report


def compared(reports: Mapping[Segment, Report], version: str) -> Finding:
    """What the reports of all segments say together."""
    wrong = []
    for name, title in ALIKE.items():
        found: dict[str, list[Segment]] = {}
        for segment, report in reports.items():
            found.setdefault(str(report.get(name)), []).append(segment)
        if len(found) > 1 or (name in ("package", "version") and list(found) != [version]):
            wrong.append(
                f"{title}: "
                + "; ".join(f"{value} on {_text(where)}" for value, where in found.items())
            )
    if wrong:
        remedy = (
            "Install the same environment for trainers at the same place on every host, and the "
            f"files of `make install`\nof version {version}; then connect anew."
        )
        return Finding(
            state="FAIL",
            told="the segments' versions are not the same",
            remedy="\n".join([*wrong, remedy]),
        )
    report = next(iter(reports.values()))
    hosts = len({segment.host for segment in reports})
    framework = (
        f"{report['framework']} {report['framework_version']}, Keras {report['keras_version']}"
    )
    where = f"{len(reports)} segments, {hosts} {'host' if hosts == 1 else 'hosts'}"
    machine = f"{report['threads']} threads, devices {', '.join(report['devices'])}"
    return Finding(
        told=f"{framework}, Python {report['python_version']}, on {where}; on the first {machine}"
    )


def _text(segments: Iterable[Segment]) -> str:
    return ", ".join(map(str, segments))
