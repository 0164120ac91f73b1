"""What a run reports of its processor time adds up to what its sessions have used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.run.workers.cost_accounting import CostMeter

LOG: Any = SimpleNamespace(run_id=7, ticket="secret")
seconds = st.floats(0, 1e6, allow_nan=False)


class Control:
    """Remembers what is reported."""

    def __init__(self) -> None:
        self.reported: list[float] = []

    def run(self, statement: str, values: tuple[int, str, float]) -> None:
        assert "cerebro.count_time" in statement and values[:2] == (LOG.run_id, LOG.ticket)
        self.reported.append(values[2])


@given(st.lists(st.tuples(seconds, seconds), min_size=1))
def test_reports_add_up_and_none_takes_anything_back(looks: list[tuple[float, float]]) -> None:
    control, account = Control(), SimpleNamespace(reported=Cost())
    used = iter([own for own, _ in looks])
    workplace: Any = SimpleNamespace(
        control=control,
        all_workers=[SimpleNamespace(account=account)],
        take_session_seconds=lambda: next(used),
    )
    spending = CostMeter(workplace, LOG)
    for _, of_trainer in looks:
        account.reported = Cost(account.reported.trainer_seconds + of_trainer)
        spending._next_charge = 0.0
        spending.charge_quota_periodically()
    assert min(control.reported) >= 0
    assert sum(control.reported) == pytest.approx(sum(map(sum, looks)))


def test_it_reports_now_and_then() -> None:
    control = Control()
    workplace: Any = SimpleNamespace(
        control=control, all_workers=[], take_session_seconds=lambda: 1.0
    )
    spending = CostMeter(workplace, LOG)
    for _ in range(5):
        spending.charge_quota_periodically()
    assert control.reported == [1.0]
    spending.charge_quota()
    assert control.reported == [1.0, 0.0]
