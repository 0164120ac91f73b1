"""`gpu_configuration`: create a table of the GPUs of all hosts.

A backend never loads a framework. A trainer on each host lists the GPUs that its framework or
NVIDIA's own program finds, and ends at once.
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

MODULE = "gpu_configuration"
FRAMEWORKS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch", "nvidia": "none"}
"""The framework of the trainer, by source."""


def write(db: Database, output_table: str | None, source: str | None) -> None:
    """Create a table with a row for each GPU; a NOTICE reports an empty one."""
    output = Catalog(db, MODULE).reserve_output(output_table)
    source = (source or "tensorflow").lower()
    find_framework(source)
    gpus = list(db.platform.list_gpus(db, source, lambda: list_local_gpus(db, source)))
    if not gpus:
        db.notice(f"{MODULE}: No GPUs configured on hosts.")
    db.rows(sql("gpu.table", output=output.quoted, **db.platform.clauses))
    hosts = [host for host, _ in gpus]
    descriptions = [description for _, description in gpus]
    db.rows(sql("gpu.add", output=output.quoted), hosts, descriptions)


def find_framework(source: str) -> str:
    """Return the framework of the trainer that lists GPUs.

    Raises:
        InvalidParameter: the source is unknown.
    """
    if source not in FRAMEWORKS:
        raise InvalidParameter(
            f"{MODULE} error: source is {source!r:.100}; expected one of "
            f"{', '.join(map(repr, FRAMEWORKS))}.",
            hint="A framework lists the GPUs that it can use, nvidia those of the driver.",
        )
    return FRAMEWORKS[source]


def list_local_gpus(db: Database, source: str) -> list[str]:
    """Return a description of each GPU of this host; this may run on a segment."""
    framework = find_framework(source)
    options = settings.read(db)
    numbers = ",".join(map(str, settings.usable_gpus(options))) or host_resources.NO_GPU
    spec = settings.trainer_spec(options, settings.TrainerOptions(framework=framework))
    trainer = TrainerConnection(replace(spec, gpu=numbers), db.check_interrupts)
    try:
        return list(map(str, trainer.call(request_schema.build_request("gpus"))["gpus"]))
    finally:
        trainer.close()
