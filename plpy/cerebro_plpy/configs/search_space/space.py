"""Search spaces: the dict literals of `generate_model_configs` as distributions of parameters.

A compile grid may contain several optimizer families ('optimizer_params_list'), each with
parameters of its own. It is read as one alternative per family: a plain dict of distributions by
parameter.
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
from cerebro_plpy.configs.params.literals import parse_dict
from cerebro_plpy.configs.params.optimizers import ARGUMENTS
from cerebro_plpy.configs.search_space.distributions import (
    Choices,
    Distribution,
    make_choices,
    read_distribution,
)
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.limits import Poll, no_poll
from cerebro_plpy.records import dataclass

Distributions = Mapping[str, Distribution]

_FAMILIES = "optimizer_params_list"
_INTEGERS = WHOLE_ARGUMENTS | {"batch_size", "epochs", "initial_epoch", "steps_per_epoch"}
# Lists of these may mix names with lists of names, so a list that ends with a text is not a range.
_NAMES = frozenset({"optimizer", "loss", "metrics", "weighted_metrics"})


@dataclass(frozen=True)
class Space:
    """The parameters and models that a search may combine."""

    alternatives: tuple[Distributions, ...]  # of compile parameters
    fit: Distributions
    models: Choices
    functions: Functions | None = None  # custom losses and metrics
    poll: Poll = no_poll  # to call between combinations


def read_space(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Iterable[int],
    functions: Functions | None = None,
    poll: Poll = no_poll,
) -> Space:
    """Return the space of two dict literals, whose values are lists, and a list of models.

    Raises:
        InvalidText, InvalidParameter: a literal is invalid; the texts are MADlib's.
    """
    compile_lists = read_lists(compile_grid, "compile_params_dict")
    fit_lists = read_lists(fit_grid, "fit_params_dict")
    return make_space(compile_lists, fit_lists, model_ids, functions, poll)


def make_space(
    compile_lists: Mapping[str, object],
    fit_lists: Mapping[str, object],
    model_ids: Iterable[int],
    functions: Functions | None,
    poll: Poll = no_poll,
) -> Space:
    """Return the space of lists of values; see `read_space`."""
    models = Choices(read_models(model_ids))
    return Space(
        _alternatives(compile_lists), _distributions(fit_lists, "fit"), models, functions, poll
    )


def read_models(model_ids: Iterable[int]) -> tuple[int, ...]:
    """Return the distinct models in order.

    Raises:
        InvalidParameter: the list is empty.
    """
    models = tuple(dict.fromkeys(model_ids))
    if not models:
        raise InvalidParameter("model_id_list is empty", hint="Name at least one model_id.")
    return models


def compile_text(values: Mapping[str, object]) -> str:
    """Return compile parameters as MADlib writes them: the optimizer first.

    >>> compile_text({"loss": "mse", "lr": 0.1, "metrics": "mae"})
    "optimizer='RMSprop(lr=0.1)',loss='mse',metrics=['mae']"
    """
    name = values.get("optimizer", "RMSprop")
    class_name = find_optimizer(str(name))
    if class_name is None:
        raise InvalidParameter(
            f"model_keras error: invalid optimizer name: {name}",
            hint=near_matches(str(name), OPTIMIZERS),
        )
    arguments = {key: value for key, value in values.items() if key not in COMPILE_KEYS}
    settings: dict[str, object] = {"optimizer": f"{class_name}({fit_text(arguments)})"}
    for key, value in values.items():
        if _is_outer(key):
            settings[key] = wrap_metric(key, value)
    return fit_text(settings)


def fit_text(values: Mapping[str, object]) -> str:
    """Return fit parameters as text.

    >>> fit_text({"batch_size": 8, "epochs": 1})
    'batch_size=8,epochs=1'
    """
    return ",".join(f"{key}={value!r}" for key, value in values.items())


def _is_outer(key: str) -> bool:
    """Return True for a compile parameter other than the optimizer and its arguments."""
    return key in COMPILE_KEYS and key != "optimizer"


def wrap_metric(key: str, value: object) -> object:
    """Return the value of a parameter; the name of a single metric stands for a list of it."""
    if key in ("metrics", "weighted_metrics") and isinstance(value, str):
        return [value]
    return value


def read_lists(text: str | None, name: str) -> dict[str, object]:
    """Return the dict of a dict literal; an empty one without a literal."""
    try:
        return parse_dict(text or "{}")
    except InvalidText as error:
        raise InvalidText(
            f"Invalid syntax in '{name}': {error.message}", hint=error.hint, detail=error.detail
        ) from error


def _alternatives(lists: Mapping[str, object]) -> tuple[Distributions, ...]:
    for key in lists:
        if key != _FAMILIES and key not in COMPILE_KEYS and key not in ARGUMENTS:
            raise InvalidParameter(
                f"{key} is not currently accepted as a parameter.",
                hint=near_matches(key, ARGUMENTS.union(COMPILE_KEYS)),
            )
    if _FAMILIES not in lists:
        return (_distributions(lists, "compile"),)
    misplaced = [key for key in lists if key != _FAMILIES and not _is_outer(key)]
    if misplaced:
        raise _misplaced(f"Outside of it there is {misplaced}.")
    keys = list(lists)
    split = keys.index(_FAMILIES)
    first = _distributions({key: lists[key] for key in keys[:split]}, "compile")
    last = _distributions({key: lists[key] for key in keys[split + 1 :]}, "compile")
    return tuple({**first, **family, **last} for family in _families(lists[_FAMILIES]))


def _families(families: object) -> list[Distributions]:
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
    return [_distributions(family, "compile") for family in families]


def _misplaced(hint: str) -> InvalidParameter:
    return InvalidParameter(
        f"DL: '{_FAMILIES}' key should only contain 'optimizer' and/or optimizer related params "
        "and no such params should reside out of the key",
        hint=hint,
    )


def _distributions(lists: Mapping[str, object], kind: str) -> Distributions:
    return {key: _distribution(key, values, kind) for key, values in lists.items()}


def _distribution(key: str, values: object, kind: str) -> Distribution:
    if not isinstance(values, list):
        raise InvalidParameter(
            f"DL: {kind} param values must be specified in a list",
            hint=f"Received {key!r}: {values!r}.",
        )
    if key in _NAMES:
        return make_choices(key, values)
    return read_distribution(key, values, is_integer=key in _INTEGERS)
