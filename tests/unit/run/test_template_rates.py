"""Rates that cannot be measured in time are given up, and a session hears of that once."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from cerebro_plpy.database.sessions.async_dispatcher import DONE, READ, Rows, Statement, Steps
from cerebro_plpy.errors import ConfigFailure, QueryCanceled
from cerebro_plpy.run.planning.template_rates import LATE, _run_probes

ALWAYS_READABLE = os.open("/dev/null", os.O_RDONLY)


class Session:
    """A session whose statements end at once, or never until they are cancelled."""

    def __init__(self, *, is_slow: bool) -> None:
        self._is_slow = is_slow
        self.cancels = 0

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Begin a statement."""

    def poll(self) -> int:
        if self.cancels:
            raise QueryCanceled("canceling statement due to user request")
        return READ if self._is_slow else DONE

    def cancel(self) -> None:
        self.cancels += 1

    def fetch(self) -> Rows:
        return []

    def fileno(self) -> int:
        return ALWAYS_READABLE


def make_probe(session: Session, error: Exception | None = None) -> Any:
    def list_steps(request: object, config: object, rows: int) -> Steps[dict[str, float]]:
        assert rows == 64, "a few batches, so that no other mode is compiled"
        yield Statement("time")
        if error is not None:
            raise error
        return {"seconds_per_row": 1e-5}

    return SimpleNamespace(worker=SimpleNamespace(session=session), list_steps=list_steps)


def test_each_probe_has_its_outcome_and_the_late_one_is_cancelled_once() -> None:
    slow = Session(is_slow=True)
    failure = ConfigFailure("it does not fit")
    probes = [
        make_probe(Session(is_slow=False)),
        make_probe(slow),
        make_probe(Session(is_slow=False), failure),
    ]
    context: Any = SimpleNamespace(check=lambda: None)
    request: Any = None
    configs: Any = [SimpleNamespace(fit=SimpleNamespace(batch_size=64))] * 3
    until = time.monotonic() + 0.05
    outcomes = {
        outcome.worker: outcome for outcome in _run_probes(context, request, probes, configs, until)
    }
    assert outcomes[0].value == {"seconds_per_row": 1e-5}
    assert outcomes[1].error is LATE and slow.cancels == 1
    assert outcomes[2].error is failure
