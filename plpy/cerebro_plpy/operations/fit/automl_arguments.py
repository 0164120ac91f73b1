"""The arguments of an AutoML call, and the checks that do not need the database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Union

from cerebro_plpy import limits
from cerebro_plpy.configs.run_spec import SearchSpec
from cerebro_plpy.configs.search_space.sampling import RANDOM, TPE
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.hyperband import Hyperband

MODULE = "madlib_keras_automl"
DEFAULT_METHOD = "hyperband"
METHODS = {
    "hyperband": {"R": "6", "eta": "3", "skip_last": "0"},
    "hyperopt": {"num_configs": "20", "num_iterations": "5", "algorithm": "tpe"},
}
"""The parameters of each method with their default values."""
SAMPLERS = {"rand": RANDOM, "tpe": TPE}
LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class AutomlArguments:
    """The unchecked arguments of an AutoML call; None for NULL."""

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


@dataclass(frozen=True)
class Hyperopt:
    """The parameters of MADlib's search with Hyperopt, by random search or TPE."""

    num_configs: int
    num_iterations: int  # of each configuration
    algorithm: str  # a key of SAMPLERS

    @property
    def configs(self) -> int:
        """Return the number of configurations to try."""
        return self.num_configs

    @property
    def epochs(self) -> int:
        """Return the number of epochs of each configuration."""
        return self.num_iterations

    @property
    def sampler(self) -> str:
        """Return the search of a fit call that samples configurations in the same way."""
        return SAMPLERS[self.algorithm]

    def check(self, module: str) -> None:
        """Check the parameters; the error texts are MADlib's.

        Raises:
            InvalidParameter: a parameter is invalid.
        """
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


def read_method(arguments: AutomlArguments) -> tuple[SearchSpec, Method]:
    """Check the arguments that choose the search method.

    Returns:
        The method as the log records it, and the method itself.
    """
    limits.check_record("automl", arguments)
    name = _find_method(arguments.automl_method)
    method = _make_method({**METHODS[name], **_parse_parameters(name, arguments.automl_params)})
    method.check(MODULE)
    params = arguments.automl_params or _format_parameters(METHODS[name])
    return SearchSpec(name, params, arguments.random_state), method


def check_frequency(method: Hyperopt, frequency: int | None) -> None:
    """Check that all configurations, which have the same length, compute metrics at least once."""
    iterations = method.num_iterations
    if frequency is not None and not 1 <= frequency <= iterations:
        raise InvalidParameter(
            f"{MODULE}: 'metrics_compute_frequency' out of iteration range",
            detail=f"Received {frequency}; expected a number from 1 to {iterations}.",
            hint="Leave it out to compute metrics after the last iteration only.",
        )


def _find_method(text: str | None) -> str:
    """Return the first method whose name begins with a text; NULL means the default one.

    >>> _find_method("hyper"), _find_method("HyperO"), _find_method(None)
    ('hyperband', 'hyperopt', 'hyperband')
    """
    if text is None:
        return DEFAULT_METHOD
    prefix = text.strip().lower()
    for name in METHODS:
        if prefix and name.startswith(prefix):
            return name
    raise InvalidParameter(
        f"{MODULE}: the chosen automl method must be 'hyperband' or 'hyperopt'",
        detail=f"Received {text!r}.",
    )


def _make_method(values: Mapping[str, str]) -> Method:
    numbers = {key: _parse_number(key, text) for key, text in values.items() if key != "algorithm"}
    if "algorithm" in values:
        return Hyperopt(**numbers, algorithm=values["algorithm"].lower())
    return Hyperband(**numbers)


def _format_parameters(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _parse_parameters(name: str, text: str | None) -> Mapping[str, str]:
    """Parse the parameters of a method, such as `R=6, eta=3`."""
    values: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        match = re.fullmatch(r"\s*(\w+)\s*=\s*'?([\w+-]+)'?\s*", part)
        if match is None:
            raise InvalidText(
                f"{MODULE}: automl_params has {part.strip()!r}; expected name=value, between "
                "commas",
                hint=f"For example {_format_parameters(METHODS[name])!r}.",
            )
        key = match[1] if name == "hyperband" else match[1].lower()
        if key not in METHODS[name]:
            *first_keys, last_key = METHODS[name]
            keys = f"{', '.join(first_keys)}, and {last_key}"
            raise InvalidParameter(
                f"{MODULE}: Invalid param(s) passed in for {name}. Only {keys} may be specified",
                detail=f"Received {match[1]!r}.",
            )
        if key in values:
            raise InvalidText(f"{MODULE}: automl_params has {key} twice")
        values[key] = match[2]
    return values


def _parse_number(key: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or abs(int(text)) > LARGEST:
        raise InvalidText(
            f"{MODULE}: {key} in automl_params is {text!r}; expected a whole number of at most "
            f"{LARGEST}"
        )
    limits.check(f"{key} in automl_params", int(text), limits.PARAMETERS[key])
    return int(text)
