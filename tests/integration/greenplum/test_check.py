"""Findings of `cerebro-db check` about the segments of a Greenplum."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from psycopg2.extensions import connection as Connection
from servers import Database

from cerebro_db.check.finding import Finding
from cerebro_db.check.steps import check_server

pytestmark = pytest.mark.parametrize("platform", ["greenplum"], indirect=True)

# A trainer's parent is the process of a segment, whose title names that segment.
PROGRAM = """#!/bin/sh
if tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q 'seg1 '; then echo 'no framework here' >&2; exit 1;
    fi
exec {python} "$@"
"""


def check_steps(url: str) -> dict[str, Finding]:
    return {finding.step: finding for finding in check_server(url)}


def test_a_cluster_is_checked(database: Database) -> None:
    findings = check_steps(database.url)
    cancels = findings.pop("cancels")
    assert {finding.state for finding in findings.values()} == {"OK"}
    assert cancels.state == "WARN" or "survives" in cancels.summary
    assert ", PostgreSQL 1" in findings["server"].summary
    assert " segments, 1 host" in findings["trainer"].summary


def test_a_segment_without_a_trainer_is_named(
    database: Database, superuser: Connection, folder: Path
) -> None:
    program = folder / "python"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    with superuser.cursor() as cursor:
        cursor.execute(
            "UPDATE cerebro.setting SET value = %s WHERE name = 'trainer_python'", (str(program),)
        )
    findings = check_steps(database.url)
    assert [step for step, finding in findings.items() if finding.state == "FAIL"] == ["trainer"]
    assert findings["trainer"].summary.startswith("1 of ")
    lines = findings["trainer"].remedy.splitlines()
    assert [line.partition(" (")[0] for line in lines if not line.startswith(" ")] == ["segment 1"]
    assert any("no framework here" in line for line in lines)


def test_a_segment_without_a_key_is_named(database: Database, superuser: Connection) -> None:
    """As after the cluster has grown."""
    with superuser.cursor() as cursor:
        cursor.execute("DELETE FROM cerebro.segment_key WHERE gp_segment_id = 0")
    remedy = check_steps(database.url)["trainer"].remedy
    assert remedy.startswith("segment 0 (")
    assert "no row of cerebro.segment_key lies there" in remedy
