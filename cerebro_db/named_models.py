"""Models by name: what is asked of them, once or before they are trained. One method per SQL
function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cerebro_db.arguments import TrainOptions, encode_options
from cerebro_db.options import accept_options
from cerebro_db.result_set import Records
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Unpack

PLAN = ("section", "name", "what", "why", "data")
DRIFT = ("column", "kind", "training_missing", "missing", "psi", "part", "new_categories")
FINDING = ("what", "ok", "detail")
REFRESHED = ("run_id", "version", "deployed", "metric", "value", "training_rows", "validation_rows")
PREDICTED = ("id", "prediction", "probability", "probabilities", "lower", "upper")

EVALUATED = ("group", "metric", "class", "predicted", "value", "rows")

IMPORTANCE = ("column_name", "importance", "importance_error", "metric", "rows")

ATTRIBUTION = ("id", "column_name", "value", "attribution", "gap", "patch")


class NamedModels:
    """Methods over models by name; `Session.train` makes them."""

    _sql: SqlSession

    @accept_options(TrainOptions)
    def plan(
        self, source: str, target: str, **options: Unpack[TrainOptions]
    ) -> Records[dict[str, Any]]:
        """What `train` would do with the same arguments, by section: cerebro.plan."""
        found = self._sql.query_cerebro(
            "plan", source=source, target=target, **encode_options(options)
        )
        return _named(found, PLAN)

    def predictions(
        self, model: str, source: str, id_col: str | None = None, *, owner: str | None = None
    ) -> Records[dict[str, Any]]:
        """What a model by name says of the raw rows of a table: cerebro.predict. All are held in
        memory here.

        An own model is meant, or that of `owner`, who has granted it.
        """
        found = self._sql.query_cerebro(
            "predict", model=model, source=source, id_col=id_col, owner=owner
        )
        return _named(found, PREDICTED)

    def evaluation(
        self, model: str, source: str, group_by: Sequence[str] | None = None
    ) -> Records[dict[str, Any]]:
        """How good a model by name is over the rows of a table, and of each group of them:
        cerebro.evaluate.
        """
        groups = None if group_by is None else list(group_by)
        return _named(
            self._sql.query_cerebro("evaluate", model=model, source=source, group_by=groups),
            EVALUATED,
        )

    def importance(self, model: str, source: str) -> Records[dict[str, Any]]:
        """How much worse a model by name gets where a column of the rows is shuffled:
        cerebro.importance.
        """
        return _named(self._sql.query_cerebro("importance", model=model, source=source), IMPORTANCE)

    def attribution(
        self, model: str, source: str, id_col: str | None = None
    ) -> Records[dict[str, Any]]:
        """What each column of each row of a table adds to its prediction by a model by name:
        cerebro.attribution.
        """
        found = self._sql.query_cerebro("attribution", model=model, source=source, id_col=id_col)
        return _named(found, ATTRIBUTION)

    def predict_row(
        self, model: str, record: Mapping[str, Any], *, owner: str | None = None
    ) -> dict[str, Any]:
        """What a model by name says of one row, by the names of its columns:
        cerebro.predict_row.
        """
        values = {"model": model, "record": json.dumps(record, default=str), "owner": owner}
        return dict(self._sql.call_cerebro("predict_row", **values))

    def drift(self, model: str, source: str) -> Records[dict[str, Any]]:
        """How far the columns of a table lie from what a model by name was trained on:
        cerebro.drift.
        """
        return _named(self._sql.query_cerebro("drift", model=model, source=source), DRIFT)

    def verify(self, model: str, version: int | str | None = None) -> Records[dict[str, Any]]:
        """Whether a version of a model by name comes out once more, to the bit: cerebro.verify."""
        wanted = None if version is None else str(version)
        return _named(self._sql.query_cerebro("verify", model=model, version=wanted), FINDING)

    def refresh(self, model: str, since: str | None = None) -> Records[dict[str, Any]]:
        """Trains a model by name on the rows of now; its new version, none where no rows are new:
        cerebro.refresh.
        """
        return _named(self._sql.query_cerebro("refresh", model=model, since=since), REFRESHED)

    def deploy(self, model: str, version: int | str = "best") -> int:
        """Lets a version of a model by name predict; its number: cerebro.deploy."""
        return int(self._sql.call_cerebro("deploy", model=model, version=str(version)))

    def register(self, model: str, table: str, mst_key: int | None = None) -> int:
        """Gives a model of a model table a name; the number of the version that it is:
        cerebro.register.
        """
        return int(
            self._sql.call_cerebro("register", model=model, table_name=table, mst_key=mst_key)
        )

    def drop_model(self, model: str) -> None:
        """Removes a model by name with all its versions: cerebro.drop_model."""
        self._sql.call_cerebro("drop_model", model=model)

    def grant_predict(self, model_table: str, role: str) -> None:
        """Lets a role predict with a model by name, or those of a table, and not read it:
        cerebro.grant_predict.
        """
        self._sql.call_cerebro("grant_predict", model_table=model_table, role=role)

    def revoke_predict(self, model_table: str, role: str) -> None:
        """Takes back what grant_predict gave to a role: cerebro.revoke_predict."""
        self._sql.call_cerebro("revoke_predict", model_table=model_table, role=role)


def _named(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> Records[dict[str, Any]]:
    return Records([dict(zip(columns, row, strict=True)) for row in rows], list(columns))
