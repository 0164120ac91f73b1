"""Methods that write what the database has to files; `Session` has them."""

from __future__ import annotations

from pathlib import Path

from cerebro_db.export import event_files, model_files, onnx_files, registered_models, tracked_runs
from cerebro_db.export.stored_models import Wanted, read_model
from cerebro_db.export.tracked_runs import EXPERIMENT, Target
from cerebro_db.run_reader import RunReader


class Exports(RunReader):
    """Methods over own models and runs. Each returns the files that it has written.

    Nothing is overwritten unless `force` says so. A model is one by name, of which `version` is the
    one that predicts unless it is told, and `group` a group of rows that has a model of its own; or
    TABLE:MST_KEY of a model table, or the name of a table with a single model.
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
        """Writes a .keras file that plain Keras 3 loads, and the recipe of its inputs beside it as
        JSON.
        """
        return model_files.write_keras(
            read_model(self.engine, Wanted(model, version, group)), Path(path), force
        )

    def export_safetensors(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Writes a folder: weights.safetensors, architecture.json and recipe.json; `load_model`
        reads it again.
        """
        return model_files.write_safetensors(
            read_model(self.engine, Wanted(model, version, group)), Path(path), force
        )

    def export_onnx(
        self,
        model: str,
        path: str | Path,
        *,
        version: int | None = None,
        group: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Writes an .onnx file that takes raw numbers and codes of categories, and the recipe
        beside it as JSON.
        """
        return onnx_files.write_onnx(
            read_model(self.engine, Wanted(model, version, group)), Path(path), force
        )

    def export_tensorboard(
        self, run_id: int, path: str | Path, *, force: bool = False
    ) -> list[Path]:
        """Writes event files for TensorBoard, a folder for each configuration: metrics and
        hyperparameters.
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
        """Logs a run to MLflow, with a nested run for each configuration; returns the id that it
        has there.

        Without a `tracking_uri` it is where MLflow's own settings say. `force` deletes there what
        was logged before.
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
        """Registers a model in MLflow, where it predicts DataFrames of raw columns; returns its
        address there.

        It is a new version of `name`, which is that of the model unless it is told. `tracking_uri`
        is as above.
        """
        stored = read_model(self.engine, Wanted(model, version, group))
        return registered_models.register(stored, name or model, Target(tracking_uri, experiment))
