"""The sampling of further configurations from a search space, beside those a search begins with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cerebro_plpy.configs.json_arguments import JsonObject
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.prior_trials import read_runs
from cerebro_plpy.configs.search_space.grid import MAX_ROWS
from cerebro_plpy.configs.search_space.space import Space, make_space
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll, no_poll
from cerebro_plpy.records import dataclass

RANDOM = "random"
TPE = "tpe"
CMAES = "cmaes"
SAMPLERS = (RANDOM, TPE, CMAES)
SPACE = "space"
CONFIGS = "configs"
SAMPLER = "sampler"
START_FROM = "start_from"
PARAMETERS = (SPACE, CONFIGS, SAMPLER, START_FROM)
GRIDS = ("compile_params", "fit_params")
MODELS = "models"
EXAMPLE = """{"compile_params": {"loss": ["mse"], "optimizer_params_list": [{"optimizer": ["Adam"],
 "lr": [0.0001, 0.1, "log"]}]}, "fit_params": {"batch_size": [32, 64]}}"""


@dataclass(frozen=True)
class Sampling:
    """The sampling of a search that begins with fewer configurations than requested."""

    sampler: str
    space: JsonObject
    configs: int  # number of configurations in all
    start_from: tuple[int, ...] = ()  # runs whose best configurations are tried first

    @property
    def learns(self) -> bool:
        """Return True if the samples depend on the results of other configurations."""
        return self.sampler != RANDOM


def read_sampling(module: str, values: JsonObject, sampler: str) -> Sampling:
    """Read `space`, `configs`, `sampler` and `start_from` of search_params.

    Args:
        sampler: the default sampler.

    Raises:
        InvalidParameter: a value is invalid or missing.
    """
    sampler = values.get(SAMPLER, sampler)
    configs = values.get(CONFIGS)
    if START_FROM in values and SPACE not in values:
        raise InvalidParameter(
            f"{module} error: search_params has start_from, but no space: nothing is drawn.",
            hint=f'Add "configs" and "space", for example {EXAMPLE}.',
        )
    if sampler not in SAMPLERS:
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {sampler!r:.80}; expected one of "
            f"{', '.join(SAMPLERS)}.",
            hint=guess_match(str(sampler), SAMPLERS),
        )
    if type(configs) is not int or not 1 <= configs <= MAX_ROWS:
        raise InvalidParameter(
            f"{module} error: configs in search_params is {configs!r:.80}; expected how many "
            f"configurations there are to be in all, at most {MAX_ROWS}."
        )
    runs = read_runs(module, values[START_FROM]) if START_FROM in values else ()
    return Sampling(sampler, check_space(module, values.get(SPACE)), configs, runs)


def check_space(module: str, value: object) -> JsonObject:
    """Return a space in JSON, after a check of its form.

    It has the grids of generate_model_configs(), and models by their ids.

    Raises:
        InvalidParameter: the value is not a space.
    """
    if not isinstance(value, dict) or not value:
        raise InvalidParameter(
            f"{module} error: space is {value!r:.80}; expected a JSON object.",
            hint=f"For example {EXAMPLE}.",
        )
    keys = (*GRIDS, MODELS)
    for key, item in value.items():
        if key not in keys:
            raise InvalidParameter(
                f"{module} error: space has {key!r}; expected {', '.join(keys)}.",
                hint=guess_match(key, keys),
            )
        kind: type = dict
        expected = "object"
        if key == MODELS:
            kind = list
            expected = "array of model ids"
        if not isinstance(item, kind):
            raise InvalidParameter(
                f"{module} error: {key} of the space is {item!r:.80}; expected a JSON {expected}.",
                hint=f"For example {EXAMPLE}.",
            )
    if any(type(model) is not int for model in value.get(MODELS, ())):
        raise InvalidParameter(
            f"{module} error: models of the space are {value[MODELS]!r:.80}; expected their ids."
        )
    return value


def read_space(
    value: JsonObject,
    models: Collection[int],
    functions: Functions | None,
    poll: Poll = no_poll,
) -> Space:
    """Return the space of a JSON object.

    Args:
        models: model ids to use if the object does not contain any.
    """
    model_ids: Sequence[int] = value.get(MODELS) or sorted(models)
    return make_space(value.get(GRIDS[0], {}), value.get(GRIDS[1], {}), model_ids, functions, poll)
