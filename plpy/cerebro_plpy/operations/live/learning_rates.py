"""The learning rate in the change of a clone, under either of its names."""

from __future__ import annotations

from collections.abc import Mapping

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.operations.live.added_from_space import LEARNING_RATES, parse_optimizer


def rename_rate(module: str, fields: Mapping[str, object], name: str) -> dict[str, object]:
    """Return fields in which the learning rate has this name.

    >>> rename_rate("m", {"learning_rate": 0.1, "depth": 2}, "lr")
    {'depth': 2, 'lr': 0.1}
    """
    rates = [field for field in fields if field in LEARNING_RATES]
    if len(rates) > 1:
        raise InvalidParameter(
            f"{module} error: change has {' and '.join(map(repr, rates))}, which are the same; "
            "expected one of them."
        )
    renamed = {field: value for field, value in fields.items() if field not in LEARNING_RATES}
    for field in rates:
        renamed[name] = fields[field]
    return renamed


def set_optimizer_rate(module: str, optimizer: str, rate: object) -> str:
    """Return an optimizer with another learning rate; None stands for its default.

    >>> set_optimizer_rate("m", "SGD(lr=0.1, momentum=0.9)", 0.2)
    'SGD(momentum=0.9, learning_rate=0.2)'
    >>> set_optimizer_rate("m", "Adam", 0.01), set_optimizer_rate("m", "Adam(lr=0.1)", None)
    ('Adam(learning_rate=0.01)', 'Adam()')
    """
    hint = 'Replace it: {"optimizer": "Adam(learning_rate=0.01)"}.'
    name, arguments = parse_optimizer(module, optimizer, hint)
    values = rename_rate(module, arguments, "learning_rate")
    values["learning_rate"] = rate
    texts = [f"{key}={value!r}" for key, value in values.items() if value is not None]
    return f"{name}({', '.join(texts)})"
