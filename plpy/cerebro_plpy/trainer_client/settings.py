"""The administrator's settings in `cerebro.setting`, which, unlike a GUC, no user can change."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from cerebro_plpy.database.platform_protocol import Caller
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady, quote_text
from cerebro_plpy.limits import SETTINGS
from cerebro_plpy.records import dataclass, fields
from cerebro_plpy.trainer_client.process import compilation_cache, host_resources
from cerebro_plpy.trainer_client.process.launch import TrainerSpec, describe_environment

Gpus = tuple[int, ...]  # device numbers
FRAMEWORKS = ("tensorflow", "jax", "torch", "none")
MAX_NUMBER = 1024  # limit of trainers, threads and device numbers in any request


MINIMA = {"max_workers_total": 2, "trainer_memory_mb": 64}
"""Smallest values of whole numbers in settings, if they are not 0."""


@dataclass(frozen=True)
class Settings:
    """The rows that `cerebro.setting` may have; None means the default."""

    trainer_python: str | None = None
    worker_conninfo: str | None = None
    trainer_idle_seconds: int = 60
    trainer_nursery_seconds: int = 300
    commit_seconds: int = 0
    max_workers_total: int | None = None
    trainer_memory_mb: int | None = None
    cache_mb: int | None = None
    compilation_cache: str | None = None
    kept_features_mb: int = 1000
    gpus: Gpus | None = None
    spare_cores: int = 0  # cores that trainers do not use
    # The caller's role is shared by tenants, so that trainers are not reused across sessions.
    tenant_roles: bool = False
    # For the view `cerebro.cost`, and for runs with `max_cost`.
    price_per_core_hour: float | None = None
    price_per_gpu_hour: float | None = None
    price_per_gb_month: float | None = None
    watts_per_core: float | None = None
    watts_per_gpu: float | None = None


def read(db: Caller) -> Settings:
    """Return the current settings; refuse unknown names and invalid numbers."""
    known_names = sorted(f.name for f in fields(Settings))
    values: dict[str, object] = {}
    for row in db.peek(sql("read.settings")):
        name = row["name"]
        if name not in known_names:
            raise InvalidParameter(
                f"cerebro.setting has a row named {name!r}; expected one of "
                f"{', '.join(known_names)}",
                hint=f"As an administrator: SELECT cerebro.set({quote_text(name)}, NULL);",
            )
        values[name] = _parse(name, row["value"])
    return Settings(**values)  # type: ignore[arg-type]


def _parse(name: str, text: str) -> object:
    """Return the value of a setting."""
    if name.startswith(("price_", "watts_")):
        return _parse_decimal(name, text)
    if name in PARSERS:
        return PARSERS[name](text)
    if name in SETTINGS:
        return _parse_integer(name, text, MINIMA.get(name, 0))
    return text


def _parse_integer(name: str, text: str, minimum: int) -> int:
    maximum = SETTINGS[name].maximum
    is_number = re.fullmatch(" *[0-9]{1,10} *", text) is not None
    if not is_number or not minimum <= int(text) <= maximum:
        raise InvalidParameter(
            f"setting {name} is {text!r:.80}; expected a whole number from {minimum} to {maximum}"
        )
    return int(text)


def _parse_decimal(name: str, text: str) -> float:
    # The view cerebro.cost accepts the same texts.
    if not re.fullmatch(r"[0-9]{1,15}([.][0-9]{1,15})?", text):
        raise InvalidParameter(f"setting {name} is {text!r}; expected a number such as 0.05")
    return float(text)


def _parse_gpus(text: str) -> Gpus:
    """Return device numbers, which are separated by commas.

    >>> _parse_gpus("0, 2"), _parse_gpus("")
    ((0, 2), ())
    """
    if not text.strip(" "):
        return ()
    parts = text.split(",")
    numbers: list[int] = []
    if all(re.fullmatch(" *[0-9]{1,4} *", part) for part in parts):
        numbers = [int(part) for part in parts]
    if not numbers or max(numbers) > MAX_NUMBER or len(set(numbers)) != len(numbers):
        raise InvalidParameter(
            f"setting gpus is {text!r}; expected different numbers of devices, such as '0,1', or "
            "an empty text for none"
        )
    return tuple(numbers)


PARSERS: Mapping[str, Callable[[str], object]] = {
    "gpus": _parse_gpus,
    "tenant_roles": lambda text: text == "true",
}


def usable_gpus(settings: Settings) -> Gpus:
    """Return the numbers of the GPUs of this machine that trainers may use."""
    if settings.gpus is not None:
        return settings.gpus
    return tuple(range(host_resources.count_gpus()))


def choose_gpus(settings: Settings, use_gpus: bool | None, *, is_recorded: bool = False) -> Gpus:
    """Return the numbers of the GPUs for the trainers of a call, empty without `use_gpus`.

    Args:
        is_recorded: `use_gpus` is an argument of an earlier call, which this one continues.

    Raises:
        ObjectNotReady: there are no GPUs.
    """
    if not use_gpus:
        return ()
    gpus = usable_gpus(settings)
    if not gpus:
        hint = "An administrator can name devices: SELECT cerebro.set('gpus', '0,1');"
        if not is_recorded:
            hint = f"Leave use_gpus out to work on the processor. {hint}"
        raise ObjectNotReady("No GPUs configured on hosts.", hint=hint)
    return gpus


def assign_gpu(gpus: Gpus, number: int) -> int | None:
    """Return the GPU of the trainer with a number; trainers are assigned round robin.

    >>> [assign_gpu((4, 7), number) for number in range(3)], assign_gpu((), 0)
    ([4, 7, 4], None)
    """
    return gpus[number % len(gpus)] if gpus else None


@dataclass(frozen=True)
class TrainerOptions:
    """The options of a trainer that a run may choose; the administrator chooses all others."""

    framework: str = "tensorflow"
    trainers: int = 1  # number of trainers that share the cores and the memory of a machine
    gpu: int | None = None  # device number
    threads: int | None = None  # in place of a share of the cores, so that a replay is exact

    def __post_init__(self) -> None:
        numbers = [self.trainers]
        numbers += [number for number in (self.threads, self.gpu) if number is not None]
        are_valid = all(type(number) is int and 0 <= number <= MAX_NUMBER for number in numbers)
        if self.framework not in FRAMEWORKS or not are_valid or 0 in (self.trainers, self.threads):
            raise InvalidParameter(f"no trainer can be started like this: {self}"[:300])


def parse_options(values: Mapping[str, Any]) -> TrainerOptions:
    """Return options from fields; `TrainerOptions` checks their values."""
    if unknown := values.keys() - {f.name for f in fields(TrainerOptions)}:
        raise InvalidParameter(f"a trainer has no {', '.join(sorted(unknown))}")
    return TrainerOptions(**values)


def trainer_spec(settings: Settings, options: TrainerOptions) -> TrainerSpec:
    """Return how to start a trainer on this machine; only the administrator chooses the program."""
    if settings.trainer_python is None:
        raise ObjectNotReady(
            "no trainer interpreter is set",
            hint="An administrator sets trainer_python with cerebro.set: the path of the Python of "
            f"{describe_environment(options.framework)}.",
        )
    if settings.trainer_memory_mb is None:
        memory_bytes = host_resources.memory_bytes() * 3 // 4 // options.trainers
    else:
        memory_bytes = settings.trainer_memory_mb << 20
    default_threads = 1
    if options.framework != "none":
        default_threads = host_resources.threads_per_trainer(options.trainers)
    return TrainerSpec(
        python=settings.trainer_python,
        framework=options.framework,
        threads=options.threads or default_threads,
        gpu=host_resources.NO_GPU if options.gpu is None else str(options.gpu),
        memory_bytes=memory_bytes,
        compilation_cache=_find_cache_folder(settings, options.framework),
        nursery_seconds=settings.trainer_nursery_seconds,
        is_reusable=not settings.tenant_roles,
        cores=host_resources.trainer_cores(settings.spare_cores),
    )


def _find_cache_folder(settings: Settings, framework: str) -> str | None:
    """Return the folder for compiled code, which only JAX stores.

    A folder that an administrator has named is checked for all frameworks.
    """
    if settings.compilation_cache is None and framework != "jax":
        return None
    return compilation_cache.choose_folder(settings.compilation_cache).path


def check_trainer(settings: Settings) -> None:
    """Raise if no trainer could be started."""
    spec = trainer_spec(settings, TrainerOptions())
    if not os.access(spec.python, os.X_OK):
        raise ObjectNotReady(
            f"trainer_python is {spec.python!r}, which is not an executable file for the server's "
            "user",
            hint="An administrator sets trainer_python with cerebro.set: the path of the Python of "
            f"{describe_environment(spec.framework)}.",
        )


def cache_bytes(settings: Settings, trainers: int) -> int:
    """Return the bytes of decoded buffers that each of these trainers may cache.

    By default that is half of the free memory, or of the trainer's memory limit, after a deduction
    for framework and model.

    Args:
        trainers: number of trainers that are about to start.
    """
    if settings.cache_mb is not None:
        return settings.cache_mb << 20
    memory_bytes = host_resources.available_bytes() // trainers
    if settings.trainer_memory_mb is not None:
        memory_bytes = min(memory_bytes, settings.trainer_memory_mb << 20)
    return max(0, memory_bytes - host_resources.TRAINER_BYTES) // 2
