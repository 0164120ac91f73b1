"""Compile parameters with another learning rate, or with its schedule over other steps."""

from __future__ import annotations

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.keras_names import CYCLES
from cerebro_plpy.configs.search_space.space import compile_text

STEP_FIELDS = ("decay_steps", "first_decay_steps")
"""Fields of a schedule that count optimizer steps."""


def set_learning_rate(text: str, rate: object) -> str:
    """Return compile parameters with another learning rate.

    Args:
        rate: a number, or a schedule as JSON.
    """
    params = parse_compile_params(text, None)
    optimizer = {**params.optimizer.config, "learning_rate": rate}
    fields = {
        "optimizer": params.optimizer.class_name,
        **optimizer,
        "loss": params.loss,
        "metrics": list(params.metrics),
    }
    return compile_text(fields)


def stretch_schedule(text: str, steps: int, new_steps: int) -> str:
    """Return compile parameters whose schedule takes as many epochs of another length.

    Only schedules that templates write are stretched.

    Args:
        steps: per epoch, for which the schedule was written.
        new_steps: per epoch now.
    """
    rate = parse_compile_params(text, None).optimizer.config.get("learning_rate")
    if steps == new_steps or not isinstance(rate, dict) or rate.get("class_name") != CYCLES:
        return text
    config = dict(rate["config"])
    for name in STEP_FIELDS:
        if name in config:
            config[name] = max(1, config[name] * new_steps // steps)
    return set_learning_rate(text, {**rate, "config": config})
