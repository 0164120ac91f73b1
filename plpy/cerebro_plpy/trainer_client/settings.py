"""Settings of the administrator, read from `cerebro.setting`: never from a GUC, which any user can
set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from cerebro_plpy.database.platform_protocol import Caller
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.limits import SETTINGS, check
from cerebro_plpy.records import dataclass, field, fields
from cerebro_plpy.trainer_client.process import compilation_cache, host_resources
from cerebro_plpy.trainer_client.process.launch import TrainerSpec, environment

FRAMEWORKS = ("tensorflow", "jax", "torch", "none")
MOST_DIGITS = 80
MOST = 1024  # trainers, threads of each, and numbers of devices, whoever asks


@dataclass(frozen=True)
class Settings:
    """One field per row that `cerebro.setting` may have; None means the default."""

    trainer_python: str | None = None
    worker_conninfo: str | None = None
    trainer_idle_seconds: int = field(default=60, metadata={"least": 0})
    trainer_nursery_seconds: int = field(default=300, metadata={"least": 0})
    commit_seconds: int = field(default=0, metadata={"least": 0})
    max_workers_total: int | None = field(default=None, metadata={"least": 2})
    trainer_memory_mb: int | None = field(default=None, metadata={"least": 64})
    cache_mb: int | None = field(default=None, metadata={"least": 0})
    compilation_cache: str | None = None
    kept_features_mb: int = field(default=1000, metadata={"least": 0})
    gpus: tuple[int, ...] | None = None
    spare_cores: int = field(default=0, metadata={"least": 0})
    """So many processors are left to others: trainers keep off them."""
    tenant_roles: bool = False
    """Whether the caller is one of those that are many tenants each, whose trainers are not kept
    for one another.
    """
    price_per_core_hour: float | None = None
    price_per_gpu_hour: float | None = None
    price_per_gb_month: float | None = None
    watts_per_core: float | None = None
    watts_per_gpu: float | None = None
    """What the view `cerebro.cost` counts with, and a run that has `max_cost`."""


def read(db: Caller) -> Settings:
    """The settings in force; unknown names and bad numbers are refused."""
    known = {f.name: f for f in fields(Settings)}
    values: dict[str, object] = {}
    for row in db.peek(sql("read.settings")):
        name, value = row["name"], row["value"]
        if name not in known:
            raise InvalidParameter(
                f"cerebro.setting has a row named {name!r}; expected one of "
                f"{', '.join(sorted(known))}",
                hint="An administrator can delete that row.",
            )
        least = known[name].metadata.get("least")
        read_as = READ_AS.get(name)
        if name.startswith(("price_", "watts_")):
            values[name] = _decimal(name, value)
        else:
            values[name] = (
                read_as(value)
                if read_as
                else value
                if least is None
                else _number(name, value, least)
            )
    return Settings(**values)  # type: ignore[arg-type]


def _number(name: str, text: str, least: int) -> int:
    if not text.strip().isdecimal() or len(text) > MOST_DIGITS or int(text) < least:
        raise InvalidParameter(
            f"setting {name} is {text!r:.80}; expected a whole number of at least {least}"
        )
    check(f"setting {name}", int(text), SETTINGS[name])
    return int(text)


def _decimal(name: str, text: str) -> float:
    # As the view cerebro.cost reads it.
    if not re.fullmatch(r"[0-9]{1,15}([.][0-9]{1,15})?", text):
        raise InvalidParameter(f"setting {name} is {text!r}; expected a number such as 0.05")
    return float(text)


def _gpus(text: str) -> tuple[int, ...]:
    """Device numbers between commas.

    >>> _gpus("0, 2"), _gpus("")
    ((0, 2), ())
    """
    numbers = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) != len(numbers):
        raise InvalidParameter(
            f"setting gpus is {text!r}; expected different numbers of devices, such as '0,1'"
        )
    return tuple(map(int, numbers))


READ_AS: Mapping[str, Callable[[str], object]] = {
    "gpus": _gpus,
    "tenant_roles": lambda text: text == "true",
}


def usable_gpus(settings: Settings) -> tuple[int, ...]:
    """The numbers of the GPUs of this machine that trainers may use."""
    return settings.gpus if settings.gpus is not None else tuple(range(host_resources.gpus()))


def devices(settings: Settings, wanted: bool | None) -> tuple[int, ...]:
    """The numbers of the GPUs that trainers may use; none where they are not wanted, an error where
    there are none.
    """
    if not wanted:
        return ()
    found = usable_gpus(settings)
    if not found:
        raise ObjectNotReady(
            "No GPUs configured on hosts.",
            hint="Leave use_gpus out to work on the processor. An administrator can name devices "
            "in cerebro.setting: INSERT INTO cerebro.setting VALUES ('gpus', '0,1').",
        )
    return found


def device_of(gpus: tuple[int, ...], number: int) -> int | None:
    """The GPU of the trainer of that number: they go round.

    >>> [device_of((4, 7), number) for number in range(3)], device_of((), 0)
    ([4, 7, 4], None)
    """
    return gpus[number % len(gpus)] if gpus else None


@dataclass(frozen=True)
class TrainerOptions:
    """What a run may choose about its trainers; all else is the administrator's.

    `trainers` share the cores and the memory of a machine, or have `threads` each, so that a replay
    gives the same bits; `gpu` is the number of a device, None for none.
    """

    framework: str = "tensorflow"
    trainers: int = 1
    gpu: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        numbers = (
            self.trainers,
            *(number for number in (self.threads, self.gpu) if number is not None),
        )
        right = all(type(number) is int and 0 <= number <= MOST for number in numbers)
        if self.framework not in FRAMEWORKS or not right or 0 in (self.trainers, self.threads):
            raise InvalidParameter(f"no trainer can be started like this: {self}"[:300])


def request(told: Mapping[str, Any]) -> TrainerOptions:
    """The request that these fields are; `TrainerRequest` checks their values."""
    if unknown := told.keys() - {f.name for f in fields(TrainerOptions)}:
        raise InvalidParameter(f"a trainer has no {', '.join(sorted(unknown))}")
    return TrainerOptions(**told)


def trainer_spec(settings: Settings, request: TrainerOptions) -> TrainerSpec:
    """How a trainer on this machine is started; which program it is, only the administrator
    decides.
    """
    if settings.trainer_python is None:
        raise ObjectNotReady(
            "no trainer interpreter is set",
            hint="As an administrator: INSERT INTO cerebro.setting VALUES ('trainer_python',"
            f" '/path/bin/python'); that of {environment(request.framework)}.",
        )
    limit = settings.trainer_memory_mb
    memory = (
        limit << 20
        if limit is not None
        else host_resources.memory_bytes() * 3 // 4 // request.trainers
    )
    return TrainerSpec(
        python=settings.trainer_python,
        framework=request.framework,
        threads=request.threads
        or (1 if request.framework == "none" else host_resources.width(request.trainers)),
        gpu=host_resources.NO_GPU if request.gpu is None else str(request.gpu),
        memory_bytes=memory,
        compilation_cache=_code_folder(settings, request.framework),
        nursery_seconds=settings.trainer_nursery_seconds,
        kept=not settings.tenant_roles,
        cores=host_resources.shared(settings.spare_cores),
    )


def _code_folder(settings: Settings, framework: str) -> str | None:
    """JAX alone keeps code; a folder that an administrator has named is looked at whatever
    starts.
    """
    if settings.compilation_cache is None and framework != "jax":
        return None
    return compilation_cache.chosen(settings.compilation_cache).path


def check_trainer(settings: Settings) -> None:
    """Refuse to begin where no trainer could be started."""
    spec = trainer_spec(settings, TrainerOptions())
    if not os.access(spec.python, os.X_OK):
        raise ObjectNotReady(
            f"trainer_python is {spec.python!r}, which is not an executable file for the server's "
            "user",
            hint="As an administrator: UPDATE cerebro.setting SET value = '/path/bin/python'"
            f" WHERE name = 'trainer_python'; that of {environment(spec.framework)}.",
        )


def cache_bytes(settings: Settings, trainers: int) -> int:
    """How many bytes of decoded buffers each of the trainers that are about to start may keep, of
    all its partitions.

    By default half of what is free, or of the trainer's memory limit, when frameworks and models
    have their room.
    """
    if settings.cache_mb is not None:
        return settings.cache_mb << 20
    limit = settings.trainer_memory_mb
    room = [host_resources.available_bytes() // trainers, *([] if limit is None else [limit << 20])]
    return max(0, min(room) - host_resources.TRAINER_BYTES) // 2
