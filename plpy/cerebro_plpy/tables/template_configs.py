"""Configurations of templates, as a run of `cerebro.train` trains them: what it was asked decides
what each comes to.

So one that joins while the run goes on is made as those that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.early_stopping import VALIDATION, EarlyStopping
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import Spec
from cerebro_plpy.configs.search_space.search_arguments import read_rule
from cerebro_plpy.configs.search_space.search_rules import (
    ASHA,
    HALVING,
    HYPERBAND,
    PASHA,
    PBT,
    SearchRule,
)
from cerebro_plpy.configs.templates.budget import patience
from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head, Measure
from cerebro_plpy.configs.templates.networks.custom import body, loaded
from cerebro_plpy.configs.templates.networks.ensemble import NAME as ENSEMBLE
from cerebro_plpy.configs.templates.registry import TEMPLATES, find_template
from cerebro_plpy.configs.templates.template import Cycles, Params, Rates, Template
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.limits import Poll, polled
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.scheduling.search.promotion_rules import compute_rungs
from cerebro_plpy.tables.architectures import Made, StoredModel
from cerebro_plpy.tables.compatibility import with_metrics

MODULE = "train"


class Filled(NamedTuple):
    """A template with the value of each of its fields; over the rows of which `group`, if not over
    all; and the model whose architecture it shares with others, if it does."""

    template: Template
    params: Params
    group: str | None = None
    model_id: int | None = None


@dataclass(frozen=True)
class Maker:
    """Makes configurations of a run's templates that join it; those that were loaded are `known` by
    name.

    `poll` is called between them.
    """

    spec: Spec
    source: PackedTable
    known: Mapping[str, Template]
    poll: Poll

    def __call__(self, rows: Mapping[int, Mapping[str, Any]]) -> Made:
        """Of each row the `template` and its `params`, by mst_key; InvalidParameter where they are
        not as they must.
        """
        train = self.spec.train
        assert train is not None
        head, wanted = head_of(train), dict[int, Filled]()
        for key, row in rows.items():
            template = self.known.get(row["template"]) or find_template(row["template"])
            count = (
                train.training_rows if row.get("group") is None else train.groups[row["group"]].rows
            )
            wanted[key] = Filled(
                template, template.params(head, count, row["params"]), row.get("group")
            )
        return made(self.spec, wanted, self.source, self.poll)


def loaded_templates(architectures: Mapping[str, str]) -> dict[str, Template]:
    """Those of these templates that somebody has loaded, by name: each has the architecture of a
    configuration.
    """
    usual = {template.name for template in TEMPLATES} | {ENSEMBLE}
    return {
        name: body(name, loaded(text)) for name, text in architectures.items() if name not in usual
    }


def head_of(train: TrainSpec) -> Head:
    """What networks of a run give; FeatureNotSupported where an older version has not logged it."""
    if train.task != REGRESSION:
        return Classes(len(train.classes))
    if train.measure is None:
        raise FeatureNotSupported(
            "the run was begun by an older version, which did not log what its target is like"
        )
    return Floats((Measure(**train.measure),))


def made(spec: Spec, wanted: Mapping[int, Filled], source: PackedTable, poll: Poll) -> Made:
    """What templates come to in a run that was asked this, by mst_key."""
    assert spec.train is not None
    inputs, head = Recipe.from_json(spec.train.recipe).table, head_of(spec.train)
    asked = spec.arguments.search, spec.arguments.search_params, spec.epochs
    rule = read_rule(MODULE, *asked, templates=True)
    cycles = cycles_of(rule, spec.epochs)
    metrics, watched = [metric_of(spec.ranking.metric)], stopping(spec, rule).text
    architectures, configs = dict[int, StoredModel](), list[Config]()
    for key, (template, params, group, shared) in polled(wanted.items(), poll):
        size, model_id = int(params["batch_size"]), shared or key
        place = None if group is None else spec.train.groups[group]
        rates = Rates(place.steps(size) if place else steps_of(source, size), spec.epochs, cycles)
        compiled = template.compile_params(head, params, metrics, rates)
        counts = place.counts if place and place.counts else spec.train.counts
        fitted = template.fit_params(params, watched, counts)
        if model_id not in architectures:
            architectures[model_id] = StoredModel(
                model_id, template.architecture(inputs, head, params), False
            )
        parsed = parse_compile_params(compiled, None), parse_fit_params(fitted)
        configs.append(
            Config(key, model_id, compiled, fitted, *parsed, (), template.name, params, group)
        )
    return Made(with_metrics(configs, architectures, source, poll), architectures)


def metric_of(ranking: str) -> str:
    """What is computed of each configuration beside its loss, where configurations are compared by
    that.
    """
    return "accuracy" if ranking == "loss" else ranking


def stopping(spec: Spec, rule: SearchRule | None) -> EarlyStopping:
    """What stops configurations, and keeps the states of their best epochs: as a search by patience
    says it.
    """
    usual = EarlyStopping(f"{VALIDATION}{spec.ranking.metric}", restore_best_weights=True)
    own = rule.stopping(spec.ranking) if rule else None
    # Who is behind in a population may still be the best, and whoever ended could not go on; and
    # where rates rise once more, values get worse before they get better.
    whole = rule is not None and (rule.name == PBT or cycles_of(rule, spec.epochs) is not None)
    return own or replace(usual, patience=spec.epochs if whole else patience(spec.epochs))


def cycles_of(rule: SearchRule | None, epochs: int) -> Cycles | None:
    """The cycles of learning rates that end where configurations of so many epochs are compared, if
    there are rungs.
    """
    if rule is None or rule.name not in (ASHA, HALVING, HYPERBAND, PASHA):
        return None
    first, eta = rule.first_rung(epochs), rule.parameters["eta"]
    count = len(compute_rungs(epochs, eta, first))
    return Cycles(first, eta, count) if count > 1 else None


def steps_of(source: PackedTable, batch_size: int) -> int:
    """The steps that a configuration makes in an epoch: batches end where a segment does."""
    rows = -(-source.rows // len(source.segments))
    return -(-rows // batch_size) * len(source.segments)
