"""Configurations of one program that are trained in one job, side by side where that is faster than
one by one.

Which form is faster the trainer finds out when a worker first trains several together; from then
on, and in later runs, it is known. What becomes of a state depends on the form alone, not on the
others: so those are fused who happen to stand at the same place, and by a replay whoever does so
then. Where configurations hop none are: whether a visit has that form would depend on who else has
come there, and `rotation` would not give the same weights again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence

from cerebro_plpy.errors import CerebroError, ConnectionFailure
from cerebro_plpy.platform.visit_protocol import FusedResult, Worker
from cerebro_plpy.run.log.form_timings import (
    LANES,
    choose_fused_form,
    choose_fusion_size,
    choose_max_lanes,
    compute_fusion_saving,
)
from cerebro_plpy.run.loop.dispatch import Choice
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.state.runtime_stats import Measurements
from cerebro_plpy.run.workers.tasks import PASSING, Fusing, Visiting
from cerebro_plpy.run.workers.worker_pool import Assignments
from cerebro_plpy.scheduling.schedule import fusion_groups
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, VisitBatch


class Fusion:
    """Of configurations of one run, if it is wanted at all."""

    def __init__(
        self,
        roster: Roster,
        measurements: Measurements,
        choice: Choice,
        assignments: Assignments,
        *,
        wanted: bool,
    ) -> None:
        self._roster, self._measurements, self._choice = roster, measurements, choice
        self._assignments, self._wanted = assignments, wanted
        self._offered: set[tuple[int, object, str]] = set()
        self._unfit: set[tuple[int, object]] = set()

    def of(
        self,
        worker: Worker,
        tour: VisitBatch,
        taken: Collection[int],
        urgent: Collection[int],
        workers: int,
    ) -> Sequence[VisitBatch]:
        """Tours that so many workers' one makes in one job, in place of one that is begun; none
        where it goes alone.

        Those that are `taken` go elsewhere; who is `urgent` waits for no others, and so goes alone.
        """
        leader = self._roster.positions.progress[tour[0].mst_key]
        unfit = (worker.number, self._compilation(leader)) in self._unfit
        if unfit or leader.mst_key in urgent or not self._may(leader):
            return ()
        alike = [leader, *self._alike(worker, leader, taken)]
        made = fusion_groups.take_training(tour)
        if form := self._recorded(leader.mst_key, made[:1]):
            members, made = self._again(alike, made, form)
        elif self._roster.request.replay.forms:
            return ()
        else:
            most = choose_max_lanes(self._roster.request.gpus)
            members = alike[: min(most, self._share(worker, alike, workers))]
            visits = max(1, min(self._choice.reach(each, len(members)).visits for each in members))
            members = members[
                : self._size(worker, members, made[:visits], whole=len(made) == len(tour))
            ]
            made = made[:visits]
        return (
            [fusion_groups.assign_batch(made, each.mst_key) for each in members]
            if len(members) > 1
            else ()
        )

    def _again(
        self, alike: Sequence[ConfigProgress], tour: VisitBatch, form: str
    ) -> tuple[Sequence[ConfigProgress], VisitBatch]:
        """Those that have the first visit in that form in the log, and how far all of them have."""
        members = [each for each in alike if self._recorded(each.mst_key, tour[:1]) == form][
            : LANES[form]
        ]
        while not all(self._recorded(each.mst_key, tour) == form for each in members):
            tour = tour[:-1]
        return members, tour

    def _may(self, progress: ConfigProgress) -> bool:
        training, positions = self._roster.training[progress.mst_key], self._roster.positions
        config = training.config
        return (
            self._wanted
            and bool(positions.residence or self._roster.request.replay.forms)
            and progress.kind == "train"
            and config.group is None
            and config.fit.callbacks.tensorboard is None
            and not (
                training.unstored
                or training.alone(progress)
                or progress.mst_key in self._roster.keeping
            )
        )

    def _alike(
        self, worker: Worker, leader: ConfigProgress, taken: Collection[int]
    ) -> list[ConfigProgress]:
        positions, of = self._roster.positions, self._roster.training[leader.mst_key]
        others = (
            each
            for key, each in sorted(positions.progress.items())
            if key not in taken and self._may(each)
        )
        return [
            each
            for each in fusion_groups.find_companions(leader, others)
            if self._same(of, self._roster.training[each.mst_key])
            and self._home(each.mst_key) in (None, worker.number)
        ]

    def _same(self, one: ConfigTraining, other: ConfigTraining) -> bool:
        return (one.compilation, one.config.fit) == (other.compilation, other.config.fit)

    def _compilation(self, progress: ConfigProgress) -> object:
        return self._roster.training[progress.mst_key].compilation

    def _share(self, worker: Worker, alike: Sequence[ConfigProgress], workers: int) -> int:
        """How many of those alike fall to one of so many workers: as many as to the others,
        counting those at home with it that stand elsewhere."""
        positions, training = self._roster.positions, self._roster.training
        of, here = training[alike[0].mst_key], {each.mst_key for each in alike}
        ahead = [each.mst_key for each in positions.progress.values() if not each.finished]
        same = [key for key in ahead if self._same(of, training[key])]
        return max(
            1,
            math.ceil(len(same) / workers)
            - sum(self._home(key) == worker.number for key in {*same} - here),
        )

    def _home(self, mst_key: int) -> int | None:
        residence = self._roster.positions.residence
        return residence.home_of(mst_key) if residence else None

    def _recorded(self, mst_key: int, tour: VisitBatch) -> str | None:
        """The form of several states in which a replay has all these visits of a configuration, if
        it has.
        """
        forms = {
            self._roster.request.replay.forms.get((mst_key, visit.epoch, visit.segment_id))
            for visit in tour
        }
        (form,) = forms if len(forms) == 1 else (None,)
        return form if form in LANES else None

    def _size(
        self, worker: Worker, members: Sequence[ConfigProgress], tour: VisitBatch, *, whole: bool
    ) -> int:
        """How many of these to train together: most, where it is still to be timed; else by what is
        saved. That is more than it costs to store a state, where without them the tour would go on
        after an evaluation."""
        training, most = self._roster.training[members[0].mst_key], len(members)
        known, form = self._measurements.forms(training, worker), choose_fused_form(most)
        if form not in known:
            offered = (worker.number, training.compilation, form) in self._offered
            return most if most > LANES[form] // 2 and not offered else 1
        best = choose_fusion_size(known, most)
        saved = compute_fusion_saving(known, best)
        rows = (
            training.config.fit.passes
            * self._roster.request.source.rows
            / len(self._roster.positions.plan.segments)
        )
        pays = saved > 0 and (whole or saved * rows * len(tour) > self._measurements.hop)
        return best if pays else 1

    def start(self, worker: Worker, tours: Sequence[VisitBatch], room: int) -> bool:
        """Begin these tours, where there is room for another worker and this one has stored all;
        whether they began.
        """
        give = self._assignments
        if not room or give.counted(worker.number):
            return False
        roster, tasks = self._roster, []
        self._offered.add(
            (
                worker.number,
                roster.training[tours[0][0].mst_key].compilation,
                choose_fused_form(len(tours)),
            )
        )
        for tour in tours:
            training, attempt = roster.training[tour[0].mst_key], roster.begin(tour)
            if roster.positions.residence:
                roster.positions.residence.assign(tour[0].mst_key, worker.number)
            known = self._measurements.forms(training, worker)
            rows = self._choice.rows_ahead(roster.positions, training, len(give.numbers))
            tasks.append(
                Visiting(
                    tour, time.monotonic(), [*training.tour_visits(tour, attempt, rows, known)]
                )
            )
        give.fuse(worker, Fusing(tasks))
        return True

    def made(
        self, worker: Worker, task: Fusing, found: Sequence[FusedResult]
    ) -> list[tuple[int, str]]:
        """Take up what became of those that were trained together, which is stored; who failed,
        with the reasons.
        """
        roster, failed, seconds = self._roster, list[tuple[int, str]](), 0.0
        for visiting, each in zip(task.tasks, found):
            training = roster.training[visiting.mst_key]
            awaited = self._awaited(visiting)
            if each.error and awaited:
                failed.append((visiting.mst_key, each.error))
            if each.error:
                continue
            self._measurements.take(worker, training, each.batch)
            seconds += sum(result.seconds for result in each.results)
            for visit, result in zip(visiting.tour, each.results):
                training.trained(visit, result)
            if awaited:
                roster.positions.complete(visiting.tour)
        if found:
            spent = time.monotonic() - task.tasks[0].since - seconds
            self._measurements.take_hops(spent / len(found))
        else:
            self.abandon(worker, task, None)
        return failed

    def abandon(self, worker: Worker, task: Fusing, error: CerebroError | None) -> None:
        """None of them was trained: each goes on alone, and is charged with nothing. Nor does the
        worker try it again: it may have been too much for its trainer."""
        if isinstance(error, PASSING):
            worker.memory.forget()
        self._unfit.add((worker.number, self._roster.training[task.tasks[0].mst_key].compilation))
        for visiting in task.tasks:
            training = self._roster.training[visiting.mst_key]
            known = None if isinstance(error, ConnectionFailure) else 1
            lost = [*training.lost(visiting.tour[:known], visiting.step, charged=False)]
            if error is not None and known is None:
                self._roster.log.log_lost_attempts(lost, error.message)
            if self._awaited(visiting):
                self._roster.positions.abandon(visiting.tour)

    def _awaited(self, visiting: Visiting) -> bool:
        return self._roster.positions.running(visiting.tour)
