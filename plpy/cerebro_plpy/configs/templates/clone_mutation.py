"""Mutation of a template's configuration whose clone resumes from its state, as in PBT.

A state has weights, the optimizer's variables, and the number of steps, which determines the
learning rate of a schedule. So a field may change only if all of these keep their meaning. This is
decided by the networks, optimizers and batches that the template builds with either value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.model_shapes import have_same_predictions
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.optimizers import OptimizerSpec, choose_state_source
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution
from cerebro_plpy.configs.search_space.perturbation import perturb_value
from cerebro_plpy.configs.templates.candidates import round_value
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Params, Template
from cerebro_plpy.records import dataclass


class _BuiltConfig(NamedTuple):
    """The network, the optimizer and the fit parameters of a configuration."""

    network: object
    optimizer: OptimizerSpec
    fit_params: Params

    def can_resume_as(self, target: _BuiltConfig) -> bool:
        """Return whether another configuration can resume from a state of this one."""
        if self == target:
            return False  # nothing would change
        if self.fit_params.get("batch_size") != target.fit_params.get("batch_size"):
            return False  # the same rows would be another number of steps
        if choose_state_source(self.optimizer, target.optimizer) == "weights_of_chunks":
            return False  # the optimizer's variables would be lost
        return have_same_predictions(self.network, target.network)


@dataclass(frozen=True)
class CloneMutation:
    """Mutates configurations of a template for a table."""

    template: Template
    table: Table
    head: Head

    def find_mutable_fields(
        self, params: Params, distributions: Mapping[str, Distribution]
    ) -> list[str]:
        """Return the fields that can change without losing the state.

        Args:
            distributions: of the fields that are searched.
        """
        original = self._build(params)
        return [
            name
            for name, distribution in distributions.items()
            if any(
                original.can_resume_as(self._build({**params, name: value}))
                for value in _extreme_values(distribution)
            )
        ]

    def mutate(
        self, params: Params, distributions: Mapping[str, Distribution], random: Random
    ) -> dict[str, Any]:
        """Return the parameters with changes of those searched fields that can change."""
        mutated = dict(params)
        config = self._build(params)
        for name, distribution in distributions.items():
            value = round_value(perturb_value(distribution, mutated[name], random))
            candidate: dict[str, Any] = {**mutated, name: value}
            candidate_config = self._build(candidate)
            if config.can_resume_as(candidate_config):
                mutated = candidate
                config = candidate_config
        return mutated

    def _build(self, params: Params) -> _BuiltConfig:
        text = self.template.build_architecture(self.table, self.head, params, epochs=1)
        network = json.loads(text)
        compile_text = self.template.compile_params(self.head, params)
        optimizer = parse_compile_params(compile_text, None).optimizer
        fit_params = {
            field.name: params[field.name] for field in FIT_FIELDS if field.name in params
        }
        return _BuiltConfig(network, optimizer, fit_params)


def _extreme_values(distribution: Distribution) -> Sequence[Any]:
    """Return all choices, or both ends of a range."""
    if isinstance(distribution, Choices):
        return distribution.values
    return (distribution.low, distribution.high)
