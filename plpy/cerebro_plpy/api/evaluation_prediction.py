"""The functions of sql/60-evaluation-prediction.sql."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerebro_plpy.api.entry import Globals, call, report_errors

if TYPE_CHECKING:
    from cerebro_plpy.operations.predict.prediction_output import PredType


@report_errors
def evaluate(
    plpy: Any,
    gd: Globals,
    model_table: str | None,
    test_table: str | None,
    output_table: str | None,
    use_gpus: bool | None,
    mst_key: int | None,
) -> None:
    """Compute the loss and the metrics of a model over a packed table."""
    from cerebro_plpy.operations.predict.evaluate import evaluate as evaluate_model
    from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments

    arguments = ScoreArguments(model_table, test_table, output_table, use_gpus, mst_key)
    call(plpy, gd, lambda db: evaluate_model(db, gd, arguments))


@report_errors
def predict(
    plpy: Any,
    gd: Globals,
    model_table: str | None,
    test_table: str | None,
    id_col: str | None,
    independent_varname: str | None,
    output_table: str | None,
    pred_type: PredType,
    use_gpus: bool | None,
    mst_key: int | None,
) -> None:
    """Predict raw rows."""
    from cerebro_plpy.operations.predict.predict import predict as predict_rows
    from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments

    arguments = ScoreArguments(model_table, test_table, output_table, use_gpus, mst_key)
    columns = (id_col, independent_varname)
    call(plpy, gd, lambda db: predict_rows(db, gd, arguments, columns, pred_type))


@report_errors
def grant_predict(plpy: Any, gd: Globals, model: str | None, role: str | None) -> None:
    """Let a role predict with a model by name, or with the models of a table."""
    from cerebro_plpy.operations.models import grants

    call(plpy, gd, lambda db: grants.change(db, grants.GRANT, model, role))


@report_errors
def revoke_predict(plpy: Any, gd: Globals, model: str | None, role: str | None) -> None:
    """Revoke such a grant."""
    from cerebro_plpy.operations.models import grants

    call(plpy, gd, lambda db: grants.change(db, grants.REVOKE, model, role))
