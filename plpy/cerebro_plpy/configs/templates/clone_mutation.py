"""A configuration of a template near another one, from whose state it is to go on, as population
based training has it.

Such a state is of weights, of what the optimizer knows of them, and of steps that were made, by
which its learning rate rises and falls. So a field moves only where all of these mean the same
afterwards, which the template itself tells: by the network, the optimizer and the batches that it
makes of either value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.model_shapes import same_predictions
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.optimizers import OptimizerSpec, goes_on_with
from cerebro_plpy.configs.search_space.distributions import Choices, Draw
from cerebro_plpy.configs.search_space.perturbation import move
from cerebro_plpy.configs.templates.candidates import shortened
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Params, Template
from cerebro_plpy.records import dataclass


class Made(NamedTuple):
    """What fields come to: a network, an optimizer, and how a configuration goes through the
    rows.
    """

    network: object
    optimizer: OptimizerSpec
    rows: Params

    def goes_on_as(self, other: Made) -> bool:
        """Whether a state of this is one of the other, at the same step; not where nothing would be
        other.
        """
        if self == other or self.rows["batch_size"] != other.rows["batch_size"]:
            return False  # with other batches as many rows make another number of steps
        whole = goes_on_with(self.optimizer, other.optimizer) != "weights_of_chunks"
        return whole and same_predictions(self.network, other.network)


@dataclass(frozen=True)
class Kin:
    """Configurations of a template for a table, of which one may go on from the state of
    another.
    """

    template: Template
    table: Table
    head: Head

    def movable(self, params: Params, draws: Mapping[str, Draw]) -> list[str]:
        """The fields that have other values in these draws with which a configuration could go
        on.
        """
        own = self._made(params)
        return [
            name
            for name, draw in draws.items()
            if any(own.goes_on_as(self._made({**params, name: value})) for value in _ends(draw))
        ]

    def moved(self, params: Params, draws: Mapping[str, Draw], random: Random) -> dict[str, Any]:
        """The same fields, but for those that these draws are of, as far as they can move."""
        found, own = dict(params), self._made(params)
        for name, draw in draws.items():
            values: dict[str, Any] = {**found, name: shortened(move(draw, found[name], random))}
            other = self._made(values)
            if own.goes_on_as(other):
                found, own = values, other
        return found

    def _made(self, params: Params) -> Made:
        network = json.loads(self.template.architecture(self.table, self.head, params))
        optimizer = parse_compile_params(
            self.template.compile_params(self.head, params), None
        ).optimizer
        return Made(network, optimizer, {field.name: params[field.name] for field in FIT_FIELDS})


def _ends(draw: Draw) -> Sequence[Any]:
    """All values of a choice, or where a range ends."""
    return draw.values if isinstance(draw, Choices) else (draw.low, draw.high)
