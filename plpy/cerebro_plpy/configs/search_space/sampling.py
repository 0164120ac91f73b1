"""What a search draws configurations of, beside those that it begins with: a space, by a sampler,
so many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.prior_trials import read_runs
from cerebro_plpy.configs.search_space.grid import MAX_ROWS
from cerebro_plpy.configs.search_space.space import Space, space_of
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll, never
from cerebro_plpy.records import dataclass

RANDOM, TPE, CMAES = "random", "tpe", "cmaes"
SAMPLERS = (RANDOM, TPE, CMAES)
SPACE, CONFIGS, SAMPLER, START_FROM = "space", "configs", "sampler", "start_from"
PARAMETERS = (SPACE, CONFIGS, SAMPLER, START_FROM)
GRIDS = ("compile_params", "fit_params")
MODELS = "models"
EXAMPLE = """{"compile_params": {"loss": ["mse"], "optimizer_params_list": [{"optimizer": ["Adam"],
 "lr": [0.0001, 0.1, "log"]}]}, "fit_params": {"batch_size": [32, 64]}, "models": [1, 2]}"""


@dataclass(frozen=True)
class Sampling:
    """A search that has fewer than `configs` configurations draws others of a space, and first of
    all the best of the earlier runs that it is to `start_from`."""

    sampler: str
    space: Mapping[str, Any]
    configs: int
    start_from: tuple[int, ...] = ()

    @property
    def learns(self) -> bool:
        """Whether what it draws depends on what became of the others."""
        return self.sampler != RANDOM


def read_sampling(module: str, values: Mapping[str, Any], sampler: str) -> Sampling:
    """What `space`, `configs`, `sampler` and `start_from` of search_params say; `sampler` is the
    usual one.
    """
    named, configs = values.get(SAMPLER, sampler), values.get(CONFIGS)
    if START_FROM in values and SPACE not in values:
        raise InvalidParameter(
            f"{module} error: search_params has start_from, but no space: nothing is drawn.",
            hint=f'Add "configs" and "space", for example {EXAMPLE}.',
        )
    if named not in SAMPLERS:
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {named!r:.80}; expected one of "
            f"{', '.join(SAMPLERS)}.",
            hint=near_matches(str(named), SAMPLERS),
        )
    if type(configs) is not int or not 1 <= configs <= MAX_ROWS:
        raise InvalidParameter(
            f"{module} error: configs in search_params is {configs!r:.80}; expected how many "
            f"configurations there are to be in all, at most {MAX_ROWS}."
        )
    runs = read_runs(module, values[START_FROM]) if START_FROM in values else ()
    return Sampling(named, check_space(module, values.get(SPACE)), configs, runs)


def check_space(module: str, value: object) -> Mapping[str, Any]:
    """A space as JSON has it: the grids of generate_model_configs(), and models by their ids."""
    if not isinstance(value, dict) or not value:
        raise InvalidParameter(
            f"{module} error: space is {value!r:.80}; expected a JSON object.",
            hint=f"For example {EXAMPLE}.",
        )
    known = (*GRIDS, MODELS)
    for key, held in value.items():
        if key not in known:
            raise InvalidParameter(
                f"{module} error: space has {key!r}; expected {', '.join(known)}.",
                hint=near_matches(key, known),
            )
        kind = list if key == MODELS else dict
        if not isinstance(held, kind):
            raise InvalidParameter(
                f"{module} error: {key} of the space is {held!r:.80}; expected a JSON"
                f" {'array of model ids' if key == MODELS else 'object'}.",
                hint=f"For example {EXAMPLE}.",
            )
    if any(type(model) is not int for model in value.get(MODELS, ())):
        raise InvalidParameter(
            f"{module} error: models of the space are {value[MODELS]!r:.80}; expected their ids."
        )
    return value


def read_space(
    value: Mapping[str, Any],
    models: Collection[int],
    functions: Functions | None,
    poll: Poll = never,
) -> Space:
    """The space that a JSON object stands for, over these models where it names none."""
    chosen: Sequence[int] = value.get(MODELS) or sorted(models)
    return space_of(value.get(GRIDS[0], {}), value.get(GRIDS[1], {}), chosen, functions, poll)
