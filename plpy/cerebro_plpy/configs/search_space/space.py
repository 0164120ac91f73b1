"""Search spaces: the dict literals of `generate_model_configs` as what can be drawn, and as
parameter texts.

A compile grid may hold several optimizer families ('optimizer_params_list'), each with parameters
of its own. It is read as one alternative per family: a plain dict from parameter to what it stands
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cerebro_plpy.configs.params.compile_params import COMPILE_KEYS
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.keras_names import (
    OPTIMIZERS,
    WHOLE_ARGUMENTS,
    find_optimizer,
    near_matches,
)
from cerebro_plpy.configs.params.literals import dictionary
from cerebro_plpy.configs.params.optimizers import ARGUMENTS
from cerebro_plpy.configs.search_space.distributions import Choices, Draw, choices, read_draw
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.limits import Poll, never
from cerebro_plpy.records import dataclass

Draws = Mapping[str, Draw]

_FAMILIES = "optimizer_params_list"
_WHOLE = WHOLE_ARGUMENTS | {"batch_size", "epochs", "initial_epoch", "steps_per_epoch"}
# Their lists may mix names with lists of names, so a list that ends with a text is no range.
_NAMES = frozenset({"optimizer", "loss", "metrics", "weighted_metrics"})


@dataclass(frozen=True)
class Space:
    """All that a search may combine: alternatives of compile parameters, fit parameters, models.

    `functions` are those that a loss or a metric may be beside Keras' own. Who goes through many
    combinations calls `poll` between them.
    """

    alternatives: tuple[Draws, ...]
    fit: Draws
    models: Choices
    functions: Functions | None = None
    poll: Poll = never


def read_space(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Iterable[int],
    functions: Functions | None = None,
    poll: Poll = never,
) -> Space:
    """The space that two dict literals and a list of models stand for.

    Values are lists. Raises InvalidText and InvalidParameter with MADlib's texts.
    """
    compile_lists = read_lists(compile_grid, "compile_params_dict")
    return space_of(
        compile_lists, read_lists(fit_grid, "fit_params_dict"), model_ids, functions, poll
    )


def space_of(
    compile_lists: Mapping[str, object],
    fit_lists: Mapping[str, object],
    model_ids: Iterable[int],
    functions: Functions | None,
    poll: Poll = never,
) -> Space:
    """The space that lists of values stand for; see `read_space`."""
    models = Choices(read_models(model_ids))
    return Space(_alternatives(compile_lists), _draws(fit_lists, "fit"), models, functions, poll)


def read_models(model_ids: Iterable[int]) -> tuple[int, ...]:
    """The distinct models in order; raises InvalidParameter if there are none."""
    models = tuple(dict.fromkeys(model_ids))
    if not models:
        raise InvalidParameter("model_id_list is empty", hint="Name at least one model_id.")
    return models


def compile_text(drawn: Mapping[str, object]) -> str:
    """The compile parameters of one drawn combination, as MADlib writes them: the optimizer first.

    >>> compile_text({"loss": "mse", "lr": 0.1, "metrics": "mae"})
    "optimizer='RMSprop(lr=0.1)',loss='mse',metrics=['mae']"
    """
    name = drawn.get("optimizer", "RMSprop")
    class_name = find_optimizer(str(name))
    if class_name is None:
        raise InvalidParameter(
            f"model_keras error: invalid optimizer name: {name}",
            hint=near_matches(str(name), OPTIMIZERS),
        )
    own = ",".join(f"{key}={value!r}" for key, value in drawn.items() if key not in COMPILE_KEYS)
    settings = {"optimizer": f"{class_name}({own})"}
    return fit_text(
        {**settings, **{key: _written(key, value) for key, value in drawn.items() if _outer(key)}}
    )


def fit_text(drawn: Mapping[str, object]) -> str:
    """The fit parameters of one drawn combination.

    >>> fit_text({"batch_size": 8, "epochs": 1})
    'batch_size=8,epochs=1'
    """
    return ",".join(f"{key}={value!r}" for key, value in drawn.items())


def _outer(key: str) -> bool:
    return key in COMPILE_KEYS and key != "optimizer"


def _written(key: str, value: object) -> object:
    return [value] if key in ("metrics", "weighted_metrics") and isinstance(value, str) else value


def read_lists(text: str | None, name: str) -> dict[str, object]:
    """What a dict literal holds; an empty one where there is none."""
    try:
        return dictionary(text or "{}")
    except InvalidText as error:
        raise InvalidText(
            f"Invalid syntax in '{name}': {error.message}", hint=error.hint, detail=error.detail
        ) from error


def _alternatives(lists: Mapping[str, object]) -> tuple[Draws, ...]:
    for key in lists:
        if key != _FAMILIES and key not in COMPILE_KEYS and key not in ARGUMENTS:
            raise InvalidParameter(
                f"{key} is not currently accepted as a parameter.",
                hint=near_matches(key, ARGUMENTS.union(COMPILE_KEYS)),
            )
    if _FAMILIES not in lists:
        return (_draws(lists, "compile"),)
    before, after = _around(lists)
    return tuple({**before, **family, **after} for family in _families(lists[_FAMILIES]))


def _around(lists: Mapping[str, object]) -> tuple[Draws, Draws]:
    """What stands before and after the list of optimizer families."""
    if not all(key == _FAMILIES or _outer(key) for key in lists):
        raise _misplaced(
            f"Outside of it there is {[k for k in lists if k != _FAMILIES and not _outer(k)]}."
        )
    keys = list(lists)
    split = keys.index(_FAMILIES)
    return (
        _draws({key: lists[key] for key in keys[:split]}, "compile"),
        _draws({key: lists[key] for key in keys[split + 1 :]}, "compile"),
    )


def _families(families: object) -> list[Draws]:
    if (
        not isinstance(families, list)
        or not families
        or not all(isinstance(item, dict) for item in families)
    ):
        raise InvalidParameter(
            f"'{_FAMILIES}' must be a list of dicts",
            hint="For example [{'optimizer': ['SGD'], 'lr': [0.1]}, {'optimizer': ['Adam']}].",
        )
    foreign = [
        key for family in families for key in family if key != "optimizer" and key not in ARGUMENTS
    ]
    if foreign:
        raise _misplaced(f"Inside of it there is {foreign}.")
    return [_draws(family, "compile") for family in families]


def _misplaced(found: str) -> InvalidParameter:
    return InvalidParameter(
        f"DL: '{_FAMILIES}' key should only contain 'optimizer' and/or optimizer related params "
        "and no such params should reside out of the key",
        hint=found,
    )


def _draws(lists: Mapping[str, object], kind: str) -> Draws:
    return {key: _draw(key, values, kind) for key, values in lists.items()}


def _draw(key: str, values: object, kind: str) -> Draw:
    if not isinstance(values, list):
        raise InvalidParameter(
            f"DL: {kind} param values must be specified in a list",
            hint=f"Received {key!r}: {values!r}.",
        )
    if key in _NAMES:
        return choices(key, values)
    return read_draw(key, values, whole=key in _WHOLE)
