"""Search rules by name, with their parameters; the rule of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.early_stopping import (
    VALIDATION,
    EarlyStopping,
    make_early_stopping,
)
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.sampling import Sampling
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
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

GRID = "grid"
HALVING = "halving"
HYPERBAND = "hyperband"
ASHA = "asha"
MEDIAN = "median"
DIAGONALS = "madlib_hyperband"
PBT = "pbt"
PATIENCE = "patience"
PASHA = "pasha"
FIRST_EPOCHS = "first_epochs"
"""A parameter of rules with rungs: the epoch at which the first rung ends."""
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
"""The integer parameters of each rule, with defaults; over templates, the default first rung grows
with the epochs.
"""


class RuleContext(NamedTuple):
    """The properties of a run that its rule depends on."""

    epochs: int
    evaluated_epochs: Sequence[int]  # epochs after which metrics are computed anyway
    descending: bool = False  # larger values are better
    segments: int = 1  # number of visits in an epoch
    seed: int = 0


@dataclass(frozen=True)
class SearchRule:
    """A rule as a call requests it, with all of its parameters."""

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
    def needs_every_epoch(self) -> bool:
        """Return True if the rule uses each evaluation, so that there should be many."""
        if self.name == GRID:
            return self.sampling is None
        return self.name in (MEDIAN, PATIENCE, PASHA)

    @property
    def is_concurrent(self) -> bool:
        """Return True if all configs train concurrently to the last epoch.

        Only as many may start as can finish in the budget.
        """
        return self.name == PBT

    def first_rung(self, epochs: int) -> int:
        """Return the epoch after which a search with rungs compares configurations first.

        By default, two more rungs follow: the first epoch of a long run predicts too little of the
        last one.

        >>> SearchRule("asha", {"eta": 3}).first_rung(27)
        3
        >>> SearchRule("halving", {"eta": 3}).first_rung(5)
        1
        """
        default = 1
        if self.name != HYPERBAND:
            default = max(1, epochs // self.parameters["eta"] ** 2)
        return min(epochs, self.parameters.get(FIRST_EPOCHS, default))

    def trained_share(self, epochs: int) -> float:
        """Estimate the part of the epochs that a configuration trains; an upper bound for `pasha`.

        >>> round(SearchRule("asha", {"eta": 3, "first_epochs": 1}).trained_share(27), 3)
        0.111
        >>> SearchRule("grid", {}).trained_share(27)
        1.0
        """
        if self.name in (GRID, MEDIAN, PBT, PATIENCE):
            return 1.0
        if self.name == DIAGONALS:
            method = Hyperband(**self.parameters)
            trained = sum(round_.configs * round_.iterations for round_ in method.schedule())
            return trained / (epochs * method.configs)
        eta = self.parameters["eta"]
        ends = compute_rungs(epochs, eta, self.first_rung(epochs))
        steps = [end - start for start, end in zip((0, *ends), ends)]
        share: float = sum(step / eta**number for number, step in enumerate(steps)) / epochs
        if self.name in (HALVING, ASHA, PASHA):
            return share
        return min(1.0, len(ends) * share)

    def make_early_stopping(self, ranking: Ranking) -> EarlyStopping | None:
        """Return the early stopping of each configuration, if the rule is `patience`.

        >>> ranking = Ranking("validation", "loss", False)
        >>> SearchRule("patience", {"patience": 2}).make_early_stopping(ranking).monitor
        'val_loss'
        """
        if self.name != PATIENCE:
            return None
        default = ranking.metric
        if ranking.dataset == "validation":
            default = VALIDATION + ranking.metric
        return make_early_stopping(
            {
                "monitor": self.metric or default,
                "restore_best_weights": True,
                "patience": self.parameters["patience"],
                "min_delta": self.min_delta,
            }
        )

    def make_rule(self, mst_keys: Sequence[int], context: RuleContext) -> Rule:
        """Return the rule for a run.

        Raises:
            InvalidParameter: the rule does not fit the configurations or the epochs.
        """
        rule = self._make_rule(mst_keys, context)
        if self.max_visits is not None:
            rule = EpochBudget(rule, self.max_visits // context.segments)
            first_epochs = rule.decision_epochs[0]
            if rule.epochs < first_epochs:
                raise InvalidParameter(
                    f"max_visits in search_params is {self.max_visits}; expected at least "
                    f"{first_epochs * context.segments}, which one configuration makes until the "
                    "first decision."
                )
        if self.target is None:
            return rule
        return UntilTarget(rule, -self.target if context.descending else self.target)

    def _make_rule(self, mst_keys: Sequence[int], context: RuleContext) -> Rule:
        values = self.parameters
        keys = sorted(mst_keys)
        if self.name == ASHA:
            return Asha(context.epochs, values["eta"], self.first_rung(context.epochs))
        if self.name == PASHA:
            return Pasha(context.epochs, values["eta"], self.first_rung(context.epochs))
        if self.name == HALVING:
            return make_halving(
                keys, context.epochs, values["eta"], self.first_rung(context.epochs)
            )
        if self.name == HYPERBAND:
            return make_hyperband(keys, context.epochs, values["eta"])
        if self.name == DIAGONALS:
            return Diagonals(self._make_hyperband(keys, context), keys)
        if self.name == PBT:
            return Pbt(context.epochs, values["interval"], self.quantile, context.seed)
        if self.name == MEDIAN:
            return Median(context.evaluated_epochs, values["grace_epochs"], values["others"])
        return Stepwise(context.evaluated_epochs)

    def _make_hyperband(self, keys: Sequence[int], context: RuleContext) -> Hyperband:
        method = Hyperband(**self.parameters)
        if (len(keys), context.epochs) != (method.configs, method.epochs):
            raise InvalidParameter(
                f"search {self.name!r} with {method} tries "
                f"{count_nouns(method.configs, 'configuration')} over at "
                f"most {count_nouns(method.epochs, 'epoch')}; there are {len(keys)} and "
                f"{context.epochs}",
                hint=f"Train {count_nouns(method.configs, 'configuration')} over "
                f"{count_nouns(method.epochs, 'epoch')}.",
            )
        return method


def make_grouped_rule(
    rule: SearchRule,
    mst_keys: Mapping[int, str | None],
    context: RuleContext,
    groups: Mapping[str, GroupLayout],
) -> Rule:
    """Return the rule of a run, with a model selection for each group and one over all rows.

    Args:
        mst_keys: group by mst_key; None for a configuration over all rows.
    """
    if not groups:
        return rule.make_rule(tuple(mst_keys), context)
    segments: dict[str | None, int] = {None: context.segments}
    for group, layout in sorted(groups.items()):
        segments[group] = len(layout.training)
    rules = {}
    for selection, count in segments.items():
        keys = [key for key, group in mst_keys.items() if group == selection]
        rules[selection] = rule.make_rule(keys, context._replace(segments=count))
    return GroupedRules(rules)
