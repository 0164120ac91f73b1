"""The program that MLflow runs for a registered model, without cerebro_db.

MLflow copies this module beside the network, and runs it wherever the model is loaded. Nothing
else imports it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class RawColumns(PythonModel):
    """A network with its recipe; its predictions have the columns of cerebro.predict."""

    def load_context(self, context: Any) -> None:
        """Load the network, in the safe mode of Keras, and the recipe."""
        keras: Any = import_module("keras")
        rows: Any = import_module("cerebro_recipe.rows")
        self.network = keras.saving.load_model(
            context.artifacts["network"], compile=False, safe_mode=True
        )
        self.rows = rows.RawRows.of(Path(context.artifacts["recipe"]).read_text())

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
        """Return a row of predictions for each row of a DataFrame, with its index."""
        inputs = self.rows.inputs(model_input)
        named_inputs = {tensor.name: inputs[tensor.name] for tensor in self.network.inputs}
        answers = self.rows.answers(self.network.predict(named_inputs, verbose=0))
        return pd.DataFrame(answers.columns(), index=model_input.index)


set_model(RawColumns())
