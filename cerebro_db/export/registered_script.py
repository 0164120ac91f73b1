"""The program that MLflow runs for a registered model, without cerebro_db.

MLflow copies this module beside the network, and runs it wherever the model is loaded. Nothing
else imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

GRAPH_SUFFIX = ".onnx"

ComputeOutputs: TypeAlias = Callable[[Any], Any]
"""Returns the outputs of a network for a DataFrame of raw columns."""


class RawColumns(PythonModel):
    """A network with its recipe; its predictions have the columns of cerebro.predict."""

    def load_context(self, context: Any) -> None:
        """Load the recipe, and the network of Keras or the ONNX graph."""
        rows: Any = import_module("cerebro_recipe.rows")
        self.rows = rows.RawRows.of(Path(context.artifacts["recipe"]).read_text())
        path = Path(context.artifacts["network"])
        load = load_graph if path.suffix == GRAPH_SUFFIX else load_network
        self.compute_outputs = load(path, self.rows)

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
        """Return a row of predictions for each row of a DataFrame, with its index."""
        answers = self.rows.answers(self.compute_outputs(model_input))
        return pd.DataFrame(answers.columns(), index=model_input.index)


def load_network(path: Path, rows: Any) -> ComputeOutputs:
    """Load a network in the safe mode of Keras."""
    keras: Any = import_module("keras")
    network = keras.saving.load_model(path, compile=False, safe_mode=True)

    def compute_outputs(frame: Any) -> Any:
        inputs = rows.inputs(frame)
        named_inputs = {tensor.name: inputs[tensor.name] for tensor in network.inputs}
        return network.predict(named_inputs, verbose=0)

    return compute_outputs


def load_graph(path: Path, rows: Any) -> ComputeOutputs:
    """Load an ONNX graph, which a model with boosted trees is."""
    runtime: Any = import_module("onnxruntime")
    session = runtime.InferenceSession(path)

    def compute_outputs(frame: Any) -> Any:
        (outputs,) = session.run(None, rows.raw(frame))
        return outputs

    return compute_outputs


set_model(RawColumns())
