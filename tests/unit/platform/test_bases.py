"""A worker that comes second to frozen weights finds them, however PostgreSQL says that the table
is there.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.state_tables import base_table
from cerebro_plpy.platform.visit_protocol import TrainVisit, Worker
from cerebro_plpy.trainer_client.settings import TrainerOptions

DIGEST = "0123456789abcdef" * 2
KNOWN, UNKNOWN = [(True,)], [(False,)]


def second(sqlstate: str) -> Any:
    """The steps of a worker whose table could not be made; what it asks next is answered by the
    caller.
    """
    worker = Worker(0, cast(Any, SimpleNamespace(platform=Postgres(), pid=0)))
    visit = cast(TrainVisit, SimpleNamespace(run_id=1, job=SimpleNamespace(result_key="1/1/1")))
    steps = PostgresVisits([TrainerOptions()], 1, print)._base(worker, visit, DIGEST)
    assert "is_state" in next(steps).sql
    assert "CREATE TABLE" in steps.send(UNKNOWN).sql
    error = CerebroError("there is one")
    error.sqlstate = sqlstate
    assert "is_state" in steps.throw(error).sql
    return steps


@pytest.mark.parametrize("sqlstate", ["42P07", "42710", "23505"])
@pytest.mark.parametrize(("answer", "table"), [(KNOWN, base_table(1, DIGEST)), (UNKNOWN, None)])
def test_the_table_is_there(sqlstate: str, answer: list[tuple[bool]], table: str | None) -> None:
    """Where it is not of a state of the run, but somebody else's, the state has all of its
    weights.
    """
    with pytest.raises(StopIteration) as ended:
        second(sqlstate).send(answer)
    assert ended.value.value == table


def test_other_errors_are_the_run_s() -> None:
    with pytest.raises(CerebroError, match="there is one"):
        second("53100")
