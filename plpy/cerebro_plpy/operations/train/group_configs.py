"""Configurations of a run with models of groups: a config over all rows, and one over each group.

They are added round by round. Whenever the budget ends, all groups therefore have equally many
configurations, except for the last round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.candidates import Proposal
from cerebro_plpy.configs.templates.template import choose_batch_size
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.limits import CONFIGS, check
from cerebro_plpy.packing.grouped_buffers import GroupedLayouts
from cerebro_plpy.preprocessing.rows.groups import Groups


class PlannedConfig(NamedTuple):
    """A configuration that will be trained."""

    round: int
    group: str | None  # value of the group whose rows it is trained on; None for all rows
    proposal: Proposal


def plan_configs(
    proposals: Sequence[Proposal], groups: Groups | None, rows: int
) -> list[PlannedConfig]:
    """Return all configurations of a run in the order of their keys, which count from 1.

    Args:
        rows: number of training rows.
    """
    group_rows = groups.rows_by_group if groups else ()
    count = len(proposals) * (1 + len(group_rows))
    check("the number of configurations with those of groups", count, CONFIGS)
    configs = []
    for number, proposal in enumerate(proposals, 1):
        configs.append(PlannedConfig(number, None, proposal))
        has_usual_batches = proposal.params.get("batch_size") == choose_batch_size(rows)
        for group in group_rows:
            group_proposal = proposal
            if has_usual_batches:
                group_proposal = _adapt_batch_size(proposal, group.training)
            configs.append(PlannedConfig(number, group.value, group_proposal))
    return configs


def _adapt_batch_size(proposal: Proposal, rows: int) -> Proposal:
    """Return a proposal with the usual batch size for so many rows."""
    return proposal._replace(params={**proposal.params, "batch_size": choose_batch_size(rows)})


def make_group_layouts(
    layouts: GroupedLayouts | None, groups: Groups | None, configs: Sequence[PlannedConfig]
) -> dict[str, GroupLayout]:
    """Return the buffers and the configurations of each group, by its value."""
    if layouts is None or groups is None:
        return {}
    keys: dict[str | None, tuple[int, ...]] = {}
    for key, config in enumerate(configs, 1):
        keys[config.group] = (*keys.get(config.group, ()), key)
    return {
        value: layout._replace(mst_keys=keys[value])
        for value, layout in layouts.find_places(groups).items()
    }
