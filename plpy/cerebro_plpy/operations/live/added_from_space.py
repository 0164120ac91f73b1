"""Configurations of a space that an act lets join a run.

They are drawn in the session of whoever asks, so that the run gets them as they are, and whoever
repeats it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.json_arguments import read_lists
from cerebro_plpy.configs.params.compile_params import COMPILE_KEYS, UNQUOTED
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.configs.params.literals import parse_call, parse_keywords
from cerebro_plpy.configs.search_space.grid import MAX_ROWS, ConfigRow, count_configs, draw_rows
from cerebro_plpy.configs.search_space.sampling import GRIDS, MODELS, check_space, read_space
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll

OPTIMIZER, FAMILIES = "optimizer", "optimizer_params_list"
RATE = frozenset({"lr", "learning_rate"})
"""Two names of one argument."""


def read(module: str, text: str) -> Mapping[str, Any]:
    """The space of a call."""
    return check_space(module, read_lists("space", text))


def drawn(
    module: str,
    space: Mapping[str, Any],
    n: int | None,
    models: Collection[int],
    existing: Sequence[ConfigRow],
    poll: Poll,
) -> list[dict[str, object]]:
    """So many configurations of a space, or all that it holds, none of which the run has."""
    found = read_space(space, models, ANY_FUNCTIONS, poll)
    if n is not None and not 1 <= n <= MAX_ROWS:
        raise InvalidParameter(
            f"{module} error: n is {n}; expected a number of configurations, from 1 to {MAX_ROWS}."
        )
    most = MAX_ROWS + 1
    if n is None and count_configs(found, most) == most:
        raise InvalidParameter(
            f"{module} error: the space has ranges, or more than {MAX_ROWS} configurations; "
            "expected n, how many of them are to be drawn."
        )
    rows = draw_rows(found, MAX_ROWS if n is None else n, None, existing)
    if not rows:
        raise InvalidParameter(f"{module} error: the run has all configurations of the space.")
    return [row._asdict() for row in rows]


def around(module: str, config: Row, space: Mapping[str, Any]) -> dict[str, Any]:
    """The space of configurations that are like one, but for what a space says.

    >>> row = {"model_id": 1, "compile_params": "optimizer='SGD(lr=0.1)',loss='mse'",
    ...     "fit_params": "batch_size=8"}
    >>> found = around("m", row, {"compile_params": {"lr": [0.1, 0.2]}})
    >>> found["compile_params"], found["fit_params"], found["models"]
    ({'optimizer': ['SGD'], 'loss': ['mse'], 'lr': [0.1, 0.2]}, {'batch_size': [8]}, [1])
    """
    compiled, fitted = (dict(space.get(name, {})) for name in GRIDS)
    own = parse_keywords(config["compile_params"], UNQUOTED)
    written = str(own.pop(OPTIMIZER, "RMSprop"))
    base: dict[str, object] = {}
    if FAMILIES not in compiled:
        name, arguments = (written, {}) if OPTIMIZER in compiled else _optimizer(module, written)
        kept = {
            key: [value]
            for key, value in arguments.items()
            if not (key in RATE and RATE & compiled.keys())
        }
        base = {OPTIMIZER: [name], **kept}
    others = {key: [value] for key, value in own.items() if key in COMPILE_KEYS}
    given = parse_keywords(config["fit_params"])
    return {
        GRIDS[0]: {**base, **others, **compiled},
        GRIDS[1]: {**{key: [value] for key, value in given.items()}, **fitted},
        MODELS: space.get(MODELS, [config["model_id"]]),
    }


def _optimizer(module: str, written: str) -> tuple[str, dict[str, object]]:
    try:
        return parse_call(written)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"{module} error: the optimizer of the configuration is {written}; expected plain "
            "values in it.",
            hint='Name optimizers in the space: {"compile_params": {"optimizer": ["Adam"], "lr": '
            "[0.001, 0.01]}}.",
        ) from error
