"""Configurations of templates, as a run of `cerebro.train` trains them: what it was asked decides what each comes to.

So one that joins while the run goes on is made as those that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.configs.spec import Spec
from cerebro_plpy.configs.templates.effort import patience
from cerebro_plpy.configs.templates.table import Classes, Floats, Head, Measure
from cerebro_plpy.configs.templates.template import Params, Template
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.target import REGRESSION
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import with_metrics


class Filled(NamedTuple):
    """A template with the value of each of its fields."""

    template: Template
    params: Params


class Made(NamedTuple):
    """Configurations, and the architecture that each has of its own, by a model id that is its mst_key."""

    configs: tuple[Config, ...]
    architectures: dict[int, StoredModel]


def head_of(train: TrainSpec) -> Head:
    """What networks of a run give; FeatureNotSupported where an older version has not logged it."""
    if train.task != REGRESSION:
        return Classes(len(train.classes))
    if train.measure is None:
        raise FeatureNotSupported("the run was begun by an older version, which did not log what its target is like")
    return Floats((Measure(**train.measure),))


def made(spec: Spec, wanted: Mapping[int, Filled], source: PackedTable) -> Made:
    """What templates come to in a run that was asked this, by mst_key."""
    assert spec.train is not None
    inputs, head, metric = Recipe.from_json(spec.train.recipe).table, head_of(spec.train), spec.ranking.metric
    metrics, monitor = ["accuracy"] if metric == "loss" else [metric], f"val_{metric}"
    architectures, configs = dict[int, StoredModel](), list[Config]()
    for key, (template, params) in wanted.items():
        steps = steps_of(source, int(params["batch_size"]), spec.epochs)
        compiled = template.compile_params(head, params, metrics, steps)
        fitted = template.fit_params(params, monitor, patience(spec.epochs), spec.train.counts)
        architectures[key] = StoredModel(key, template.architecture(inputs, head, params), False)
        parsed = parse_compile_params(compiled, None), parse_fit_params(fitted)
        configs.append(Config(key, key, compiled, fitted, *parsed, (), template.name, params))
    return Made(with_metrics(configs, architectures, source), architectures)


def steps_of(source: PackedTable, batch_size: int, epochs: int) -> int:
    """The steps that a configuration makes over so many epochs: batches end where a segment does."""
    rows = -(-source.rows // len(source.segments))
    return -(-rows // batch_size) * len(source.segments) * epochs
