"""How the states that visits have left are stored, each in one transaction with what the log says
of its visits.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError, ConnectionFailure
from cerebro_plpy.platform import log_rows, state_tables
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.state_tables import StoredState, dropped
from cerebro_plpy.platform.statements import join, metrics
from cerebro_plpy.platform.trainer_jobs import TrainerJobs
from cerebro_plpy.platform.visit_protocol import (
    BestState,
    EvaluateVisit,
    TourVisit,
    Trained,
    TrainVisit,
    VisitResult,
    Worker,
)


class Store(NamedTuple):
    """What a tour has left: the visit whose state is stored, the table of its base, and what stores
    it in a table.
    """

    visit: TrainVisit
    base: str | None
    into: Callable[[str], Statement]


class Storing(TrainerJobs):
    """See `protocol.Visits` for the laws."""

    @abstractmethod
    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        """What stores the new state in its table, and says so in the log."""

    @abstractmethod
    def _stored(self, stored: StoredState, key: str) -> Statement:
        """What stores the state of that name, which the trainer holds, in an empty table; without
        its base, if any.
        """

    @abstractmethod
    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """The table with the frozen weights of a state, of that digest, for all that share them;
        None where the state is to have them itself."""

    def _running(self, worker: Worker, visit: TrainVisit) -> Statement:
        """What logs a visit as begun."""
        row = (
            visit.run_id,
            visit.epoch,
            visit.mst_key,
            visit.dataset.segment_id,
            visit.visit_no,
            visit.attempt,
        )
        return Statement(sql("visit.visit_begin"), (*row, worker.session.pid, visit.job.kind))

    def _store(
        self, worker: Worker, several: Sequence[Trained], beside: Sequence[Statement] = ()
    ) -> Steps[list[StoredState]]:
        """Write new states and log rows, and best states if there are any, in one transaction, in
        which other statements are `beside` them; where the new ones lie."""
        stores = []
        for trained in several:
            stores.append((yield from self._store_of(worker, trained)))
        tables = yield from self._taken(worker, stores, beside)
        worker.memory.unstored = ()
        for store, taken, trained in zip(stores, tables, several):
            visit, best = store.visit, trained.best
            if visit.replaced_table and taken == visit.state_table:
                yield from self._drop_table(visit.run_id, visit.replaced_table)
            if best and best.replaced_table:
                yield from self._drop_table(best.run_id, best.replaced_table)
        places = zip(stores, tables)
        return [
            StoredState(table, store.visit.dataset.segment_id, store.base)
            for store, table in places
        ]

    def _store_of(self, worker: Worker, trained: Trained) -> Steps[Store]:
        (visit, result), best = trained.trained[-1], trained.best
        before, after = self._visits_before(worker, trained), [*self._evaluations_of(trained)]
        base = yield from self._base(worker, visit, result.get("base"))
        if best:
            after += [
                *self._best(worker, best),
                self._stored(best.kept._replace(base=base), best.state.key),
            ]
        if base:
            visits = trained.trained[0][0].visit_no, visit.visit_no
            after.append(
                Statement(
                    sql("visit.visits_with_base"), (base, visit.run_id, visit.mst_key, *visits)
                )
            )

        def into(table: str) -> Statement:
            logged = (visit.job.result_key, *log_rows.logged(result), table, *place(visit))
            stored = StoredState(table, visit.dataset.segment_id, base)
            return join([*before, Statement(self._visit_end(visit, stored), logged), *after])

        return Store(visit, base, into)

    def _taken(
        self, worker: Worker, stores: Sequence[Store], beside: Sequence[Statement]
    ) -> Steps[list[str]]:
        """Have states stored in the tables whose turn it is; those that took them.

        Someone who reads a state table for long, such as a backup, must not stop the run: after a
        short wait the states go to fresh tables.
        """

        def stored(tables: Sequence[str]) -> Statement:
            return join([*(store.into(table) for store, table in zip(stores, tables)), *beside])

        try:
            for visit in (store.visit for store in stores if store.visit.replaced_table):
                yield from self._make_table(worker, visit, visit.state_table)
            tables = [store.visit.state_table for store in stores]
            yield stored(tables)
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            visits = [store.visit for store in stores]
            tables = [
                state_tables.spare_table(v.run_id, v.mst_key, v.visit_no, v.attempt) for v in visits
            ]
            for visit, table in zip(visits, tables):
                yield from self._make_table(worker, visit, table)
            yield stored(tables)
        return tables

    def _visits_before(self, worker: Worker, trained: Trained) -> list[Statement]:
        """What logs the visits of a tour up to the last one that trains, and that as begun."""
        first, result = trained.trained[0]
        if len(trained.trained) == 1:
            return []
        passed = Statement(sql("visit.visit_passed"), (*log_rows.logged(result), *place(first)))
        rows = strict_json.dumps(log_rows.following(trained))
        following = (first.run_id, first.mst_key, worker.session.pid, rows)
        return [passed, Statement(sql("visit.visits_following"), following)]

    def _evaluations_of(self, trained: Trained) -> Iterator[Statement]:
        """What logs the evaluations of a tour, each from the end of what was done before it, with
        their metrics.
        """
        for visit, before, result in zip(trained.visits[1:], trained.results, trained.results[1:]):
            if isinstance(visit, EvaluateVisit):
                rows = log_rows.evaluations(visit, result, log_rows.end(before))
                yield evaluations_following(visit, rows)
                yield metrics(
                    (visit.run_id, visit.mst_key, visit.epoch), result["metrics"], visit.metrics
                )

    def _make_table(self, worker: Worker, visit: TrainVisit, name: str) -> Steps[None]:
        # An earlier attempt may have made it.
        create = f"{worker.session.platform.state_table_sql(name)}; {sql('run.add_state_table')}"
        yield Statement(create, (name, visit.run_id, visit.mst_key, name))

    def _drop_table(self, run_id: int, name: str) -> Steps[None]:
        try:
            yield Statement(sql("run.drop_state_tables", states=name), dropped(run_id, [name]))
        except CerebroError as error:
            # It goes at the end of the run; who lost the session hears of that when it is used
            # next.
            if error.sqlstate != LOCK_NOT_AVAILABLE and not isinstance(error, ConnectionFailure):
                raise

    def _best(self, worker: Worker, best: BestState) -> list[Statement]:
        """What makes the table of a best state, and logs it as that."""
        return [
            Statement(worker.session.platform.state_table_sql(best.table)),
            Statement(
                sql("run.add_state_table"), (best.table, best.run_id, best.mst_key, best.table)
            ),
            Statement(sql("run.best_epoch"), (best.epoch, best.run_id, best.mst_key)),
        ]


def place(visit: TrainVisit) -> tuple[int, ...]:
    """Which row of the log is a visit's."""
    return (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)


def first_visit(tour: Sequence[TourVisit]) -> TrainVisit:
    """The visit that stands for a tour until that is stored: it trains."""
    (first,) = (visit for visit in tour[:1] if isinstance(visit, TrainVisit))
    return first


def datasets_of(tour: Sequence[TourVisit]) -> list[Dataset]:
    """The partitions that a tour goes through."""
    return [dataset for visit in tour for dataset in visit.datasets]


def failed(visit: TrainVisit, message: str, cost: Cost) -> Statement:
    """What logs a visit as one that has failed, which has cost that."""
    return Statement(sql("visit.visit_failed"), (message, *cost, *place(visit)))


def evaluations_following(visit: EvaluateVisit, rows: Sequence[Mapping[str, Any]]) -> Statement:
    """What logs segments of an evaluation that is done."""
    of = (visit.run_id, visit.epoch, visit.mst_key, visit.attempt)
    return Statement(sql("visit.evaluations_following"), (*of, json.dumps(rows)))


def completed(trained: Trained, stored: StoredState) -> list[VisitResult]:
    """What the visits of a tour came to that train; the state that the last one has left is
    stored.
    """
    made, lies = trained.trained, (stored.table, stored.base)
    return [
        VisitResult(
            found["rows"],
            found["loss"],
            found["seconds"],
            *(lies if visit is made[-1][0] else (None,)),
        )
        for visit, found in made
    ]
