"""What MLflow runs of a registered model: raw columns of a DataFrame to predictions, without
cerebro_db.

MLflow copies this module beside the network, and runs it wherever the model is loaded; nothing else
imports it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class RawColumns(PythonModel):
    """A network, and the recipe of its inputs; answers have the columns that cerebro.predict has
    for them.
    """

    def load_context(self, context: Any) -> None:
        """Read both, by Keras in its safe mode."""
        keras: Any = import_module("keras")
        rows: Any = import_module("cerebro_recipe.rows")
        self.network = keras.saving.load_model(
            context.artifacts["network"], compile=False, safe_mode=True
        )
        self.rows = rows.RawRows.of(Path(context.artifacts["recipe"]).read_text())

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
        """A row for each row, with its index."""
        given = self.rows.inputs(model_input)
        told = self.rows.answers(
            self.network.predict(
                {each.name: given[each.name] for each in self.network.inputs}, verbose=0
            )
        )
        return pd.DataFrame(told.columns(), index=model_input.index)


set_model(RawColumns())
