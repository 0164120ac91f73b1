"""Findings of `cerebro-db check` about the segments of a Greenplum, from their reports."""

from __future__ import annotations

import pytest

from cerebro_db.check.segments import (
    EQUAL_KEYS,
    Segment,
    check_version,
    compare_reports,
    parse_product,
)

REPORT = {
    "package": "0.2.0",
    "version": "0.2.0",
    "framework": "tensorflow",
    "framework_version": "2.21.0",
    "keras_version": "3.15.1",
    "python_version": "3.11.2",
    "threads": 4,
    "devices": ["CPU:0"],
}
FIRST, SECOND, THIRD = (Segment(number, f"sdw{number}", 6000 + number) for number in range(3))


def test_segments_that_agree() -> None:
    finding = compare_reports(dict.fromkeys((FIRST, SECOND, THIRD), REPORT), "0.2.0")
    assert (finding.state, finding.remedy) == ("OK", "")
    assert "Keras 3.15.1" in finding.summary
    assert "on 3 segments, 3 hosts" in finding.summary


@pytest.mark.parametrize("name", EQUAL_KEYS)
def test_a_segment_that_differs_is_named(name: str) -> None:
    finding = compare_reports(
        {FIRST: REPORT, SECOND: {**REPORT, name: "0.1"}, THIRD: REPORT}, "0.2.0"
    )
    assert finding.state == "FAIL"
    line = finding.remedy.splitlines()[0]
    assert line.startswith(
        f"{EQUAL_KEYS[name]}: {REPORT[name]} on segment 0 (sdw0, port 6000), segment 2"
    )
    assert line.endswith("0.1 on segment 1 (sdw1, port 6001)")


@pytest.mark.parametrize("name", ["package", "version"])
def test_segments_that_agree_on_another_version_than_the_extension(name: str) -> None:
    finding = compare_reports({key: {**REPORT, name: "0.1.0"} for key in (FIRST, SECOND)}, "0.2.0")
    assert finding.state == "FAIL"
    assert len(finding.remedy.splitlines()) == 3


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("PostgreSQL 12.12 (WarehousePG 7.2.1 build 7) on x86_64", "WarehousePG 7.2.1"),
        ("PostgreSQL 12.22 on x86_64", "a server with segments"),
        (
            "PostgreSQL 9.4.26 (Greenplum Database 6.25.3 build commit:367edc6b) on x86_64",
            "Greenplum Database 6.25.3",
        ),
        (
            "PostgreSQL 14.4 (Cloudberry Database 1.6.0 build 1) on x86_64",
            "Cloudberry Database 1.6.0",
        ),
        ("PostgreSQL 14.4 (Apache Cloudberry 2.0.0 build 1) on x86_64", "Apache Cloudberry 2.0.0"),
    ],
)
def test_the_product_of_a_version(version: str, name: str) -> None:
    assert parse_product(version) == name


@pytest.mark.parametrize(
    ("name", "number", "state"),
    [
        ("Greenplum Database 7.0.0-beta.4", 70000, "WARN"),
        ("Greenplum Database 7.1.0", 70100, "OK"),
        ("WarehousePG 7.2.1", 70201, "OK"),
        ("Greenplum Database 7.1.0", None, "WARN"),
        ("Greengage Database 7.4.0", 70400, "WARN"),
        ("Apache Cloudberry 2.0.0", 20000, "WARN"),
    ],
)
def test_versions_that_a_cancel_can_end_are_warned_of(
    name: str, number: int | None, state: str
) -> None:
    finding = check_version(name, number)
    assert finding.state == state
    assert name in finding.summary
    assert bool(finding.remedy) == (state == "WARN")
