"""gpu_configuration: which GPUs the hosts have, as a table.

A backend never loads a framework, so each host is asked through a trainer that ends at once: what
its framework finds, or what NVIDIA's own program lists.
"""

from __future__ import annotations

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client import request_schema, settings
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process import host_resources
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

MODULE = "gpu_configuration"
FRAMEWORKS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch", "nvidia": "none"}
"""What a trainer is started with for each source."""


def write(db: Database, output_table: str | None, source: str | None) -> None:
    """Make a table with a row for each GPU; it is empty where there is none, and a NOTICE says
    so.
    """
    output = Catalog(db, MODULE).reserve_output(output_table)
    check_source(chosen := (source or "tensorflow").lower())
    found = list(db.platform.list_gpus(db, chosen, lambda: of_this_host(db, chosen)))
    if not found:
        db.notice(f"{MODULE}: No GPUs configured on hosts.")
    db.rows(sql("gpu.table", output=output.quoted, **db.platform.clauses))
    db.rows(
        sql("gpu.add", output=output.quoted), [host for host, _ in found], [gpu for _, gpu in found]
    )


def check_source(source: str) -> str:
    """The framework of the trainer to ask; raises for what is no source."""
    if source not in FRAMEWORKS:
        raise InvalidParameter(
            f"{MODULE} error: source is {source!r:.100}; expected one of "
            f"{', '.join(map(repr, FRAMEWORKS))}.",
            hint="A framework lists the GPUs that it can use, nvidia those of the driver.",
        )
    return FRAMEWORKS[source]


def of_this_host(db: Database, source: str) -> list[str]:
    """A description of each GPU here; runs on a segment."""
    framework, chosen = check_source(source), settings.read(db)
    numbers = ",".join(map(str, settings.usable_gpus(chosen))) or host_resources.NO_GPU
    link = TrainerConnection(_spec(chosen, framework, numbers), db.check_interrupts)
    try:
        return list(map(str, link.call(request_schema.build_request("gpus"))["gpus"]))
    finally:
        link.close()


def _spec(chosen: settings.Settings, framework: str, numbers: str) -> TrainerSpec:
    spec = settings.trainer_spec(chosen, settings.TrainerOptions(framework=framework))
    return replace(spec, gpu=numbers)
