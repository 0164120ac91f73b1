"""Population based training: the configs that stop, the clones, and the epochs of each line."""

from __future__ import annotations

from math import ceil, inf, isfinite

from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.scheduling.search.pbt import Pbt
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, SearchState


def bred(
    rule: Pbt, population: int, losses: list[float]
) -> tuple[SearchState, list[DecisionBatch]]:
    """Run a search to its end; each value depends on its config and epoch alone."""
    state, batches = (
        SearchState(rule, range(1, population + 1), 2, fixed=True),
        list[DecisionBatch](),
    )
    while True:
        batches += state.decide()
        under_way = [key for key, trial in state.trials.items() if trial.is_running]
        if not under_way:
            return state, batches
        for key in under_way:
            epoch = state.trials[key].max_epoch
            state.report_value(key, epoch, losses[(7 * key + epoch) % len(losses)])


def worst(value: float) -> float:
    """Return the value of a config; one that is not finite is the worst."""
    return value if isfinite(value) else inf


LOSSES = st.lists(st.floats(), min_size=1, max_size=9)
RULES = st.builds(
    Pbt, st.integers(1, 9), st.integers(1, 4), st.sampled_from([0.25, 0.5]), st.integers(0, 9)
)


@given(RULES, st.integers(1, 9), LOSSES)
@trials(100)
def test_the_worst_of_each_step_go_on_from_the_best(
    rule: Pbt, population: int, losses: list[float]
) -> None:
    state, batches = bred(rule, population, losses)
    known = state.trials.items()
    values = {
        (key, epoch): worst(value) for key, trial in known for epoch, value in trial.values.items()
    }
    for made in batches:
        stopped = [each.mst_key for each in made.decisions if each.action == "stop"]
        clones = [each for each in made.decisions if each.action == "clone"]
        assert len(stopped) == len(clones) <= ceil(population * rule.quantile)
        going = {
            each.mst_key: each.max_epoch for each in made.decisions if each.action == "continue"
        }
        for clone in clones:
            assert clone.parent in going and clone.parent is not None
            own = (
                state.trials[clone.mst_key].inherited_epochs
                - state.trials[clone.parent].inherited_epochs
            )
            lost = [state.trials[key].max_epoch for key in stopped]
            assert all(
                not values[key, end] < values[clone.parent, own]
                for key, end in zip(stopped, lost, strict=True)
            )
    assert len(state.trials) == population + sum(
        e.action == "clone" for h in batches for e in h.decisions
    )


@given(RULES, st.integers(1, 9), LOSSES)
@trials(100)
def test_each_line_trains_the_epochs_of_the_run(
    rule: Pbt, population: int, losses: list[float]
) -> None:
    """As many lines as there were configurations come to the end, and values were asked for
    wherever a step ends.
    """
    state, _ = bred(rule, population, losses)
    whole = [
        trial
        for trial in state.trials.values()
        if trial.inherited_epochs + trial.max_epoch == rule.epochs
    ]
    assert len(whole) == population and not any(trial.finished for trial in whole)
    assert {epoch for trial in state.trials.values() for epoch in trial.values} <= set(
        rule.decision_epochs
    )
    assert rule.decision_epochs[-1] == rule.epochs


@given(RULES, st.integers(1, 9), LOSSES)
@trials(100)
def test_who_takes_up_the_decisions_comes_to_the_same(
    rule: Pbt, population: int, losses: list[float]
) -> None:
    state, batches = bred(rule, population, losses)
    values = {key: dict(trial.values) for key, trial in state.trials.items()}
    for cut in range(len(batches) + 1):
        again = SearchState(rule, range(1, population + 1), 2, fixed=True)
        known = {each.mst_key for made in batches[:cut] for each in made.decisions}
        for key in sorted(known - again.trials.keys()):
            again.add_config(key)
        again.restore(batches[:cut], values)
        found = [*batches[:cut]]
        while made := [*again.decide()]:
            found += made
            for key, trial in list(again.trials.items()):
                if trial.is_running:
                    again.report_value(key, trial.max_epoch, values[key][trial.max_epoch])
        assert found == batches
