"""Checks of the segments of a Greenplum: each must start a trainer, all with the same versions.

Each segment is checked in a session of its own. An error of one segment does not affect the next,
and only one trainer at a time needs memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from cerebro_db.check.finding import Finding
from cerebro_db.driver import translate_errors
from cerebro_db.errors import CerebroError
from cerebro_db.nouns import count_nouns, match_verb

Report = Mapping[str, Any]

# Keys of a report whose values must be equal on all segments, and their titles.
EQUAL_KEYS = {
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
# First version, by gp_server_version_num, in which an interrupt at the start of a PL/Python
# statement leaves no frames of Python behind. No version of another product is known to be fixed.
FIXED_VERSIONS = {"Greenplum Database": 70100, "WarehousePG": 70100}
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


def parse_product(version: str) -> str:
    """Return the product name in version() of a Greenplum or a server derived from it.

    >>> parse_product("PostgreSQL 12.12 (Greenplum Database 7.1.0 build 1) on x86_64")
    'Greenplum Database 7.1.0'
    """
    match = re.search(r"\(([^()]*)\)", version)
    if match is None:
        return "a server with segments"
    return match.group(1).partition(" build ")[0]


def find_product(connection: sa.Connection) -> str | None:
    """Return the product name of a Greenplum or a server derived from it; None for PostgreSQL."""
    version, has_segments = fetch_row(
        connection,
        "SELECT version(), to_regclass('pg_catalog.gp_segment_configuration') IS NOT NULL",
    )
    return parse_product(version) if has_segments else None


def check_cancels(connection: sa.Connection) -> Finding | None:
    """Check that the coordinator survives a cancel, or the loss of a segment, at any moment."""
    name = find_product(connection)
    if name is None:
        return None
    query = "SELECT current_setting('gp_server_version_num', true)::int"
    (number,) = fetch_row(connection, query)
    return check_version(name, number)


def check_version(name: str, number: int | None) -> Finding:
    """Check that a version of a product survives a cancel at any moment.

    Args:
        number: gp_server_version_num of the version.
    """
    for product, fixed_number in FIXED_VERSIONS.items():
        if name.startswith(product) and number is not None and number >= fixed_number:
            return Finding(summary=f"{name} survives a cancel at any moment of a call")
    return Finding(
        state="WARN",
        summary=f"in {name} a cancel, or a lost segment, at a bad moment of a call can end all "
        "sessions",
        remedy="The coordinator then starts anew; no data are lost. It is a defect of the "
        "server's PL/Python, which\n"
        "Greenplum 7.1.0 mended. Packing is exposed for longest: do not cancel it where others "
        "work.",
    )


def fetch_row(connection: sa.Connection, query: str) -> tuple[Any, ...]:
    """Return the only row of a query."""
    return tuple(connection.exec_driver_sql(query).one())


def list_segments(connection: sa.Connection) -> list[Segment]:
    """Return the primary segments, in order."""
    return [Segment(*row) for row in connection.exec_driver_sql(SEGMENTS)]


def check_trainers(connection: sa.Connection, version: str) -> Finding:
    """Check that every segment starts a trainer, all with the versions of the extension."""
    segments = list_segments(connection)
    reports: dict[Segment, Report] = {}
    problems: list[str] = []
    for segment in segments:
        try:
            reports[segment] = _read_report(connection.engine, segment)
        except CerebroError as error:
            hint = error.hint or "The log of that segment may say more."
            lines = [*filter(None, (error.message, error.detail)), *hint.splitlines()]
            problems += [f"{segment}:", *(f"    {line}" for line in lines)]
    if problems:
        failed = len(segments) - len(reports)
        total = count_nouns(len(segments), "segment")
        summary = f"{failed} of {total} {match_verb(failed, 'starts')} none"
        return Finding(state="FAIL", summary=summary, remedy="\n".join(problems))
    return compare_reports(reports, version)


def find_key(connection: sa.Connection, segment: Segment) -> int:
    """Return a key that sends statements to a segment, even if other segments are down."""
    connection.exec_driver_sql("SET optimizer = off")  # the other planner uses all segments
    key: int | None = connection.exec_driver_sql(KEY, (segment.number,)).scalar()
    if key is None:
        raise CerebroError(
            "no row of cerebro.segment_key lies there",
            hint="Where the cluster was expanded, the tables of schema cerebro must be, too.",
        )
    return key


def _read_report(engine: sa.Engine, segment: Segment) -> Report:
    with translate_errors(), engine.connect() as connection:
        session = connection.execution_options(isolation_level="AUTOCOMMIT")
        session.detach()  # the session, and with it its trainer, ends here
        key = find_key(session, segment)
        report: Report = session.exec_driver_sql(REPORT, (key,)).scalar_one()
        return report


def compare_reports(reports: Mapping[Segment, Report], version: str) -> Finding:
    """Compare the versions in the reports of all segments."""
    differences = []
    for key, title in EQUAL_KEYS.items():
        segments_by_value: dict[str, list[Segment]] = {}
        for segment, report in reports.items():
            segments_by_value.setdefault(str(report.get(key)), []).append(segment)
        must_match = key in ("package", "version")
        if len(segments_by_value) > 1 or (must_match and version not in segments_by_value):
            parts = [
                f"{value} on {', '.join(map(str, segments))}"
                for value, segments in segments_by_value.items()
            ]
            differences.append(f"{title}: {'; '.join(parts)}")
    if differences:
        remedy = (
            "Install the same environment for trainers at the same place on every host, and the "
            f"files of `make install`\nof version {version}; then connect anew."
        )
        return Finding(
            state="FAIL",
            summary="the segments' versions are not the same",
            remedy="\n".join([*differences, remedy]),
        )
    report = next(iter(reports.values()))
    hosts = len({segment.host for segment in reports})
    location = f"{count_nouns(len(reports), 'segment')}, {count_nouns(hosts, 'host')}"
    return Finding(
        summary=f"{describe_software(report)}, on {location}; on the first "
        f"{describe_machine(report)}"
    )


def describe_software(report: Report) -> str:
    """Return the versions in a trainer's report as text."""
    framework = f"{report['framework']} {report['framework_version']}"
    return f"{framework}, Keras {report['keras_version']}, Python {report['python_version']}"


def describe_machine(report: Report) -> str:
    """Return the threads and devices in a trainer's report as text."""
    return f"{count_nouns(report['threads'], 'thread')}, devices {', '.join(report['devices'])}"
