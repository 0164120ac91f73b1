"""The methods of `Session` that export models and runs."""

from __future__ import annotations

from pathlib import Path

from cerebro_db.export import event_files, model_files, onnx_files, registered_models, tracked_runs
from cerebro_db.export.stored_models import ModelReference, read_model
from cerebro_db.export.tracked_runs import EXPERIMENT, Target
from cerebro_db.export.trees import lightgbm_files
from cerebro_db.run_reader import RunReader


class Exports(RunReader):
    """Methods that export the caller's models and runs.

    Most return the paths of the written files; none overwrites files unless `force` is set.

    Args of the methods:
        model: the name of a model, TABLE:MST_KEY for a model of a model table, or the name of a
            table with a single model.
        version: a version of a model by name; the deployed one by default.
        group: a group of rows that has a model of its own, by its value.
    """

    def export_keras(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write a .keras file for plain Keras 3, and the recipe of its inputs as .keras.json."""
        stored = read_model(self.engine, ModelReference(model, version, group))
        return model_files.write_keras(stored, Path(path), force)

    def export_safetensors(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write a folder with weights.safetensors, architecture.json and recipe.json.

        `load_model` reads such a folder.
        """
        stored = read_model(self.engine, ModelReference(model, version, group))
        return model_files.write_safetensors(stored, Path(path), force)

    def export_onnx(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write an .onnx file that takes raw numbers and codes, and its recipe as .onnx.json."""
        stored = read_model(self.engine, ModelReference(model, version, group))
        return onnx_files.write_onnx(stored, Path(path), force)

    def export_lightgbm(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write boosted trees as a .txt file for LightGBM, and their recipe as .txt.json."""
        stored = read_model(self.engine, ModelReference(model, version, group))
        return lightgbm_files.write_lightgbm(stored, Path(path), force)

    def export_tensorboard(
        self, run_id: int, path: str | Path, *, force: bool = False
    ) -> list[Path]:
        """Write event files for TensorBoard, a folder for each configuration.

        They contain metrics and hyperparameters.
        """
        return event_files.write_run(self, run_id, Path(path), force)

    def export_mlflow(
        self,
        run_id: int,
        tracking_uri: str | None = None,
        *,
        experiment: str = EXPERIMENT,
        force: bool = False,
    ) -> str:
        """Log a run to MLflow, with a nested run for each configuration; return its id there.

        Args:
            tracking_uri: the MLflow server; MLflow's own settings apply by default.
            force: delete an earlier export of the run first.
        """
        return tracked_runs.write_run(self, run_id, Target(tracking_uri, experiment), force)

    def export_registered(
        self,
        model: str,
        tracking_uri: str | None = None,
        *,
        name: str | None = None,
        version: int | None = None,
        group: str | None = None,
        experiment: str = EXPERIMENT,
    ) -> str:
        """Register a model in MLflow that predicts DataFrames of raw columns; return its address.

        Args:
            tracking_uri: the MLflow server; MLflow's own settings apply by default.
            name: the name of the model in MLflow, which gets a new version; `model` by default.
        """
        stored = read_model(self.engine, ModelReference(model, version, group))
        return registered_models.register(stored, name or model, Target(tracking_uri, experiment))
