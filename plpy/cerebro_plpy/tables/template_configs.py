"""Configurations of templates, built for a run of `cerebro.train`.

The logged spec of the run determines the result, so a configuration that is added to a live run is
built like the first ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.early_stopping import VALIDATION, EarlyStopping
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import (
    ASHA,
    HALVING,
    HYPERBAND,
    PASHA,
    PBT,
    SearchRule,
)
from cerebro_plpy.configs.templates.budget import choose_patience
from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head, Measure
from cerebro_plpy.configs.templates.networks.custom import extract_network, wrap_network
from cerebro_plpy.configs.templates.registry import TEMPLATES, find_template
from cerebro_plpy.configs.templates.template import Cycles, Params, Rates, Template
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.limits import Poll, poll_between
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.scheduling.search.promotion_rules import compute_rungs
from cerebro_plpy.tables.architectures import BuiltConfigs, StoredModel
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.models.model_registry import ENSEMBLE

MODULE = "train"


class TemplateConfig(NamedTuple):
    """A template with the values of its fields."""

    template: Template
    params: Params
    group: str | None = None  # group of rows; None for all rows
    shared_model_id: int | None = None  # of a configuration with the same architecture


@dataclass(frozen=True)
class ConfigBuilder:
    """Builds configurations that are added to a live run."""

    spec: RunSpec
    source: PackedTable
    loaded_templates: Mapping[str, Template]  # networks of users, by name
    poll: Poll  # called between configurations

    def __call__(self, rows: Mapping[int, Mapping[str, Any]]) -> BuiltConfigs:
        """Build configurations.

        Args:
            rows: `template`, `params` and perhaps `group` of each configuration, by mst_key.

        Raises:
            InvalidParameter: a template does not have such a field, or such a value.
        """
        train = self.spec.train
        assert train is not None
        head = read_head(train)
        configs = {}
        for mst_key, row in rows.items():
            name = row["template"]
            template = self.loaded_templates.get(name) or find_template(name)
            group = row.get("group")
            training_rows = train.split.training_rows
            if group is not None:
                training_rows = train.grouping.layouts[group].rows
            params = template.params(head, training_rows, row["params"])
            configs[mst_key] = TemplateConfig(template, params, group)
        return build_configs(self.spec, configs, self.source, self.poll)


def find_loaded_templates(architectures: Mapping[str, str]) -> dict[str, Template]:
    """Return the templates of users' networks, by name.

    Args:
        architectures: architecture of a configuration, by the name of its template.
    """
    own_names = {template.name for template in TEMPLATES} | {ENSEMBLE}
    return {
        name: wrap_network(name, extract_network(text))
        for name, text in architectures.items()
        if name not in own_names
    }


def read_head(train: TrainSpec) -> Head:
    """Return the head of a run's networks.

    Raises:
        FeatureNotSupported: an older version did not log it.
    """
    if train.task != REGRESSION:
        return Classes(len(train.classes))
    if train.measure is None:
        raise FeatureNotSupported(
            "the run was begun by an older version, which did not log what its target is like"
        )
    return Floats((Measure(**train.measure),))


def build_configs(
    spec: RunSpec, templates: Mapping[int, TemplateConfig], source: PackedTable, poll: Poll
) -> BuiltConfigs:
    """Build configurations of templates, by mst_key."""
    train = spec.train
    assert train is not None
    inputs = Recipe.from_json(train.recipe).table
    head = read_head(train)
    rule = read_search_rule(
        MODULE, spec.arguments.search, spec.arguments.search_params, spec.epochs, templates=True
    )
    cycles = find_cycles(rule, spec.epochs)
    metrics = [choose_metric(spec.ranking.metric)]
    stopping_text = _make_early_stopping(spec, rule).text
    architectures: dict[int, StoredModel] = {}
    configs = []
    for mst_key, config in poll_between(templates.items(), poll):
        template = config.template
        params = config.params
        counts = train.counts
        if config.group is not None:
            counts = train.grouping.layouts[config.group].counts or train.counts
        rates = _make_rates(spec, config, source, cycles)
        compile_text = template.compile_params(head, params, metrics, rates)
        fit_text = template.fit_params(params, stopping_text, counts)
        model_id = config.shared_model_id or mst_key
        if model_id not in architectures:
            text = template.build_architecture(inputs, head, params, spec.epochs)
            architectures[model_id] = StoredModel(model_id, text, has_weights=False)
        configs.append(
            Config(
                mst_key,
                model_id,
                compile_text,
                fit_text,
                parse_compile_params(compile_text, None),
                parse_fit_params(fit_text),
                (),
                template.name,
                params,
                config.group,
            )
        )
    return BuiltConfigs(name_metrics(configs, architectures, source, poll), architectures)


def _make_rates(
    spec: RunSpec, config: TemplateConfig, source: PackedTable, cycles: Cycles | None
) -> Rates | None:
    """Return the schedule of a configuration's learning rate; None if it has no batches."""
    if "batch_size" not in config.params:
        return None
    batch_size = int(config.params["batch_size"])
    steps = count_steps(source, batch_size)
    if config.group is not None:
        assert spec.train is not None
        steps = spec.train.grouping.layouts[config.group].steps(batch_size)
    return Rates(steps, spec.epochs, cycles)


def choose_metric(ranking: str) -> str:
    """Return the metric that is computed beside the loss.

    Args:
        ranking: metric that ranks configurations.
    """
    if ranking == "loss":
        return "accuracy"
    return ranking


def _make_early_stopping(spec: RunSpec, rule: SearchRule | None) -> EarlyStopping:
    """Return the callback that stops configurations, and keeps the states of their best epochs."""
    if rule:
        stopping = rule.make_early_stopping(spec.ranking)
        if stopping:
            return stopping
    stopping = EarlyStopping(f"{VALIDATION}{spec.ranking.metric}", restore_best_weights=True)
    if rule and (rule.name == PBT or find_cycles(rule, spec.epochs)):
        # A member of a population that is behind may still become the best, and could not resume
        # once it is stopped. When learning rates rise again, metrics get worse before they improve.
        return replace(stopping, patience=spec.epochs)
    return replace(stopping, patience=choose_patience(spec.epochs))


def find_cycles(rule: SearchRule | None, epochs: int) -> Cycles | None:
    """Return cycles of learning rates that end at the rungs of a search; None without rungs."""
    if rule is None or rule.name not in (ASHA, HALVING, HYPERBAND, PASHA):
        return None
    first = rule.first_rung(epochs)
    eta = rule.parameters["eta"]
    count = len(compute_rungs(epochs, eta, first))
    if count == 1:
        return None
    return Cycles(first, eta, count)


def count_steps(source: PackedTable, batch_size: int) -> int:
    """Return the steps of an epoch; batches end where a segment ends."""
    rows = -(-source.rows // len(source.segments))
    return -(-rows // batch_size) * len(source.segments)
