"""The models of groups of rows that a run has come to: of each group the best configuration over
its rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.train.holdout_predictions import (
    HoldoutRows,
    compute_margin,
    predict_holdout,
)
from cerebro_plpy.operations.train.run_results import (
    has_value,
    make_network,
    read_best_by_group,
    read_states,
)
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.scoring.metrics import SCORES, absolute_errors
from cerebro_plpy.tables.models.model_registry import GroupResult
from cerebro_plpy.tables.outputs.logged_run import LoggedRun


def choose_group_models(
    db: Database, workplace: CallContext, run: LoggedRun, rows: HoldoutRows | None, ends: float
) -> list[GroupResult]:
    """Return the best of each group, and tell the caller of groups that have nothing yet.

    What the log does not say of the best is computed by their networks until the budget `ends`, by
    time.monotonic(), if the rows that the run held back are there.
    """
    train = run.spec.train
    assert train is not None
    if not train.groups:
        return []
    best = read_best_by_group(workplace, run, read_states(db, run))
    found = [
        GroupResult(best[value], place.rows)
        for value, place in train.groups.items()
        if value in best
    ]
    if missing := sorted(train.groups.keys() - best.keys()):
        db.notice(
            f"the budget was over before groups {', '.join(missing)} had a model: that of all rows "
            "predicts them"
        )
    return list(_measured(db, workplace, run, rows, (found, ends)))


def _measured(
    db: Database,
    workplace: CallContext,
    run: LoggedRun,
    rows: HoldoutRows | None,
    of: tuple[list[GroupResult], float],
) -> Iterator[GroupResult]:
    (found, ends), train = of, run.spec.train
    assert train is not None
    logged = {row["mst_key"]: row for row in db.peek(sql("run.logged_configs"), run.run_id)}
    for each in found:
        row, result = logged[each.result.mst_key], each.result
        if not has_value(result, train.metric):
            result = result._replace(value=None)
        if rows and (result.value is None or train.task == REGRESSION) and time.monotonic() < ends:
            told = predict_holdout(
                workplace, rows, make_network(run, result, row), row["group_value"]
            )
            known = result.value if result.value is not None else SCORES[train.metric](told)
            margin = compute_margin(absolute_errors(told)) if train.task == REGRESSION else None
            result = result._replace(value=known, margin=margin)
        yield each._replace(result=result)
