"""The server is killed at moments drawn from a seed, in the midst of searches with acts, and each
is resumed.

Its replay must have the same bits; and by rotation, where no clock decides anything, an undisturbed
run of the same seed the same winner, and the same bits as well where both used the same forms of
their programs: `Course.play` and `Crashed` assert that. Each way to call comes once; `make chaos`
goes on for more moments, with another seed.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from course import Course
from premises import Premises
from rounds import FITS, crashes
from workbench import Workbench

MOMENTS = int(os.environ.get("CHAOS_MOMENTS") or len(FITS))
SEED = os.environ.get("CHAOS_SEED") or "141"
SECONDS = 120
"""That a moment may take, with all that follows from it."""
WINNERS = "SELECT mst_key FROM cerebro.leaderboard WHERE run_id = %s AND rank = 1 ORDER BY mst_key"
DECIDED = (
    "SELECT mst_key, max(last_epoch) FROM cerebro.decision WHERE run_id = %s GROUP BY mst_key "
    "ORDER BY mst_key"
)
FORMS = (
    "SELECT DISTINCT mst_key, form FROM cerebro.visit WHERE run_id = %s AND status = 'completed' "
    "ORDER BY 1, 2"
)


class Crashed(Course):
    """A round whose run is compared with an undisturbed one, too, where its order is fixed."""

    same_bits = False

    def _compare(self, session: Workbench) -> None:
        super()._compare(session)
        if self.plan.schedule == "rotation":
            self._compare_undisturbed(session)

    def _compare_undisturbed(self, session: Workbench) -> None:
        validation, frequency = self._evaluation
        calm = f"{self.output}_calm"
        run = session.fit(
            self.source,
            calm,
            self.configs,
            self.plan.epochs,
            seed=session.value(
                "SELECT (spec ->> 'seed')::bigint FROM cerebro.run WHERE run_id = %s",
                self.scene.run,
            ),
            schedule=self.plan.schedule,
            workers=self.plan.workers,
            backend=self.plan.framework,
            validation_table=validation,
            metrics_compute_frequency=frequency,
            search="asha",
            search_params=self.plan.search_params,
        )
        assert session.rows(WINNERS, run) == session.rows(WINNERS, self.scene.run)
        assert session.rows(DECIDED, run) == session.rows(DECIDED, self.scene.run)
        self.same_bits = session.rows(FORMS, run) == session.rows(FORMS, self.scene.run)
        if self.same_bits:
            assert session.weights(calm) == session.weights(self.output)
        session.rows(f"DROP TABLE {calm}, {calm}_info, {calm}_summary")


@pytest.fixture
def premises(folder: Path) -> Premises:
    """A server of the test's own, for all moments."""
    return Premises(folder / "data")


@pytest.mark.long
@pytest.mark.timeout(60 + MOMENTS * SECONDS)
def test_a_search_comes_to_its_end_whenever_the_server_is_killed(premises: Premises) -> None:
    count, began = Counter[str](), time.monotonic()
    for plan in crashes(SEED):
        print(plan, flush=True)
        course = Crashed(premises, plan)
        try:
            course.play()
        except BaseException:
            print(
                f"To repeat it alone: make chaos SEED={plan.name}; {course.calls} calls, "
                f"{course.errors}"
            )
            raise
        count.update(
            searches=1,
            killed=len(course.struck),
            calm=plan.schedule == "rotation",
            bits=course.same_bits,
        )
        print(
            f"    {time.monotonic() - began:.0f} s: {course.calls} calls {course.errors}",
            flush=True,
        )
        if count["killed"] >= MOMENTS:
            break
    print(
        f"{count['killed']} kills in {count['searches']} searches; {count['calm']} beside an "
        f"undisturbed run, {count['bits']} of these with the same forms, and bits"
    )
