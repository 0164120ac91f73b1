"""Register a model in MLflow that predicts DataFrames of raw columns.

It consists of files: the network, its recipe, the folder that applies the recipe, and the module
that MLflow runs. It needs MLflow and Keras only; a model with boosted trees is an ONNX graph, which
needs ONNX Runtime instead of Keras.
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
from cerebro_db.export.mlflow_errors import translate_mlflow_errors
from cerebro_db.export.model_files import write_keras
from cerebro_db.export.onnx_files import make_raw_rows, write_onnx
from cerebro_db.export.recipe.rows import RawRows
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.tracked_runs import Target, find_experiment
from cerebro_db.optional_imports import MODEL_EXTRAS, import_keras, import_library

SCRIPT = Path(__file__).with_name("registered_script.py")
FOLDER = "cerebro_recipe"
"""Name of the recipe folder in a registered model, where cerebro_db is not installed."""
LIBRARIES = ("numpy", "pandas")
GRAPH_RUNTIME = "onnxruntime"
METADATA = ("model", "version", "run_id", "mst_key")


def register(stored: StoredModel, name: str, target: Target) -> str:
    """Register a model as a new version of a name; return its address in MLflow.

    Raises:
        FeatureNotSupported: the model has no recipe.
        InvalidParameter: MLflow does not allow the name.
        ObjectNotReady: MLflow refuses for another reason.
    """
    rows = make_raw_rows(stored)
    if not name or set(name) & set("/:"):
        raise InvalidParameter(
            f"the name in MLflow is {name!r}, which has / or :, or nothing", hint="Give it another."
        )
    import_library("mlflow.pyfunc", MODEL_EXTRAS)
    with (
        translate_mlflow_errors(target.uri),
        TemporaryDirectory(prefix="cerebro-") as temporary,
        _track(target) as mlflow,
    ):
        experiment = find_experiment(mlflow, target.experiment)
        folder = Path(temporary)
        network_path, recipe_path = _write_network(stored, folder)
        recipe_folder = copytree(
            Path(recipe.__file__).parent, folder / FOLDER, ignore=ignore_patterns("__pycache__")
        )
        with mlflow.start_run(experiment_id=experiment, run_name=name):
            model = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(SCRIPT),
                artifacts={"network": str(network_path), "recipe": str(recipe_path)},
                code_paths=[str(recipe_folder)],
                signature=_make_signature(rows),
                pip_requirements=_list_requirements(stored),
                registered_model_name=name,
                metadata={key: str(stored.description[key]) for key in METADATA},
            )
    return f"models:/{name}/{model.registered_model_version}"


def _write_network(stored: StoredModel, folder: Path) -> list[Path]:
    """Write the network and its recipe in the format that MLflow's module loads; return the paths.

    Keras has no boosted trees, and ONNX needs converters for networks that Keras itself does not.
    """
    if stored.trees:
        return write_onnx(stored, folder / "network.onnx", False)
    return write_keras(stored, folder / "network.keras", False)


@contextmanager
def _track(target: Target) -> Iterator[Any]:
    """Yield MLflow with the tracking address of the target; restore the address afterwards."""
    mlflow = import_library("mlflow", "export")
    previous = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(target.uri or previous)
    try:
        yield mlflow
    finally:
        mlflow.set_tracking_uri(previous)


def _make_signature(rows: RawRows) -> Any:
    """Return a signature that names the columns.

    The types of the inputs are left open: a DataFrame has another type if a value is missing.
    """
    schema = import_library("mlflow.types.schema", "export")
    types = schema.DataType
    inputs = [schema.ColSpec(schema.AnyType(), feature["column"]) for feature in rows.features]
    if rows.description["task"] == "classification":
        outputs = [
            schema.ColSpec(types.string, "prediction"),
            schema.ColSpec(types.double, "probability"),
            schema.ColSpec(schema.Map(types.double), "probabilities"),
        ]
    else:
        names = ("prediction", "lower", "upper")
        outputs = [schema.ColSpec(types.double, name) for name in names]
    signature = import_library("mlflow.models", "export").ModelSignature
    return signature(inputs=schema.Schema(inputs), outputs=schema.Schema(outputs))


def _list_requirements(stored: StoredModel) -> list[str]:
    """Return the installed versions of the libraries that load and apply the model."""
    versions = [f"{name}=={version(name)}" for name in LIBRARIES]
    if stored.trees:
        return [*versions, f"{GRAPH_RUNTIME}=={version(GRAPH_RUNTIME)}"]
    framework = import_keras().backend.backend()
    module = import_library(framework, MODEL_EXTRAS)
    return [*versions, f"keras=={version('keras')}", f"{framework}=={module.__version__}"]
