"""Configurations of a run over groups: each is tried once over all rows, and once over those of
each group.

They come round by round, so that whenever the time is over each group has as many as the others,
but for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.candidates import Proposal
from cerebro_plpy.configs.templates.template import choose_batch_size
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.limits import CONFIGS, check
from cerebro_plpy.packing.grouped_buffers import GroupedLayouts
from cerebro_plpy.preprocessing.rows.groups import GroupRows, Groups


class PlannedConfig(NamedTuple):
    """A configuration that is to be: of which round, over the rows of which group, None for all,
    and what is tried.
    """

    round: int
    group: str | None
    proposal: Proposal


def plan_configs(
    tried: Sequence[Proposal], groups: Groups | None, rows: int
) -> list[PlannedConfig]:
    """All configurations of a run over so many rows, in the order of their keys, which count from
    1.
    """
    count = len(tried) * (1 + len(groups.rows_by_group) if groups else 1)
    check("the number of configurations with those of groups", count, CONFIGS)
    found = []
    for number, proposal in enumerate(tried, 1):
        found.append(PlannedConfig(number, None, proposal))
        usual = choose_batch_size(rows) == proposal.params["batch_size"]
        for group in groups.rows_by_group if groups else ():
            found.append(
                PlannedConfig(number, group.value, _over(proposal, group) if usual else proposal)
            )
    return found


def _over(proposal: Proposal, group: GroupRows) -> Proposal:
    """The same, with batches as they are usual over so many rows."""
    return proposal._replace(
        params={**proposal.params, "batch_size": choose_batch_size(group.training)}
    )


def make_group_layouts(
    grouped: GroupedLayouts | None, groups: Groups | None, made: Sequence[PlannedConfig]
) -> dict[str, GroupLayout]:
    """Where the rows of each group are, and which configurations it has."""
    if grouped is None or groups is None:
        return {}
    keys: dict[str | None, tuple[int, ...]] = {}
    for key, entry in enumerate(made, 1):
        keys[entry.group] = (*keys.get(entry.group, ()), key)
    return {
        value: place._replace(mst_keys=keys[value])
        for value, place in grouped.find_places(groups).items()
    }
