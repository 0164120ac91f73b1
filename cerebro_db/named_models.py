"""Session methods for models by name: plans, predictions, evaluation and versions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cerebro_db.arguments import TrainOptions, encode_options
from cerebro_db.errors import UndefinedObject
from cerebro_db.export.paths import check_free, stage_files
from cerebro_db.options import accept_options, refuse_former_call
from cerebro_db.result_set import Rows, name_columns
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Unpack

USUAL_LEVEL = 0.9
"""The level of prediction intervals in the database."""
PLAN_COLUMNS = ("section", "name", "what", "why", "data")
DRIFT_COLUMNS = (
    "column_name",
    "kind",
    "training_missing",
    "missing",
    "psi",
    "part",
    "new_categories",
)
FINDING_COLUMNS = ("what", "ok", "detail")
REFRESH_COLUMNS = (
    "run_id",
    "version",
    "deployed",
    "metric",
    "value",
    "training_rows",
    "validation_rows",
)
PREDICTION_COLUMNS = ("id", "prediction", "probability", "probabilities", "lower", "upper")
EVALUATION_COLUMNS = ("group_values", "metric", "class", "predicted", "value", "rows")
IMPORTANCE_COLUMNS = ("column_name", "importance", "importance_error", "metric", "rows")
ATTRIBUTION_COLUMNS = ("id", "column_name", "value", "attribution", "gap", "patch")


class NamedModels:
    """Session methods for models by name, which `Session.train` creates."""

    _sql: SqlSession

    @accept_options(TrainOptions)
    def plan(
        self,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[TrainOptions],
    ) -> Rows:
        """Return the plan of a call of `train` with the same arguments (cerebro.plan)."""
        return self._query(
            "plan", PLAN_COLUMNS, source=source, target=target, **encode_options(options)
        )

    @refuse_former_call(
        "madlib_predict",
        ("model_table", "test_table", "id_col", "independent_varname", "output_table"),
    )
    def predict(
        self,
        model: str,
        source: str | None = None,
        id_col: str | None = None,
        *,
        owner: str | None = None,
        query: str | None = None,
        level: float = USUAL_LEVEL,
    ) -> Rows:
        """Return the predictions of a model for all raw rows of a table (cerebro.predict).

        Args:
            id_col: column that identifies a row; by default the primary key.
            owner: role that has granted the model; None for a model of the caller.
            query: a query in place of a table.
            level: probability of the intervals of a regression.
        """
        rows = {"source": source, "id_col": id_col, "query": query}
        key = {"model": model, "owner": owner}
        return self._query("predict", PREDICTION_COLUMNS, level=level, **key, **rows)

    @refuse_former_call("madlib_evaluate", ("model_table", "test_table", "output_table"))
    def evaluate(
        self,
        model: str,
        source: str | None = None,
        group_by: Sequence[str] | str | None = None,
        *,
        query: str | None = None,
        level: float = USUAL_LEVEL,
    ) -> Rows:
        """Return metrics of a model on the rows of a table (cerebro.evaluate).

        Args:
            group_by: a column, or several; the metrics of each group of rows are returned, too.
            query: a query in place of a table.
            level: level of the intervals whose coverage is measured.
        """
        groups = None
        if isinstance(group_by, str):
            group_by = [group_by]
        if group_by is not None:
            groups = _list_columns(group_by)
        rows = {"source": source, "query": query}
        arguments = {"model": model, "group_by": groups, "level": level}
        return self._query("evaluate", EVALUATION_COLUMNS, **arguments, **rows)

    def importance(
        self, model: str, source: str | None = None, *, query: str | None = None
    ) -> Rows:
        """Return the permutation importance of each column on rows of a table (cerebro.importance).

        The importance of a column is the loss in the metric when its values are shuffled.

        Args:
            query: a query in place of a table.
        """
        rows = {"source": source, "query": query}
        return self._query("importance", IMPORTANCE_COLUMNS, model=model, **rows)

    def attribution(
        self,
        model: str,
        source: str | None = None,
        id_col: str | None = None,
        *,
        query: str | None = None,
    ) -> Rows:
        """Return the contribution of each column to each prediction (cerebro.attribution).

        Args:
            query: a query in place of a table.
        """
        rows = {"source": source, "id_col": id_col, "query": query}
        return self._query("attribution", ATTRIBUTION_COLUMNS, model=model, **rows)

    def predict_row(
        self,
        model: str,
        record: Mapping[str, Any],
        *,
        owner: str | None = None,
        level: float = USUAL_LEVEL,
    ) -> dict[str, Any]:
        """Return the prediction of a model for one row (cerebro.predict_row).

        Args:
            record: values by column.
            level: probability of the interval of a regression.
        """
        text = json.dumps(record, default=str)
        arguments = {"model": model, "record": text, "owner": owner}
        prediction = self._sql.call_cerebro("predict_row", level=level, **arguments)
        return dict(prediction)

    def drift(self, model: str, source: str | None = None, *, query: str | None = None) -> Rows:
        """Compare the columns of a table with the training data of a model (cerebro.drift).

        Args:
            query: a query in place of a table.
        """
        rows = {"source": source, "query": query}
        return self._query("drift", DRIFT_COLUMNS, model=model, **rows)

    def verify(self, model: str, version: int | str | None = None) -> Rows:
        """Train a version again and compare the result bit by bit (cerebro.verify)."""
        version_name = None
        if version is not None:
            version_name = str(version)
        return self._query("verify", FINDING_COLUMNS, model=model, version=version_name)

    def refresh(
        self,
        model: str,
        since: str | None = None,
        *,
        epochs: int | None = None,
        budget: timedelta | None = None,
    ) -> Rows:
        """Train a model on the current rows of its source (cerebro.refresh).

        Args:
            epochs: epochs to train, also if no rows are new.

        Returns:
            The new version; no record if the source has no new rows and `epochs` is None.
        """
        arguments = {"model": model, "since": since, "epochs": epochs, "budget": budget}
        return self._query("refresh", REFRESH_COLUMNS, **arguments)

    def export_model(
        self, model: str, path: str | Path, *, version: int | None = None, force: bool = False
    ) -> list[Path]:
        """Write one file with all that predictions need, for `import_model` (cerebro.export_model).

        Args:
            version: a version by its number; the deployed one by default.
            force: overwrite the file.
        """
        file = Path(path)
        check_free([file], force)
        exported = self._sql.call_cerebro("export_model", model=model, version=version)
        with stage_files(file.parent) as staging:
            staged = staging / file.name
            staged.write_bytes(exported)
        return [file]

    def import_model(self, path: str | Path, name: str | None = None) -> int:
        """Add the version in a file to a model; return its number (cerebro.import_model).

        Args:
            name: the name of the model; that in the file by default.
        """
        file = Path(path)
        if not file.is_file():
            raise UndefinedObject(
                f"{file} is not a file", hint="Name a file that export_model has written."
            )
        data = file.read_bytes()
        version = self._sql.call_cerebro("import_model", exported=data, model=name)
        return int(version)

    def deploy(self, model: str, version: int | str = "best") -> int:
        """Deploy a version of a model and return its number (cerebro.deploy)."""
        deployed = self._sql.call_cerebro("deploy", model=model, version=str(version))
        return int(deployed)

    def register(self, model: str, table: str, mst_key: int | None = None) -> int:
        """Register a model of a model table by name; return its version (cerebro.register)."""
        version = self._sql.call_cerebro(
            "register", model=model, model_table=table, mst_key=mst_key
        )
        return int(version)

    def drop_model(self, model: str) -> None:
        """Remove a model with all its versions (cerebro.drop_model)."""
        self._sql.call_cerebro("drop_model", model=model)

    def grant_predict(self, model: str, role: str) -> None:
        """Allow a role to predict with a model, but not to read it (cerebro.grant_predict).

        Args:
            model: a model by name, or a table, for all its models.
        """
        self._sql.call_cerebro("grant_predict", model=model, role=role)

    def revoke_predict(self, model: str, role: str) -> None:
        """Revoke a privilege that grant_predict granted (cerebro.revoke_predict)."""
        self._sql.call_cerebro("revoke_predict", model=model, role=role)

    def _query(self, function: str, columns: Sequence[str], /, **arguments: object) -> Rows:
        rows = self._sql.query_cerebro(function, **arguments)
        return name_columns(rows, columns)


def _list_columns(names: Sequence[str]) -> str:
    """Return a list of columns as SQL writes it.

    >>> print(_list_columns(["Age", 'Od"d']))
    "Age", "Od""d"
    """
    columns = []
    for name in names:
        doubled = name.replace('"', '""')
        columns.append(f'"{doubled}"')
    return ", ".join(columns)
