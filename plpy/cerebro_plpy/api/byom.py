"""The SQL function that predicts with a model of the user's own."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, report_errors
from cerebro_plpy.operations.predict.predict_byom import ByomArguments
from cerebro_plpy.operations.predict.predict_byom import predict_byom as predict_rows
from cerebro_plpy.operations.predict.prediction_output import PredType


@report_errors
@check_counts
def predict_byom(
    plpy: Any,
    gd: Globals,
    model_arch_table: str | None,
    model_id: int | None,
    test_table: str | None,
    id_col: str | None,
    independent_varname: str | None,
    output_table: str | None,
    pred_type: PredType,
    use_gpus: bool | None,
    class_values: list[Any] | None,
    normalizing_const: float | None,
    dependent_count: int | None,
    backend: str | None,
) -> None:
    """Predict raw rows with a model that was loaded with its weights."""
    arguments = ByomArguments(
        model_arch_table,
        model_id,
        test_table,
        output_table,
        use_gpus,
        class_values,
        normalizing_const,
        dependent_count,
        backend,
    )
    call(
        plpy,
        gd,
        lambda db: predict_rows(db, gd, arguments, (id_col, independent_varname), pred_type),
    )
