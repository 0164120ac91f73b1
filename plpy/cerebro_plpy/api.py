"""One function per SQL function that users call; the place where the parts are joined.

Each resolves the caller's names in the caller's search_path and works under a path of its own.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from cerebro_plpy import fit, grid, model_table, predict_trained, preprocess, score, selection, settings
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.checks import check_encoding
from cerebro_plpy.db import Database, raise_to_sql
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.fit_arguments import FitArguments, of_one
from cerebro_plpy.functions import Functions
from cerebro_plpy.installed import package_version
from cerebro_plpy.predictions import PredType
from cerebro_plpy.queries import sql
from cerebro_plpy.score import ScoreArguments
from cerebro_plpy.sessions import WorkerSession, identity

Globals = dict[str, Any]
T = TypeVar("T")
VERSION_KEY = "cerebro_version"


def call(plpy: Any, session: Globals, work: Callable[[Database], T]) -> T:
    """Do the work of a public function, after checking once that SQL and Python are of the same version."""

    def checked() -> T:
        db = Database(plpy)
        with db.pinned_path():
            if VERSION_KEY not in session:
                _check_version(db)
                check_encoding(db)
                session[VERSION_KEY] = package_version()
            return work(db)

    return raise_to_sql(plpy, checked)


def _check_version(db: Database) -> None:
    installed, package = db.value(sql("read.version")), package_version()
    if installed != package:
        raise ObjectNotReady(
            f"extension cerebro_db is version {installed}, its Python package is version {package}",
            hint="Run ALTER EXTENSION cerebro_db UPDATE, or install the package of that version; then reconnect.",
        )


def training_preprocessor(
    plpy: Any,
    session: Globals,
    source_table: str | None,
    output_table: str | None,
    dependent_varname: str | None,
    independent_varname: str | None,
    buffer_size: int | None,
    normalizing_const: float | None,
    num_classes: list[int | None] | None,
    distribution_rules: str | None,
    n_segments: int | None,
    seed: int | None,
    dependent_type: str | None,
) -> None:
    """Pack a table for training."""
    given = preprocess.PackArguments(
        source_table, output_table, dependent_varname, independent_varname, buffer_size, distribution_rules
    )
    options = preprocess.TrainingOptions(normalizing_const, num_classes, n_segments, seed, dependent_type)
    call(plpy, session, lambda db: preprocess.pack_training(db, session, given, options))


def validation_preprocessor(
    plpy: Any,
    session: Globals,
    source_table: str | None,
    output_table: str | None,
    dependent_varname: str | None,
    independent_varname: str | None,
    training_table: str | None,
    buffer_size: int | None,
    distribution_rules: str | None,
) -> None:
    """Pack a table as its training table was packed."""
    given = preprocess.PackArguments(
        source_table, output_table, dependent_varname, independent_varname, buffer_size, distribution_rules
    )
    call(plpy, session, lambda db: preprocess.pack_validation(db, session, given, training_table))


def load_keras_model(
    plpy: Any,
    session: Globals,
    table: str | None,
    architecture: str | None,
    weights: bytes | None,
    name: str | None,
    description: str | None,
) -> None:
    """Add an architecture to a table."""
    call(
        plpy,
        session,
        lambda db: model_table.load(Catalog(db, "load_keras_model"), table, architecture, weights, name, description),
    )


def delete_keras_model(plpy: Any, session: Globals, table: str | None, model_id: int | None) -> None:
    """Delete an architecture."""
    call(plpy, session, lambda db: model_table.delete(Catalog(db, "delete_keras_model"), table, model_id))


def load_model_selection_table(
    plpy: Any,
    session: Globals,
    model_arch_table: str | None,
    table: str | None,
    model_ids: list[int | None] | None,
    compile_params: list[str | None] | None,
    fit_params: list[str | None] | None,
    object_table: str | None,
) -> None:
    """Make a model selection table of all combinations."""
    call(
        plpy,
        session,
        lambda db: selection.load(
            Catalog(db, "load_model_selection_table"),
            model_arch_table,
            table,
            model_ids,
            (compile_params, fit_params),
            object_table,
        ),
    )


def generate_model_configs(
    plpy: Any,
    session: Globals,
    model_arch_table: str | None,
    table: str | None,
    model_ids: list[int | None] | None,
    compile_grid: str | None,
    fit_grid: str | None,
    search_type: str | None,
    num_configs: int | None,
    random_state: int | None,
    object_table: str | None,
) -> None:
    """Make or extend a model selection table by grid or random search."""

    def rows(ids: list[int], functions: Functions | None) -> tuple[grid.ConfigRow, ...]:
        return grid.generate(compile_grid, fit_grid, ids, search_type, num_configs, random_state, functions)

    call(
        plpy,
        session,
        lambda db: selection.generate(
            Catalog(db, "generate_model_configs"), model_arch_table, table, model_ids, rows, object_table
        ),
    )


def fit_multiple_model(plpy: Any, session: Globals, *arguments: Any) -> None:
    """Train all configurations of a model selection table; the arguments are those of `FitArguments`."""
    given = FitArguments(*arguments)
    call(plpy, session, lambda db: fit.fit(db, session, given, package_version()))


def fit_one_model(plpy: Any, session: Globals, *arguments: Any) -> None:
    """Train a single model; the arguments are those of `fit_arguments.of_one`."""
    given = of_one(*arguments)
    call(plpy, session, lambda db: fit.fit(db, session, given, package_version()))


def evaluate(
    plpy: Any,
    session: Globals,
    model_table: str | None,
    test_table: str | None,
    output_table: str | None,
    use_gpus: bool | None,
    mst_key: int | None,
) -> None:
    """Loss and metric of a model over a packed table."""
    given = ScoreArguments(model_table, test_table, output_table, use_gpus, mst_key)
    call(plpy, session, lambda db: score.evaluate(db, session, given))


def predict(
    plpy: Any,
    session: Globals,
    model_table: str | None,
    test_table: str | None,
    id_col: str | None,
    independent_varname: str | None,
    output_table: str | None,
    pred_type: PredType,
    use_gpus: bool | None,
    mst_key: int | None,
) -> None:
    """Predictions for raw rows."""
    given = ScoreArguments(model_table, test_table, output_table, use_gpus, mst_key)
    call(
        plpy, session, lambda db: predict_trained.predict(db, session, given, (id_col, independent_varname), pred_type)
    )


def grant_usage(plpy: Any, session: Globals, role: str) -> None:
    """Let a role use the extension. `role` comes quoted, as PostgreSQL writes a regrole."""

    def grant(db: Database) -> None:
        schema = db.value(sql("admin.schema"))
        for row in db.rows(sql("admin.functions")):
            db.rows(sql("admin.grant_function", function=row["function"], role=role))
        db.rows(sql("admin.grant_schema", schema=schema, role=role))
        db.rows(sql("admin.grant_tables", role=role))

    call(plpy, session, grant)


def worker_report(plpy: Any, session: Globals) -> str:
    """Open a worker session as a run of the current user would, and say as whom it was opened."""

    def report(db: Database) -> str:
        worker = WorkerSession(identity(db, settings.read(db).worker_conninfo), "cerebro_db check", db.check_interrupts)
        try:
            user, session_user = worker.run(sql("session.users"))[0]
            return json.dumps({"user": user, "session_user": session_user, "pid": worker.pid, "same_server": True})
        finally:
            worker.close()

    return call(plpy, session, report)


def python_version(plpy: Any, session: Globals) -> str:
    """Versions of what runs inside the backend."""

    def versions(db: Database) -> str:
        driver = str(import_module("psycopg2").__version__)
        return json.dumps(
            {
                "extension": db.value(sql("read.version")),
                "package": package_version(),
                "python": platform.python_version(),
                "psycopg2": driver,
            }
        )

    return raise_to_sql(plpy, lambda: versions(Database(plpy)))
