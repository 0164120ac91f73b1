"""How a round goes: the call and its misfortunes side by side, then what a user would do, until the
run is complete.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg2
from faults import FAULTS, OF_PREDICTIONS, Scene, nothing
from premises import KEPT, LEFT, Observer, Premises, check_passing
from processes import LONGEST_WAIT, PAUSE, eventually
from rounds import CLONE, Misfortune, Round
from states import same, stored
from workbench import Row, Workbench, opened

LONGEST = 400.0
"""Seconds that a call may take: one that takes longer hangs."""
ATTEMPTS = 20
"""At each visit: more than there are faults, so no configuration may fail."""
INTERNAL = {"XX000", "38000"}
"""What no user should ever see."""
TABLES = ("", "_info", "_summary")
RUNS = """
    SELECT run_id, status, error FROM cerebro.run
    WHERE run_id > %s AND spec -> 'train' ->> 'refit_of' IS NULL"""
COMPLETED = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
COMPLETED_OF_CALL = """
    SELECT count(*) FROM cerebro.visit JOIN cerebro.run r USING (run_id)
    WHERE %s IN (r.run_id, (r.spec -> 'train' ->> 'refit_of')::bigint)
        AND visit.status = 'completed'"""
AT_WORK = """
    SELECT FROM pg_stat_activity WHERE application_name LIKE 'cerebro\\_db%'
    UNION ALL SELECT FROM pg_locks WHERE locktype = 'advisory'"""
ONCE = """
    SELECT count(*), count(DISTINCT (mst_key, segment_id, epoch)) FROM cerebro.visit
    WHERE run_id = %s AND status = 'completed'"""
LIMITS = """
    SELECT d.mst_key, (SELECT count(*) FROM cerebro.visit v
                       WHERE (v.run_id, v.mst_key, v.status) = (d.run_id, d.mst_key, 'completed')),
                           d.last_epoch
    FROM (SELECT DISTINCT ON (mst_key) * FROM cerebro.decision WHERE run_id = %s ORDER BY mst_key,
        decision_no DESC) d
    WHERE d.action <> 'hold'"""
SOURCE = "CREATE TABLE {} AS SELECT id, x[1] AS first, x[2] AS second, label FROM points"
VERSIONS = "SELECT count(*) FROM cerebro.model_version WHERE model = %s AND run_id = %s"
PREDICTED = (
    "SELECT id, prediction, probabilities FROM cerebro.predict(%s, %s, 'id') ORDER BY id::integer"
)
METRICS = """
    SELECT mst_key, training_loss, training_metrics, validation_loss, validation_metrics
    FROM {}_info ORDER BY mst_key"""


class Course:
    """One round on these premises. `errors` are those that its calls ended with, `struck` the
    faults that struck.
    """

    def __init__(self, premises: Premises, plan: Round) -> None:
        self.premises, self.plan = premises, plan
        self.output = "r" + plan.name.replace("/", "_").replace("-", "_")
        self.configs, self.again = f"{self.output}_configs", f"{self.output}_again"
        self.source = f"{self.output}_source" if plan.named else f"packed_{plan.segments}"
        self.scene = Scene(premises, random.Random(plan.name), self.output, self.source)
        self.struck: list[Misfortune] = []
        self.errors: list[str] = []
        self.calls = 0
        self._pending = list(plan.misfortunes)
        self._asked = list(plan.acts)
        self._reached: dict[Misfortune, float] = {}
        self._observer, self._waiter = (
            Observer(premises.superuser_url),
            Observer(premises.superuser_url),
        )
        with opened(premises.url) as session:
            self._before = session.last_run_id()
            if plan.named:
                session.rows(SOURCE.format(self.source))
            else:
                session.configure(self.configs, plan.compiles, [plan.fit], model=2)

    def play(self) -> None:
        """Bring the run to its end whatever befalls it; then repeat it, compare, and see that
        nothing is left.
        """
        self.premises.seen.clear()
        with ThreadPoolExecutor(1) as pool:
            try:
                self._finish(pool)
            except BaseException:
                self.premises.abandon()  # the call would go on
                raise
        self._nothing_left(LEFT)
        with opened(self.premises.url) as session:
            self._check_log(session)
            if self.plan.named:
                self._compare_named(session)
                self._predict(session)
            else:
                self._compare(session)
            self._remove(session)
        self._nothing_left(LEFT | KEPT)
        self._observer.close()
        self._waiter.close()

    def _finish(self, pool: ThreadPoolExecutor) -> None:
        while True:
            self.calls += 1
            assert self.calls <= len(self.struck) + 1, (
                f"undisturbed, and not completed: {self.errors} {self._runs()}"
            )
            call = pool.submit(self._call)
            self._disturb(call)
            error = call.result()
            self.scene.afterwards.close()
            if (
                self._finished()
            ):  # also where its caller has not heard of it: it may have gone on in the background
                return
            self.errors.append(self._told(error))

    def _told(self, error: psycopg2.Error | None) -> str:
        """What ended a call, or the run that it had begun in the background."""
        if error is None:
            return " ".join(f"{status}: {said}" for _, status, said in self._runs())
        assert error.pgcode not in INTERNAL, str(error)
        return f"{error.pgcode}: {error.diag.message_primary}" if error.pgcode else "no answer"

    def _disturb(self, call: Future[psycopg2.Error | None]) -> None:
        """Let strike what is due, until the call has ended."""
        deadline = time.monotonic() + LONGEST
        while not call.done():
            assert time.monotonic() < deadline, (
                f"a call hangs: {self._observer.ask('TABLE pg_stat_activity')}"
            )
            self.premises.watch()
            self._act()
            if due := next((each for each in self._pending if self._due(each)), None):
                self._strike(due)
            time.sleep(PAUSE)

    def _act(self) -> None:
        """Ask what is due of a run that goes on; a server that is not there hears nothing."""
        if not self._asked or self._visits() < self._asked[0][0]:
            return
        _, act = self._asked.pop(0)
        calls = {
            "pause_run": "cerebro.pause_run({0}), cerebro.continue_run({0})",
            "stop_config": "cerebro.stop_config({0}, 1)",
            "prioritize": "cerebro.prioritize({0}, 1)",
            CLONE: "cerebro.clone_config({0}, 1, jsonb_build_object('batch_size', 2))",
        }
        try:
            with opened(self.premises.url) as session:
                if session.value(f"{COMPLETED} AND mst_key = 1", self.scene.run):
                    session.rows(f"SELECT {calls[act].format(self.scene.run)}")
        except psycopg2.Error as error:
            assert error.pgcode not in INTERNAL, str(error)

    def _due(self, misfortune: Misfortune) -> bool:
        """Whether the run is as far as it says, for as long as it says, if somebody has to
        strike.
        """
        if FAULTS[misfortune.fault].strike is nothing:
            return False
        if misfortune not in self._reached and self._visits() >= misfortune.visits:
            self._reached[misfortune] = time.monotonic()
        return time.monotonic() >= self._reached.get(misfortune, float("inf")) + misfortune.seconds

    def _visits(self) -> int:
        """Return the number of completed visits, also on all rows; -1 before there is a run, and -2
        before there is a trainer.
        """
        found = self._observer.ask(RUNS, self._before)
        if found and not self.scene.run:
            self.scene.run = found[0][0]
        if self.scene.run:
            rows = self._observer.ask(COMPLETED_OF_CALL, self.scene.run)
            return int(rows[0][0]) if rows else -1
        return -1 if self.premises.trainers() else -2

    def _call(self) -> psycopg2.Error | None:
        """What a user does next, and its error; back when nobody works for it any more."""
        error = None
        session = self.scene.caller = self.premises.session()
        try:
            self._next(session)
        except psycopg2.Error as raised:
            error = raised
        session.close()
        deadline = time.monotonic() + LONGEST
        while self._waiter.ask(AT_WORK) != [] and not self.premises.abandoned:
            assert time.monotonic() < deadline, (
                f"still at work: {self._waiter.ask('TABLE pg_stat_activity')}"
            )
            time.sleep(PAUSE)
        return error

    def _next(self, session: Workbench) -> None:
        """Begin, go on, or make the tables that are missing."""
        found = self._runs()
        if not found:
            self._begin(session)
        elif self._finished():  # in the background, while its caller's session was ended
            return
        elif found[0][1] == "completed":
            session.rows("SELECT cerebro.write_outputs(%s, %s)", found[0][0], self.output)
        else:
            session.rows(
                "SELECT cerebro.resume(%s, background => %s)", found[0][0], self.plan.background
            )
            self._await(found[0][0])

    def _begin(self, session: Workbench) -> None:
        if self.calls == 1:
            self._hurry(session)
        if self.plan.named:
            self._begin_named(session)
            return
        call = "cerebro.submit" if self.plan.background else "madlib_fit_multiple_model"
        run = session.value(
            f"SELECT {call}(%s, %s, %s, %s, schedule => %s, workers => %s, backend => %s, "
            "max_attempts => %s, validation_table => %s, metrics_compute_frequency => %s, search "
            "=> %s, search_params => %s)",
            *(
                self.source,
                self.output,
                self.configs,
                self.plan.epochs,
                self.plan.schedule,
                self.plan.workers,
            ),
            *(self.plan.framework, ATTEMPTS, *self._evaluation),
            "asha" if self.plan.search else None,
            self.plan.search_params,
        )
        if self.plan.background:
            self._await(run)

    def _begin_named(self, session: Workbench) -> None:
        (run, *_), *_ = session.rows(
            "SELECT run_id FROM cerebro.train(%s, 'label', %s, models => '{linear}', configs => "
            "%s, epochs => %s, seed => 1, ensemble => 1, workers => %s, backend => %s, background "
            "=> %s)",
            *(
                self.source,
                self.output,
                len(self.plan.optimizers),
                self.plan.epochs,
                self.plan.workers,
            ),
            *(self.plan.framework, self.plan.background),
        )
        if self.plan.background:
            self._await(run)

    def _hurry(self, session: Workbench) -> None:
        """What the caller has set, of the first call alone; where that strikes by itself, it
        has.
        """
        for misfortune in tuple(self._pending):
            fault = FAULTS[misfortune.fault]
            if fault.setting:
                session.rows(f"SET {fault.setting} = '{self.scene.draw.uniform(0.3, 6):.3f} s'")
            if fault.strike is nothing:
                self._strike(misfortune)

    def _strike(self, misfortune: Misfortune) -> None:
        if FAULTS[misfortune.fault].strike(self.scene):
            self._pending.remove(misfortune)
            self.struck.append(misfortune)

    @property
    def _evaluation(self) -> tuple[str | None, int | None]:
        return (self.source, 1) if self.plan.evaluated else (None, None)

    def _await(self, run: int) -> None:
        """Wait for a run in the background, in a session of its own; again when that is lost."""
        deadline = time.monotonic() + LONGEST
        while self.plan.background and not self.premises.abandoned and time.monotonic() < deadline:
            try:
                with opened(self.premises.url) as session:
                    while session.value("SELECT cerebro.wait(%s, '1 s')", run) == "running":
                        pass
                return
            except psycopg2.Error as error:
                check_passing(error)
                time.sleep(PAUSE)

    def _runs(self) -> list[Row]:
        """Return the runs that a user resumes: one at most."""
        found: list[Row] = []

        def answered() -> bool:
            rows = self._waiter.ask(RUNS, self._before)
            found[:] = rows or []
            return rows is not None

        eventually(answered)
        assert len(found) <= 1, found
        return found

    def _finished(self) -> bool:
        found = self._runs()
        if not found or found[0][1] != "completed":
            return False
        with opened(self.premises.url) as session:
            if self.plan.named:
                assert session.value(VERSIONS, self.output, found[0][0]) == 1
                return True
            made = [session.exists(self.output + suffix) for suffix in TABLES]
        assert all(made) or not any(made), made
        return all(made)

    def _check_log(self, session: Workbench) -> None:
        """It looks like that of a run that nothing befell, but for visits that failed and were made
        again.
        """
        run = self.scene.run = self._runs()[0][0]
        keys = len(self.plan.optimizers) + self.plan.drawn
        made, once = session.row(ONCE, run)
        clones = session.value(
            "SELECT count(*) FROM cerebro.config WHERE run_id = %s AND source = 'clone'", run
        )
        assert made == once
        assert (
            self.plan.named
            or made <= self.plan.visits + clones * self.plan.segments * self.plan.epochs
        )
        assert not session.rows(
            "SELECT FROM cerebro.act WHERE run_id = %s AND status = 'scheduled'", run
        )
        ends = {
            status
            for (status,) in session.rows(
                "SELECT status FROM cerebro.config WHERE run_id = %s", run
            )
        }
        if self.plan.named:
            assert ends <= {"completed", "stopped"}
            return
        assert ends == {"completed"} or (
            ends <= {"completed", "stopped"} and (self.plan.search or self.plan.acts)
        )
        if not (self.plan.search or self.plan.acts):
            assert made == self.plan.visits
        for key, visits, last in session.rows(LIMITS, run):
            assert visits == last * self.plan.segments, key
        assert session.value(f"SELECT count(model_weights) FROM {self.output}") == keys + clones

    def _compare(self, session: Workbench) -> None:
        """A replay by a single worker has the same weights, states and metrics, to the bit."""
        validation, frequency = self._evaluation
        again = session.fit(
            self.source,
            self.again,
            self.configs,
            self.plan.epochs,
            schedule="replay",
            replay_run=self.scene.run,
            workers=1,
            validation_table=validation,
            metrics_compute_frequency=frequency,
        )
        assert again > self.scene.run
        assert session.weights(self.output) == session.weights(self.again)
        assert session.rows(METRICS.format(self.output)) == session.rows(METRICS.format(self.again))
        for key in session.weights(self.output):
            assert same(stored(session, self.output, key), stored(session, self.again, key)), key

    def _compare_named(self, session: Workbench) -> None:
        """Who makes the version again, gets the same bits."""
        findings = session.rows("SELECT what, ok, detail FROM cerebro.verify(%s)", self.output)
        assert all(ok for _, ok, _ in findings), findings

    def _predict(self, session: Workbench) -> None:
        """A prediction is right, whatever befalls it."""
        assert self.plan.scored is not None
        strike, rows = (
            OF_PREDICTIONS[self.plan.scored].strike,
            (PREDICTED, self.output, self.source),
        )
        expected = session.rows(*rows)
        self.premises.watch()
        with opened(self.premises.url) as other:
            self.scene.caller = other
            struck = strike(self.scene)
            with other.calling(lambda: other.rows(*rows)) as called:
                while not (struck or called.done()):
                    time.sleep(PAUSE)
                    struck = strike(self.scene)
                found = called.result()
        self.scene.afterwards.close()
        assert found == expected

    def _remove(self, session: Workbench) -> None:
        """What an owner removes, with the states of what had ended."""
        if self.plan.named:
            session.rows("SELECT cerebro.drop_model(%s)", self.output)
            session.rows(f"DROP TABLE {self.source}")
        else:
            for output in (self.output, self.again):
                session.rows(f"DROP TABLE {', '.join(output + suffix for suffix in TABLES)}")
            session.rows(f"DROP TABLE {self.configs}, {self.configs}_summary")
        for (run,) in session.rows("SELECT run_id FROM cerebro.run"):
            session.rows("SELECT cerebro.drop_run(%s)", run)
        session.rows("SELECT cerebro.vacuum_runs('0')")

    def _nothing_left(self, queries: dict[str, str]) -> None:
        """Sooner or later."""
        deadline = time.monotonic() + LONGEST_WAIT
        while left := self.premises.left(queries):
            assert time.monotonic() < deadline, left
            time.sleep(PAUSE)
