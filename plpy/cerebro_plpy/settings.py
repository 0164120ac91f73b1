"""Settings of the administrator, read from `cerebro.setting`: never from a GUC, which any user can set."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from cerebro_plpy import resources
from cerebro_plpy.db import Database
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.link import TrainerSpec
from cerebro_plpy.queries import sql


@dataclass(frozen=True)
class Settings:
    """One field per row that `cerebro.setting` may have; None means the default."""

    trainer_python: str | None = None
    worker_conninfo: str | None = None
    trainer_idle_seconds: int = field(default=60, metadata={"least": 0})
    trainer_memory_mb: int | None = field(default=None, metadata={"least": 64})
    cache_mb: int | None = field(default=None, metadata={"least": 0})


def read(db: Database) -> Settings:
    """The settings in force; unknown names and bad numbers are refused."""
    known = {f.name: f for f in fields(Settings)}
    values: dict[str, object] = {}
    for row in db.rows(sql("read.settings")):
        name, value = row["name"], row["value"]
        if name not in known:
            raise InvalidParameter(
                f"cerebro.setting has a row named {name!r}; expected one of {', '.join(sorted(known))}",
                hint="An administrator can delete that row.",
            )
        least = known[name].metadata.get("least")
        values[name] = value if least is None else _number(name, value, least)
    return Settings(**values)  # type: ignore[arg-type]


def _number(name: str, text: str, least: int) -> int:
    if not text.strip().isdigit() or int(text) < least:
        raise InvalidParameter(f"setting {name} is {text!r}; expected a whole number of at least {least}")
    return int(text)


def trainer_spec(settings: Settings, *, framework: str, threads: int, trainers: int, gpu: str = "-1") -> TrainerSpec:
    """How each of several trainers on this machine is started."""
    if settings.trainer_python is None:
        raise ObjectNotReady(
            "no trainer interpreter is set",
            hint="As an administrator: INSERT INTO cerebro.setting VALUES ('trainer_python', '/path/of/an/environment/bin/python');"
            " the environment must have cerebro_db[tensorflow] installed.",
        )
    limit = settings.trainer_memory_mb
    memory = limit << 20 if limit is not None else resources.memory_bytes() * 3 // 4 // max(1, trainers)
    return TrainerSpec(
        python=settings.trainer_python,
        framework=framework,
        threads=threads,
        gpu=gpu,
        idle_seconds=settings.trainer_idle_seconds,
        memory_bytes=memory,
    )


def cache_bytes(settings: Settings, trainers: int) -> int:
    """How many bytes of decoded buffers each of several trainers may keep."""
    if settings.cache_mb is not None:
        return settings.cache_mb << 20
    return resources.available_bytes() // 2 // max(1, trainers)
