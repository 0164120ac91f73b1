"""The one place where it is decided which configurations of a run go on: a rule is asked, its
answers are logged.

A decision is committed before anything follows from it, together with all others that one result
has led to. Whoever resumes the run takes them up from the log, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.run_log import Command, DecisionRow, LogStatements
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.loop.added_configs import Recruits
from cerebro_plpy.run.request.run_request import Evaluation, SearchRequest
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.workers.tasks import Decided
from cerebro_plpy.scheduling.quota.cost_limits import ExceededLimit
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST
from cerebro_plpy.scheduling.search.grouped_search import trials_of_group
from cerebro_plpy.scheduling.search.promotion_rules import Action, Decision
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, Groups, SearchState


class Search:
    """The search of one run; without one, nothing is ever decided."""

    def __init__(self, roster: Roster, recruits: Recruits, tell: Decided) -> None:
        self._recruits, self._tell = recruits, tell
        self._request, self._log, self._positions, self._training = roster[:4]
        self._keeping = roster.keeping
        self._spare: set[int] = set()  # configurations whose states are to go
        request = roster.request
        self._configs = {config.mst_key: config for config in request.configs}
        self._ranking = request.spec.ranking
        self._sign = (
            -1.0 if self._ranking.descending else 1.0
        )  # rules want smaller values to be better
        self._log.last_decision = (
            sum(len(heard.decisions) for heard in request.logged_decisions) + request.replans
        )
        self._over, self.undecided = (
            False,
            frozenset[int](),
        )  # who was under way when the search was over
        self._name = request.search.name if request.search else ""
        self._course = self._begun(request.search) if request.search else None
        self._recall_acts(request.logged_decisions)

    def _begun(self, search: SearchRequest) -> SearchState:
        fixed = self._request.spec.schedule != LONGEST
        width = self._request.workers * 2 if fixed else self._request.workers + 1
        drawing = search.sampling
        groups = Groups(search.groups, drawing.remaining_by_group if drawing else {})
        draws = drawing.remaining if drawing else 0
        course = SearchState(
            search.rule, search.mst_keys, width, fixed=fixed, sample_count=draws, groups=groups
        )
        course.restore(
            self._request.logged_decisions, {key: self._values(key) for key in search.mst_keys}
        )
        for key, limit in course.max_epochs.items():
            self._positions.limit(key, limit)
            self._plan(course, key)
        for key in search.mst_keys:
            if key not in self._configs:
                course.report_end(key, "it has failed", failed=True)
        return course

    def _plan(self, course: SearchState, mst_key: int) -> None:
        """A configuration that goes on in the place of others has the epochs that these have
        left.
        """
        if (before := course.trials[mst_key].inherited_epochs) and mst_key in self._training:
            self._training[mst_key].epochs = self._request.spec.epochs - before

    def _recall_acts(self, decided: Sequence[DecisionBatch]) -> None:
        """Hold whom somebody has stopped, and let nobody go further than was decided, search or
        not.
        """
        last = {decision.mst_key: decision for heard in decided for decision in heard.decisions}
        by_act = [(heard.act, decision) for heard in decided for decision in heard.decisions]
        self._insisted = {decision.mst_key for act, decision in by_act if act == "continue_config"}
        for act, decision in by_act:
            if act == "set_epochs" and decision.mst_key in self._positions.progress:
                self._training[decision.mst_key].epochs = decision.max_epoch
        for key, decision in last.items():
            if key in self._positions.progress:
                self._positions.limit(key, decision.max_epoch)
                if decision.action == "hold":
                    self._positions.hold(key)
        self._log.log_configs_resting(
            [key for key, each in last.items() if each.action in ("rest", "hold", "stop")]
        )

    @property
    def searches(self) -> bool:
        """Whether a rule decides who goes on."""
        return self._course is not None

    @property
    def draws(self) -> bool:
        """Whether others may still join that are drawn."""
        return self._course is not None and self._course.remaining_samples > 0 and not self._over

    def insists(self, mst_key: int) -> bool:
        """Whether somebody wants a configuration to be trained on, whatever its metrics say."""
        return mst_key in self._insisted

    def awaits(self, mst_key: int) -> bool:
        """Whether a configuration of a replay waits for the state that it is to begin from."""
        return self._recruits.awaits(mst_key)

    def hold(self, act: Command, progress: ConfigProgress) -> None:
        """Somebody stops a configuration."""
        self._positions.hold(progress.mst_key)
        self._by_act(act, progress, "hold", self._limit(progress), f"stopped by {act.actor}")

    def revive(self, act: Command, progress: ConfigProgress, limit: int) -> None:
        """Somebody lets a configuration train on."""
        self._insisted.add(progress.mst_key)
        self._positions.revive(progress.mst_key, limit)
        self._by_act(act, progress, "continue", limit, f"continued by {act.actor}")

    def set_epochs(self, act: Command, limits: Mapping[int, int]) -> None:
        """Somebody says for how many epochs configurations are trained, by mst_key: more than the
        run has, too.
        """
        last, told = max(limits.values()), f"epochs said by {act.actor}"
        grows = last > self._positions.plan.epochs
        own_limits = (
            self._positions.grow(last, self._request.spec.list_evaluations_until(last))
            if grows
            else {}
        )
        others = [(key, limit) for key, limit in own_limits.items() if key not in limits]
        made = [Decision(key, "continue", limit, "it keeps its epochs") for key, limit in others]
        unfinished = [key for key in limits if not self._positions.progress[key].finished]
        for key, limit in limits.items():
            action: Action = "promote" if self._training[key].completed() else "continue"
            made.append(Decision(key, action, limit, told))
            if self._positions.progress[key].paused:
                made.append(Decision(key, "hold", limit, f"{told}, while it was stopped"))
            self._evaluate(limit)
            self._training[key].epochs = limit
            self._positions.extend(key, limit)
        self._log_act(act, made, None, self._log.build_epoch_statements(last) if grows else None)
        for key in unfinished:
            if self._training[key].completed():
                self._log.log_config_completed(key)

    def begin_first(self, act: Command, progress: ConfigProgress) -> None:
        """Somebody wants a configuration to go first, also where the rule has not let it begin
        yet.
        """
        if self._course and not (self._course.max_epochs[progress.mst_key] or progress.paused):
            limit = self._course.rule.decision_epochs[0]
            self._positions.limit(progress.mst_key, limit)
            return self._by_act(act, progress, "start", limit, f"to go first, by {act.actor}")
        self._log.log_command_done(act, self.visits(progress))

    def visits(self, progress: ConfigProgress) -> int:
        """How many visits a configuration has made when those under way are."""
        training = self._training[progress.mst_key]
        ahead = training.unstored if self._positions.gone_on(progress.mst_key) else 0
        return (
            training.visits
            + ahead
            + (
                0
                if progress.kind == "evaluate"
                else len(progress.running_segments) + progress.later_visits
            )
        )

    def admit(self, act: Command) -> None:
        """Configurations join: the rule is asked about them, or they go on to the last epoch where
        it takes no more.
        """
        join = self._recruits.clone if act.action == "clone_config" else self._recruits.add
        configs, joined = join(act)
        last = self._request.spec.epochs
        decisions = [
            Decision(config.mst_key, "start", last, f"added by {act.actor}") for config in configs
        ]
        asked = self._course is not None and self._course.rule.accepts_new_configs
        self._enter(configs, 0 if asked else last)
        self._log_act(act, [] if asked else decisions, None, joined)

    def _enter(self, configs: Sequence[Config], limit: int) -> None:
        for config in configs:
            self._configs[config.mst_key] = config
            self._positions.limit(config.mst_key, limit)
            if self._course:
                self._course.add_config(config.mst_key, config.group)

    def _draw(self, course: SearchState, count: int, group: str | None) -> None:
        """Let so many configurations join that are drawn; where there are fewer, there are no more
        to come.
        """
        configs, joined = self._recruits.draw(count, trials_of_group(course.trials, group), group)
        if configs:
            self._log.execute(joined)
            self._enter(configs, 0)
        if len(configs) < count:
            course.stop_sampling(group)

    def _limit(self, progress: ConfigProgress) -> int:
        last = self._positions.plan.epochs
        return last if progress.max_epoch is None else progress.max_epoch

    def _by_act(
        self, act: Command, progress: ConfigProgress, action: Action, limit: int, why: str
    ) -> None:
        self._log_act(act, [Decision(progress.mst_key, action, limit, why)], self.visits(progress))

    def _log_act(
        self,
        act: Command,
        decisions: Sequence[Decision],
        visits: int | None,
        joined: LogStatements | None = None,
    ) -> None:
        """Commit an act with all that it decides, of one configuration after so many visits."""
        rows = self._rows(DecisionBatch(None, tuple(decisions)))
        self._log.log_command_done(act, visits, rows, joined)
        for decision in decisions:
            if self._course:
                self._course.override(decision, act.action)
        if rows:
            self._tell(rows, self._evaluations())

    def _evaluations(self) -> Iterable[Evaluation]:
        return (each for training in self._training.values() for each in training.evaluations)

    def _evaluate(self, epoch: int) -> None:
        """A rule has to hear of a configuration at its limit."""
        plan = self._positions.plan
        if plan.evaluations:
            self._positions.plan = replace(plan, evaluate_epochs=plan.evaluate_epochs | {epoch})

    def _values(self, mst_key: int) -> dict[int, float]:
        if mst_key not in self._training:
            return {}
        return dict(self._ranked(self._configs[mst_key], self._training[mst_key].evaluations))

    def _ranked(
        self, config: Config, evaluations: Iterable[Evaluation]
    ) -> Iterable[tuple[int, float]]:
        for each in evaluations:
            if each.dataset == self._ranking.dataset:
                yield each.epoch, self._sign * messages.ranked_value(each, config, self._ranking)

    def heard(self, mst_key: int, evaluations: Sequence[Evaluation]) -> None:
        """Metrics of a configuration were logged."""
        if self._course:
            for epoch, value in self._ranked(self._configs[mst_key], evaluations):
                self._course.report_value(mst_key, epoch, value)

    def ended(self, mst_key: int, why: str) -> None:
        """A configuration goes no further, whatever a rule says."""
        if self._course:
            self._course.report_end(mst_key, why)

    def failed(self, mst_key: int, why: str) -> None:
        """A configuration has failed."""
        if self._course:
            self._course.report_end(mst_key, f"it failed: {why}", failed=True)

    def exhausted(self, ended: Sequence[ConfigProgress], excess: ExceededLimit) -> None:
        """Configurations are trained no further, for the run has cost as much as it may."""
        made = [Decision(each.mst_key, "stop", self._limit(each), excess.reason) for each in ended]
        rows = self._rows(DecisionBatch(None, tuple(made)))
        self._log.log_decisions(excess.limit, rows)
        if rows:
            self._tell(rows, self._evaluations())

    def decide(self) -> None:
        """Ask the rule about all that it has not heard of; where nothing is left to decide, let all
        that rest end.
        """
        if self._course and not self._over:
            self._ask(self._course)
        self._release()
        settled = not (self.waits or self._recruits.arriving)
        if settled and all(
            each.finished or each.awaits_decision for each in self._positions.progress.values()
        ):
            self.close()

    def fill(self, idle: int) -> bool:
        """Let others begin or go on, where so many workers have nothing to do; whether any do."""
        before = self._log.last_decision
        if idle > 0 and self._course and not self._over:
            self._course.fill_workers(idle)
            self._ask(self._course)
        return self._log.last_decision > before

    def _ask(self, course: SearchState) -> None:
        for heard in course.decide():
            if heard.sample_count:
                self._draw(course, heard.sample_count, heard.group)
                continue
            joined = self._descend(heard.decisions)
            rows = self._rows(heard)
            self._log.log_decisions(self._name, rows, joined)
            self._tell(rows, self._evaluations())
            for decision in heard.decisions:
                self._plan(course, decision.mst_key)
                self._follow(decision)
            self._make_room(course)

    def _descend(self, decisions: Sequence[Decision]) -> LogStatements | None:
        """Let those join that a rule has made of others."""
        clones = [each for each in decisions if each.action == "clone"]
        configs, joined = self._recruits.descend(clones)
        self._configs.update({config.mst_key: config for config in configs})
        return joined if clones else None

    def _make_room(self, course: SearchState) -> None:
        """Drop the states of those that will hardly go on, where they are more than may be kept."""
        most = self._request.search.live_states if self._request.search else None
        if most is None:
            return
        alive = self._positions.progress
        left = [
            key
            for key in course.rule.list_losers(course.trials)
            if key in alive and not alive[key].paused
        ]
        able = [key for key in left if not self._training[key].released]
        gone = able[: max(0, len(able) - most)]
        if not gone:
            return
        made = [
            Decision(
                key, "stop", course.trials[key].max_epoch, "its state is dropped for live_states"
            )
            for key in gone
        ]
        self._log.log_decisions(self._name, self._rows(DecisionBatch(None, tuple(made))))
        for decision in made:
            course.override(decision)
            self._positions.end(decision.mst_key)
            self._training[decision.mst_key].released = True  # nobody may continue it any more
        self._spare.update(gone)

    def _release(self) -> None:
        """Drop the states that are to go, as soon as nobody stores or copies them."""
        gone = [
            key
            for key in sorted(self._spare)
            if not self._training[key].unstored and key not in self._keeping
        ]
        if gone:
            self._spare.difference_update(gone)
            for key in gone:
                self._training[key].release()
            self._log.release_states(gone)

    @property
    def waits(self) -> bool:
        """Whether nothing goes on because somebody has stopped all that could."""
        progress = self._positions.progress.values()
        unfinished = [each for each in progress if not each.finished]
        ended = any(training.completed() for training in self._training.values())
        going_on = self._over or ended or self._recruits.arriving
        return (
            bool(unfinished)
            and not going_on
            and all(each.awaits_decision and each.paused for each in unfinished)
        )

    def close(self) -> None:
        """No rule decides any more: who rests has come to its end, also where somebody has let it
        go on since.
        """
        if not self._over and self._course:
            self.undecided = frozenset(
                key for key, trial in self._course.trials.items() if trial.is_running
            )
        resting = [
            key for key, progress in self._positions.progress.items() if progress.awaits_decision
        ]
        for key in resting:
            end = self._positions.end if self._training[key].evaluated else self._positions.stop
            end(key)
        if self._log.last_decision and (resting or not self._over):  # else nobody was let rest
            self._log.log_search_end()
        self._over = True

    def _rows(self, heard: DecisionBatch) -> list[DecisionRow]:
        rows = []
        for number, each in enumerate(heard.decisions, self._log.last_decision + 1):
            training = self._training.get(each.mst_key)
            visits, values = (training.visits, self._values(each.mst_key)) if training else (0, {})
            epoch = max(values, default=0)
            told = (
                f"{self._ranking.metric} {self._sign * values[epoch]:.6g} after epoch {epoch}: "
                if epoch
                else ""
            )
            why = told + each.reason
            rows.append(
                DecisionRow(
                    number,
                    each.mst_key,
                    each.action,
                    epoch,
                    visits,
                    each.max_epoch,
                    heard.cause,
                    why,
                )
            )
        self._log.last_decision += len(rows)
        return rows

    def _follow(self, decision: Decision) -> None:
        key = decision.mst_key
        if key not in self._positions.progress:
            return  # failed
        if decision.action == "stop":
            self._positions.stop(key)
        elif decision.action == "rest":
            if self._positions.residence:
                self._positions.residence.release(key)
        else:
            self._positions.limit(key, decision.max_epoch)
