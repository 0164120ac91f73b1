"""The charges of a run add up to the processor time that its sessions and workers have used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.run.workers.cost_accounting import CostMeter

LOG: Any = SimpleNamespace(run_id=7, ticket="secret")
SECONDS = st.floats(0, 1e6, allow_nan=False)


class Control:
    """Records the charges."""

    def __init__(self) -> None:
        self.charges: list[float] = []

    def run(self, statement: str, values: tuple[int, str, float]) -> None:
        assert "cerebro_internal.count_time" in statement and values[:2] == (LOG.run_id, LOG.ticket)
        self.charges.append(values[2])


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1))
def test_charges_add_up_and_none_is_negative(intervals: list[tuple[float, float]]) -> None:
    control, account = Control(), SimpleNamespace(reported=Cost())
    used = iter([session for session, _ in intervals])
    context: Any = SimpleNamespace(
        control=control,
        all_workers=[SimpleNamespace(account=account)],
        take_session_seconds=lambda: next(used),
    )
    meter = CostMeter(context, LOG)
    for _, trainer in intervals:
        account.reported = Cost(account.reported.trainer_seconds + trainer)
        meter._next_charge = 0.0
        meter.charge_quota_periodically()
    assert min(control.charges) >= 0
    assert sum(control.charges) == pytest.approx(sum(map(sum, intervals)))


def test_a_run_charges_its_quota_periodically() -> None:
    control = Control()
    context: Any = SimpleNamespace(
        control=control, all_workers=[], take_session_seconds=lambda: 1.0
    )
    meter = CostMeter(context, LOG)
    for _ in range(5):
        meter.charge_quota_periodically()
    assert control.charges == [1.0]
    meter.charge_quota()
    assert control.charges == [1.0, 0.0]
