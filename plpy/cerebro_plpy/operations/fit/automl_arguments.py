"""The arguments of an AutoML call, and what can be said of them without a look at the database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Union

from cerebro_plpy import limits
from cerebro_plpy.configs.search_space.sampling import RANDOM, TPE
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.hyperband import Hyperband

MODULE = "madlib_keras_automl"
METHODS = {
    "hyperband": {"R": "6", "eta": "3", "skip_last": "0"},
    "hyperopt": {"num_configs": "20", "num_iterations": "5", "algorithm": "tpe"},
}
LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class AutomlArguments:
    """The arguments of an AutoML call as they came, None for NULL."""

    source_table: str | None
    model_output_table: str | None
    model_arch_table: str | None
    model_selection_table: str | None
    model_id_list: Sequence[int | None] | None
    compile_params_grid: str | None
    fit_params_grid: str | None
    automl_method: str | None
    automl_params: str | None
    random_state: int | None
    object_table: str | None
    use_gpus: bool | None
    validation_table: str | None
    metrics_compute_frequency: int | None
    name: str | None
    description: str | None
    use_caching: bool | None


SAMPLERS = {"rand": RANDOM, "tpe": TPE}


@dataclass(frozen=True)
class Hyperopt:
    """So many configurations, each trained for so many iterations, suggested by random search or by
    TPE.
    """

    num_configs: int
    num_iterations: int
    algorithm: str

    @property
    def configs(self) -> int:
        """How many configurations are tried."""
        return self.num_configs

    @property
    def epochs(self) -> int:
        """How long each is trained."""
        return self.num_iterations

    @property
    def sampler(self) -> str:
        """What suggests them."""
        return SAMPLERS[self.algorithm]

    def check(self, module: str) -> None:
        """Raises InvalidParameter, with MADlib's texts, for what cannot be searched by."""
        if self.algorithm not in SAMPLERS:
            raise InvalidParameter(
                f"{module}: valid algorithm 'automl_params' for hyperopt: 'rand', 'tpe'",
                detail=f"Received {self.algorithm!r}.",
            )
        if min(self.num_configs, self.num_iterations) < 1:
            raise InvalidParameter(
                f"{module}: num_configs and num_iterations in 'automl_params' must be > 0",
                detail=f"Received {self.num_configs} and {self.num_iterations}.",
            )


Method = Union[Hyperband, Hyperopt]


def read_method(arguments: AutomlArguments) -> tuple[str, str, Method]:
    """The name of the method, its parameters as they stand in the log, and the method itself,
    checked.
    """
    limits.check_record("automl", arguments)
    name = _name(arguments.automl_method)
    defaults = METHODS[name]
    method = _method({**defaults, **_parameters(name, arguments.automl_params)})
    method.check(MODULE)
    return (
        name,
        arguments.automl_params or ", ".join(f"{key}={value}" for key, value in defaults.items()),
        method,
    )


def check_frequency(method: Hyperopt, frequency: int | None) -> None:
    """Refuse a metrics frequency that no batch can have: they are all of one length."""
    most = method.num_iterations
    if frequency is not None and not 1 <= frequency <= most:
        raise InvalidParameter(
            f"{MODULE}: 'metrics_compute_frequency' out of iteration range",
            detail=f"Received {frequency}; expected a number from 1 to {most}.",
            hint="Leave it out to compute metrics after the last iteration only.",
        )


def _name(given: str | None) -> str:
    """The method of that name, or whose name begins so.

    >>> _name("hyper"), _name("HyperO"), _name(None)
    ('hyperband', 'hyperopt', 'hyperband')
    """
    wanted = "hyperband" if given is None else given.strip().lower()
    for name in METHODS:
        if wanted and name.startswith(wanted):
            return name
    raise InvalidParameter(
        f"{MODULE}: the chosen automl method must be 'hyperband' or 'hyperopt'",
        detail=f"Received {given!r}.",
    )


def _method(values: Mapping[str, str]) -> Method:
    numbers = {key: _number(key, text) for key, text in values.items() if key != "algorithm"}
    if "algorithm" in values:
        return Hyperopt(**numbers, algorithm=values["algorithm"].lower())
    return Hyperband(**numbers)


def _parameters(name: str, text: str | None) -> Mapping[str, str]:
    """What `R=6, eta=3` says, by the names of the method's parameters."""
    found: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        match = re.fullmatch(r"\s*(\w+)\s*=\s*'?([\w+-]+)'?\s*", part)
        if match is None:
            raise InvalidText(
                f"{MODULE}: automl_params has {part.strip()!r}; expected name=value, between "
                "commas",
                hint="For example "
                + repr(", ".join(f"{key}={value}" for key, value in METHODS[name].items()))
                + ".",
            )
        key = match[1] if name == "hyperband" else match[1].lower()
        if key not in METHODS[name]:
            *others, last = METHODS[name]
            known = f"{', '.join(others)}, and {last}"
            raise InvalidParameter(
                f"{MODULE}: Invalid param(s) passed in for {name}. Only {known} may be specified",
                detail=f"Received {match[1]!r}.",
            )
        if key in found:
            raise InvalidText(f"{MODULE}: automl_params has {key} twice")
        found[key] = match[2]
    return found


def _number(key: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or abs(int(text)) > LARGEST:
        raise InvalidText(
            f"{MODULE}: {key} in automl_params is {text!r}; expected a whole number of at most "
            f"{LARGEST}"
        )
    limits.check(f"{key} in automl_params", int(text), limits.PARAMETERS[key])
    return int(text)
