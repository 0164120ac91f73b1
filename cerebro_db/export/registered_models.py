"""A model in MLflow's registry: one that predicts a DataFrame of raw columns, wherever MLflow and
Keras are.

What is registered are files: the network, its recipe, the folder that applies it, and the module
that MLflow runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

from cerebro_db.errors import InvalidParameter
from cerebro_db.export import recipe
from cerebro_db.export.model_files import write_keras
from cerebro_db.export.onnx_files import raw_rows
from cerebro_db.export.recipe.rows import RawRows
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.tracked_runs import Target
from cerebro_db.optional_imports import import_library

SCRIPT = Path(__file__).with_name("registered_script.py")
FOLDER = "cerebro_recipe"
"""As which the registered model has the folder that applies recipes: there is no cerebro_db beside
it.
"""
LIBRARIES = ("keras", "numpy", "pandas")


def register(stored: StoredModel, name: str, target: Target) -> str:
    """Registers a model, as a new version of that name; its address in MLflow."""
    rows = raw_rows(stored)
    if not name or set(name) & set("/:"):
        raise InvalidParameter(
            f"the name in MLflow is {name!r}, which has / or :, or nothing", hint="Give it another."
        )
    import_library("mlflow.pyfunc", "export")
    with TemporaryDirectory(prefix="cerebro-") as made, _tracked(target) as (mlflow, experiment):
        folder = Path(made)
        network, told = write_keras(stored, folder / "network.keras", False)
        code = copytree(
            Path(recipe.__file__).parent, folder / FOLDER, ignore=ignore_patterns("__pycache__")
        )
        with mlflow.start_run(experiment_id=experiment, run_name=name):
            logged = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(SCRIPT),
                artifacts={"network": str(network), "recipe": str(told)},
                code_paths=[str(code)],
                signature=_signature(rows),
                pip_requirements=_requirements(),
                registered_model_name=name,
                metadata={
                    key: str(stored.description[key])
                    for key in ("model", "version", "run_id", "mst_key")
                },
            )
    return f"models:/{name}/{logged.registered_model_version}"


@contextmanager
def _tracked(target: Target) -> Iterator[tuple[Any, str]]:
    """MLflow, tracking where it is wanted, and the id of the experiment there; afterwards it tracks
    where it did.
    """
    mlflow = import_library("mlflow", "export")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(target.uri or before)
    try:
        found = mlflow.get_experiment_by_name(target.experiment)
        yield (
            mlflow,
            mlflow.create_experiment(target.experiment) if found is None else found.experiment_id,
        )
    finally:
        mlflow.set_tracking_uri(before)


def _signature(rows: RawRows) -> Any:
    """Columns by name. Their types are left open: a DataFrame has another one wherever a value is
    missing.
    """
    schema, signature = (
        import_library("mlflow.types.schema", "export"),
        import_library("mlflow.models", "export").ModelSignature,
    )
    types, text = schema.DataType, rows.told["task"] == "classification"
    given = [schema.ColSpec(schema.AnyType(), each["column"]) for each in rows.features]
    probabilities = [
        schema.ColSpec(types.double, "probability"),
        schema.ColSpec(schema.Map(types.double), "probabilities"),
    ]
    bounds = [schema.ColSpec(types.double, name) for name in ("lower", "upper")]
    told = [
        schema.ColSpec(types.string if text else types.double, "prediction"),
        *(probabilities if text else bounds),
    ]
    return signature(inputs=schema.Schema(given), outputs=schema.Schema(told))


def _requirements() -> list[str]:
    """What predicts: Keras with the framework that it has here, in these versions."""
    framework = import_library("keras", "export").backend.backend()
    module = import_library(framework, "export,tensorflow")
    return [
        *(f"{name}=={version(name)}" for name in LIBRARIES),
        f"{framework}=={module.__version__}",
    ]
