"""By what a lost segment of Greenplum is told from an error of a statement, and from the end of a
session.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cerebro_plpy.database.sessions import connection_options
from cerebro_plpy.errors import CerebroError, ConnectionFailure, SegmentLost
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.training_platform import TrainingPlatform

OF_A_SEGMENT = "  (seg1 slice2 10.0.0.3:6001 pid=4711)"


def told(sqlstate: str, message: str, platform: TrainingPlatform | None = None) -> CerebroError:
    """The error that a run hears of, of what the driver raises."""
    diag = SimpleNamespace(message_primary=message, message_hint=None, message_detail=None)
    return connection_options.translate(
        SimpleNamespace(pgcode=sqlstate, diag=diag), platform or Greenplum()
    )


@pytest.mark.parametrize(
    ("sqlstate", "message"),
    [
        ("58M01", "failed to acquire resources on one or more segments"),
        (
            "58M01",
            "Error on receive from seg1 10.0.0.3:6001 pid=4711: server closed the connection "
            "unexpectedly\n\tThis",
        ),
        ("XX000", "gang was lost due to cluster reconfiguration"),
        ("XX000", "gang was lost due to cluster reconfiguration (cdbgang_async.c:103)"),
        ("XX000", "one phase commit notification failed"),
        ("XX000", 'dispatching subtransaction internal command failed for gid = "7" due to error'),
        ("57P01", "terminating connection due to unexpected postmaster exit" + OF_A_SEGMENT),
        ("57P01", "terminating connection due to administrator command" + OF_A_SEGMENT),
        (
            "57P02",
            "terminating connection because of crash of another server process" + OF_A_SEGMENT,
        ),
        ("57P03", "the database system is in recovery mode" + OF_A_SEGMENT),
    ],
)
def test_the_session_goes_on_after_a_segment_was_lost(sqlstate: str, message: str) -> None:
    error = told(sqlstate, message)
    assert isinstance(error, SegmentLost)
    assert "pid=4711)" not in error.message and "\n" not in error.message


@pytest.mark.parametrize(
    ("sqlstate", "message"),
    [
        ("57P01", "terminating connection due to administrator command"),
        ("57P03", "the database system is in recovery mode"),
    ],
)
def test_the_end_of_the_session_itself_is_no_lost_segment(sqlstate: str, message: str) -> None:
    error = told(sqlstate, message)
    assert isinstance(error, ConnectionFailure) and not isinstance(error, SegmentLost)


@pytest.mark.parametrize(
    ("sqlstate", "message"),
    [
        ("XX000", "tuple concurrently updated" + OF_A_SEGMENT),
        ("57014", "canceling statement due to user request" + OF_A_SEGMENT),
        ("22023", "gang was lost due to cluster reconfiguration"),
    ],
)
def test_other_errors_of_a_segment_stay_what_they_are(sqlstate: str, message: str) -> None:
    error = told(sqlstate, message)
    assert not isinstance(error, ConnectionFailure)
    assert (error.sqlstate, error.message) == (sqlstate, message.partition("  (seg")[0])


def test_postgresql_has_no_segments() -> None:
    error = told(
        "57P01", "terminating connection due to administrator command" + OF_A_SEGMENT, Postgres()
    )
    assert isinstance(error, ConnectionFailure) and not isinstance(error, SegmentLost)
    assert not isinstance(
        told("XX000", "gang was lost due to cluster reconfiguration", Postgres()), ConnectionFailure
    )
