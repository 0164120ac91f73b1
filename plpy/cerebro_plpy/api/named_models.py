"""The SQL functions that train and manage models by name."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import (
    Globals,
    call,
    call_training,
    check_counts,
    read_package_version,
    report_errors,
)
from cerebro_plpy.database.sessions.spi import Database, Row


@report_errors
def train(plpy: Any, gd: Globals, *arguments: Any) -> list[Row]:
    """Train a model by name; the arguments are those of `TrainArguments`."""

    def work(db: Database) -> list[Row]:
        from cerebro_plpy.operations.train_arguments import TrainArguments

        train_arguments = TrainArguments(*arguments)
        if train_arguments.background:
            from cerebro_plpy.operations.live import submission

            return submission.train(db, gd, train_arguments)
        from cerebro_plpy.operations.train import train as train_operation

        return train_operation.train(db, gd, train_arguments, read_package_version())

    return call_training(plpy, gd, work)


@report_errors
def plan_train(plpy: Any, gd: Globals, *arguments: Any) -> list[Row]:
    """Return a plan of `train` with the same arguments."""
    from cerebro_plpy.operations.train import explain_train
    from cerebro_plpy.operations.train_arguments import TrainArguments

    train_arguments = TrainArguments(*arguments)
    return call(plpy, gd, lambda db: explain_train.explain_train(db, train_arguments))


@report_errors
def deploy(plpy: Any, gd: Globals, model: str | None, version: str | int | None) -> int:
    """Deploy a version of a model; return its number."""
    from cerebro_plpy.operations.models import deployment

    return call(plpy, gd, lambda db: deployment.deploy(db, model, version))


@report_errors
def register(
    plpy: Any, gd: Globals, model: str | None, model_table: str | None, mst_key: int | None
) -> int:
    """Register a model of a model table under a name; return the number of the version."""
    from cerebro_plpy.operations.models import register_model_table

    return call(plpy, gd, lambda db: register_model_table.register(db, model, model_table, mst_key))


@report_errors
@check_counts
def export_model(plpy: Any, gd: Globals, model: str | None, version: int | None) -> bytes:
    """Return a version of a model as the bytes of a file."""
    from cerebro_plpy.operations.models import export_model as export_operation

    return call(plpy, gd, lambda db: export_operation.export_model(db, model, version))


@report_errors
def import_model(plpy: Any, gd: Globals, exported: bytes | None, model: str | None) -> int:
    """Add the version in a file to a model; return the number of the version."""
    from cerebro_plpy.operations.models import import_model as import_operation

    return call(plpy, gd, lambda db: import_operation.import_model(db, gd, exported, model))


@report_errors
def drop_model(plpy: Any, gd: Globals, model: str | None) -> None:
    """Remove a model with all its versions."""
    from cerebro_plpy.operations.models import deployment

    call(plpy, gd, lambda db: deployment.drop(db, model))


@report_errors
def template_fields(plpy: Any, gd: Globals) -> list[Row]:
    """Return the fields of all templates."""
    from cerebro_plpy.operations.models import template_list

    return call(plpy, gd, lambda db: template_list.list_fields())
