"""The weights of several models as those of one that has them as its layers, one after another."""

from __future__ import annotations

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.state import serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.serialization import Assign
from cerebro_trainer.wire.streams import Reading, Stream


def read(layout: Layout, assign: Assign, count: int) -> Reading:
    """Read so many states, which follow one another; ConfigError where they are not all the weights
    of the program.
    """
    stream, place = Stream(), 0
    for _ in range(count):
        place = yield from serialization.read_some_weights(stream, layout, assign, place)
    if place != len(layout.weights):
        raise ConfigError(
            f"{count} states have {place} weights together, the model has {len(layout.weights)}"
        )
    yield from serialization.check_end(stream)
