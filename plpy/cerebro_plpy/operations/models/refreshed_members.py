"""The members of a version as configurations of the run that refreshes it.

Networks train on from their weights, with a lower learning rate. Boosted trees are grown again from
the beginning: trees that go on learn less from new rows than as many new ones.
"""

from __future__ import annotations

import json
from typing import Any

from cerebro_plpy.configs.architecture.boosted_trees import divide_epochs, is_boosted_trees
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.templates.template import Rates
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.limits import no_poll
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.refit.member_params import set_learning_rate
from cerebro_plpy.operations.train.model_lineage import Lineage
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.models.model_versions import Member
from cerebro_plpy.tables.template_configs import count_steps

RATE_SHARE = 0.3
"""Share of the first run's learning rate: a higher one would undo what the weights have learned."""


def count_previous_epochs(lineage: Lineage) -> dict[int, int]:
    """Return the epochs of each network of the version so far, by mst_key."""
    original = lineage.run_spec
    return {
        member.mst_key: original.epochs_before.get(member.mst_key, 0)
        + _find_best_epoch(lineage, member)
        for member in lineage.version.members
        if not is_boosted_trees(member.architecture)
    }


def make_models(lineage: Lineage, source: PackedTable, epochs: int) -> ModelInputs:
    """Return the members of the version as configurations of a run.

    Args:
        source: the rows to train on.
        epochs: of the run.
    """
    configs = []
    architectures = {}
    backends = {}
    for member in lineage.version.members:
        row = lineage.configs[member.mst_key]
        model_id = row["model_id"]
        compile_params = row["compile_params"]
        fit_params = parse_fit_params(row["fit_params"])
        architecture = member.architecture
        if is_boosted_trees(architecture):
            best_epoch = _find_best_epoch(lineage, member)
            architecture = divide_epochs(architecture, best_epoch, epochs)
        else:
            rates = Rates(count_steps(source, fit_params.batch_size), epochs)
            compile_params = make_compile_params(compile_params, rates, lineage)
        architectures[model_id] = StoredModel(model_id, architecture, False)
        backends[member.mst_key] = row["backend"]
        configs.append(
            Config(
                member.mst_key,
                model_id,
                compile_params,
                row["fit_params"],
                parse_compile_params(compile_params, None),
                fit_params,
                template=member.template,
                params=json.loads(member.params),
            )
        )
    named_configs = name_metrics(configs, architectures, source, no_poll)
    return ModelInputs(named_configs, architectures, None, backends)


def make_compile_params(text: str, rates: Rates, lineage: Lineage) -> str:
    """Return compile parameters with a new learning rate schedule and a lower maximum.

    The maximum of a version that was refreshed is low already.
    """
    rate: Any = parse_compile_params(text, None).optimizer.config["learning_rate"]
    if isinstance(rate, dict):
        rate = rate["config"]["warmup_target"]
    highest = float(rate)
    if not lineage.train_spec.start:
        highest *= RATE_SHARE
    return set_learning_rate(text, rates.make_schedule(highest))


def _find_best_epoch(lineage: Lineage, member: Member) -> int:
    """Return the epoch of the run whose state the member has."""
    row: Row = lineage.configs[member.mst_key]
    return int(row["best_epoch"] or lineage.run_spec.epochs)
