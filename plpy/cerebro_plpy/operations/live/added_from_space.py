"""Configurations from a search space that a command adds to a live run.

They are drawn in the session that issues the command, so that the run and its replays have exactly
these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.json_arguments import read_lists
from cerebro_plpy.configs.params.compile_params import COMPILE_KEYS, UNQUOTED
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.configs.params.literals import Arguments, parse_call, parse_keywords
from cerebro_plpy.configs.search_space.grid import MAX_ROWS, ConfigRow, count_configs, draw_rows
from cerebro_plpy.configs.search_space.sampling import GRIDS, MODELS, check_space, read_space
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll

OPTIMIZER = "optimizer"
OPTIMIZERS = "optimizer_params_list"
LEARNING_RATES = frozenset({"lr", "learning_rate"})
"""Two names of the same argument."""


def parse_space(module: str, text: str) -> Mapping[str, Any]:
    """Parse and check the space of a command."""
    return check_space(module, read_lists("space", text))


def draw_configs(
    module: str,
    space: Mapping[str, Any],
    n: int | None,
    models: Collection[int],
    existing: Sequence[ConfigRow],
    poll: Poll,
) -> list[JsonObject]:
    """Draw configurations that a run does not have, as rows of JSON.

    Args:
        n: number of configurations; None for all of the space.
        models: ids of the models, unless the space names some.
        existing: configurations of the run.
    """
    parsed_space = read_space(space, models, ANY_FUNCTIONS, poll)
    if n is not None and not 1 <= n <= MAX_ROWS:
        raise InvalidParameter(
            f"{module} error: configs is {n}; expected a number of configurations, from 1 to "
            f"{MAX_ROWS}."
        )
    too_many = MAX_ROWS + 1
    if n is None and count_configs(parsed_space, too_many) == too_many:
        raise InvalidParameter(
            f"{module} error: the space has ranges, or more than {MAX_ROWS} configurations; "
            "expected configs, the number of them to draw."
        )
    rows = draw_rows(parsed_space, MAX_ROWS if n is None else n, None, existing)
    if not rows:
        raise InvalidParameter(f"{module} error: the run has all configurations of the space.")
    return [row._asdict() for row in rows]


def make_space_around(module: str, config: Row, space: Mapping[str, Any]) -> JsonObject:
    """Return the space of configurations like `config`, in which only `space` varies.

    >>> row = {"model_id": 1, "compile_params": "optimizer='SGD(lr=0.1)',loss='mse'",
    ...     "fit_params": "batch_size=8"}
    >>> result = make_space_around("m", row, {"compile_params": {"lr": [0.1, 0.2]}})
    >>> result["compile_params"], result["fit_params"], result["models"]
    ({'optimizer': ['SGD'], 'loss': ['mse'], 'lr': [0.1, 0.2]}, {'batch_size': [8]}, [1])
    """
    compile_lists = space.get(GRIDS[0], {})
    fit_lists = space.get(GRIDS[1], {})
    values = parse_keywords(config["compile_params"], UNQUOTED)
    optimizer = str(values.pop(OPTIMIZER, "RMSprop"))
    optimizer_lists: dict[str, object] = {}
    if OPTIMIZERS not in compile_lists:
        optimizer_lists = _list_optimizer(module, optimizer, compile_lists)
    compile_values = {key: value for key, value in values.items() if key in COMPILE_KEYS}
    return {
        GRIDS[0]: {**optimizer_lists, **_make_lists(compile_values), **compile_lists},
        GRIDS[1]: {**_make_lists(parse_keywords(config["fit_params"])), **fit_lists},
        MODELS: space.get(MODELS, [config["model_id"]]),
    }


def parse_optimizer(module: str, optimizer: str, hint: str) -> tuple[str, Arguments]:
    """Return the name and the arguments of the optimizer of a configuration.

    Args:
        hint: the text to type in place of an optimizer that has other than plain values.

    Raises:
        InvalidParameter: the optimizer has other than plain values.
    """
    try:
        return parse_call(optimizer)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"{module} error: the optimizer of the configuration is {optimizer}; expected plain "
            "values in it.",
            hint=hint,
        ) from error


def _list_optimizer(
    module: str, optimizer: str, compile_lists: Mapping[str, object]
) -> dict[str, object]:
    """Return an optimizer and its arguments, except those that the space varies."""
    if OPTIMIZER in compile_lists:
        return {OPTIMIZER: [optimizer]}  # replaced; its place decides the order of the draws
    hint = (
        'Name optimizers in the space: {"compile_params": {"optimizer": ["Adam"], "lr": '
        "[0.001, 0.01]}}."
    )
    name, arguments = parse_optimizer(module, optimizer, hint)
    if LEARNING_RATES & compile_lists.keys():
        arguments = {key: value for key, value in arguments.items() if key not in LEARNING_RATES}
    return {OPTIMIZER: [name], **_make_lists(arguments)}


def _make_lists(values: Mapping[str, object]) -> dict[str, list[object]]:
    """Return lists with a single choice."""
    return {key: [value] for key, value in values.items()}
