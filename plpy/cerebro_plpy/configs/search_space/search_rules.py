"""Search rules by name: the rule of a run, and what of its epochs a configuration trains under
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.early_stopping import VALIDATION, EarlyStopping, early_stopping
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.sampling import Sampling
from cerebro_plpy.configs.train_spec import GroupPlace
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.grouped_search import GroupedRules
from cerebro_plpy.scheduling.search.hyperband import Diagonals, Hyperband
from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.pbt import Pbt
from cerebro_plpy.scheduling.search.promotion_rules import (
    Asha,
    EpochBudget,
    Median,
    Rule,
    Stepwise,
    UntilTarget,
    compute_rungs,
)
from cerebro_plpy.scheduling.search.successive_halving import make_halving, make_hyperband

GRID, HALVING, HYPERBAND, ASHA, MEDIAN = "grid", "halving", "hyperband", "asha", "median"
DIAGONALS, PBT, PATIENCE, PASHA = "madlib_hyperband", "pbt", "patience", "pasha"
FIRST_EPOCHS = "first_epochs"
"""A parameter of those with rungs: after how many epochs the first one ends."""
PARAMETERS: Mapping[str, Mapping[str, int]] = {
    GRID: {},
    HALVING: {"eta": 3, FIRST_EPOCHS: 1},
    HYPERBAND: {"eta": 3},
    ASHA: {"eta": 3, FIRST_EPOCHS: 1},
    PASHA: {"eta": 3, FIRST_EPOCHS: 1},
    MEDIAN: {"grace_epochs": 1, "others": 5},
    DIAGONALS: {"R": 6, "eta": 3, "skip_last": 0},
    PBT: {"interval": 1},
    PATIENCE: {"patience": 3},
}
"""Their parameters, whole numbers, with what is usual; over templates the usual first rung grows
with the epochs.
"""


class Span(NamedTuple):
    """The epochs of a run, and those after which metrics are computed anyway; whether larger values
    are better; how many visits make an epoch; and the seed."""

    epochs: int
    evaluated: Sequence[int]
    descending: bool = False
    segments: int = 1
    seed: int = 0


@dataclass(frozen=True)
class SearchRule:
    """A rule as a call names it, with all of its parameters."""

    name: str
    parameters: Mapping[str, int]
    target: float | None = None
    sampling: Sampling | None = None
    live_states: int | None = None
    max_visits: int | None = None
    max_cpu: float | None = None
    max_cost: float | None = None
    quantile: float = 0.25
    min_delta: float = 0.0
    metric: str | None = None

    @property
    def every_epoch(self) -> bool:
        """Whether it looks at each evaluation, so that there should be many."""
        return self.name in (MEDIAN, PATIENCE, PASHA) or (
            self.name == GRID and self.sampling is None
        )

    @property
    def abreast(self) -> bool:
        """Whether all are trained side by side to the end: of more than there is time for none
        would be whole.
        """
        return self.name == PBT

    def first_rung(self, epochs: int) -> int:
        """After how many of so many epochs configurations are compared first, where a search has
        rungs.

        Unless the call says it, two more rungs follow: one epoch of a long run tells too little of
        the last one.

        >>> (SearchRule("asha", {"eta": 3}).first_rung(27),
        ...  SearchRule("halving", {"eta": 3}).first_rung(5))
        (3, 1)
        """
        usual = 1 if self.name == HYPERBAND else max(1, epochs // self.parameters["eta"] ** 2)
        return min(epochs, self.parameters.get(FIRST_EPOCHS, usual))

    def share(self, epochs: int) -> float:
        """About what part of so many epochs a configuration trains; of `pasha` the most that it may
        be.

        >>> (round(SearchRule("asha", {"eta": 3, "first_epochs": 1}).share(27), 3),
        ...  SearchRule("grid", {}).share(27))
        (0.111, 1.0)
        """
        if self.name in (GRID, MEDIAN, PBT, PATIENCE):
            return 1.0
        if self.name == DIAGONALS:
            method = Hyperband(**self.parameters)
            visited = sum(each.configs * each.iterations for each in method.schedule())
            return visited / (epochs * method.configs)
        eta = self.parameters["eta"]
        ends = compute_rungs(epochs, eta, self.first_rung(epochs))
        steps = [end - start for start, end in zip((0, *ends), ends)]
        halved: float = sum(step / eta**number for number, step in enumerate(steps)) / epochs
        return halved if self.name in (HALVING, ASHA, PASHA) else min(1.0, len(ends) * halved)

    def stopping(self, ranking: Ranking) -> EarlyStopping | None:
        """What stops each configuration and keeps its best state, where the search is that of
        patience.

        >>> SearchRule("patience",
        ...     {"patience": 2}).stopping(Ranking("validation", "loss", False)).monitor
        'val_loss'
        """
        if self.name != PATIENCE:
            return None
        usual = (VALIDATION if ranking.dataset == "validation" else "") + ranking.metric
        return early_stopping(
            {
                "monitor": self.metric or usual,
                "restore_best_weights": True,
                "patience": self.parameters["patience"],
                "min_delta": self.min_delta,
            }
        )

    def over(self, mst_keys: Sequence[int], span: Span) -> Rule:
        """The rule for a run of these configurations."""
        rule = self._over(mst_keys, span)
        if self.max_visits is not None:
            rule = EpochBudget(rule, self.max_visits // span.segments)
            first_epochs = rule.decision_epochs[0]
            if rule.epochs < first_epochs:
                raise InvalidParameter(
                    f"max_visits in search_params is {self.max_visits}; expected at least "
                    f"{first_epochs * span.segments}, which one configuration makes until the "
                    "first decision."
                )
        if self.target is None:
            return rule
        return UntilTarget(rule, -self.target if span.descending else self.target)

    def _over(self, mst_keys: Sequence[int], span: Span) -> Rule:
        values, keys = self.parameters, sorted(mst_keys)
        if self.name == ASHA:
            return Asha(span.epochs, values["eta"], self.first_rung(span.epochs))
        if self.name == PASHA:
            return Pasha(span.epochs, values["eta"], self.first_rung(span.epochs))
        if self.name == HALVING:
            return make_halving(keys, span.epochs, values["eta"], self.first_rung(span.epochs))
        if self.name == HYPERBAND:
            return make_hyperband(keys, span.epochs, values["eta"])
        if self.name == DIAGONALS:
            return Diagonals(self._method(keys, span), keys)
        if self.name == PBT:
            return Pbt(span.epochs, values["interval"], self.quantile, span.seed)
        if self.name == MEDIAN:
            return Median(span.evaluated, values["grace_epochs"], values["others"])
        return Stepwise(span.evaluated)

    def _method(self, keys: Sequence[int], span: Span) -> Hyperband:
        method = Hyperband(**self.parameters)
        if (len(keys), span.epochs) != (method.configs, method.epochs):
            raise InvalidParameter(
                f"search {self.name!r} with {method} tries {method.configs} configurations over at "
                f"most {method.epochs} epochs; there are {len(keys)} and {span.epochs}",
                hint="SELECT hyperband_schedule('a_table', R, eta, skip_last) makes a table of "
                "its rounds.",
            )
        return method


def rule_of_groups(
    rule: SearchRule,
    mst_keys: Mapping[int, str | None],
    span: Span,
    groups: Mapping[str, GroupPlace],
) -> Rule:
    """The rule of a run: each group has a selection of its own, and so have the configurations that
    see all rows.

    By each key it says of which group that configuration is, if of one.
    """
    if not groups:
        return rule.over(tuple(mst_keys), span)
    segments: dict[str | None, int] = {None: span.segments}
    segments.update((value, len(place.training)) for value, place in sorted(groups.items()))
    keys = {group: [key for key, of in mst_keys.items() if of == group] for group in segments}
    return GroupedRules(
        {
            group: rule.over(keys[group], span._replace(segments=segments[group]))
            for group in segments
        }
    )
