"""The pages of models by name: versions, columns, evaluation, drift, and a form that predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site, Variables
from cerebro_db.dashboard.forms import Form, read_form, read_json, read_text
from cerebro_db.dashboard.queries import Row
from cerebro_db.dashboard.sources import read_tables
from cerebro_db.dashboard.train_arguments import write_text
from cerebro_db.errors import InvalidParameter

MAX_CHOICES = 100
"""Largest number of categories that a field of the form offers."""
IMPORTANCE_TIMEOUT = timedelta(minutes=2)
"""Time after a deployment in which importances may still be stored."""
MAX_CLASSES = 30
"""Largest number of classes in a confusion matrix."""
VALUE_PREFIX = "value."


@dataclass(frozen=True)
class Input:
    """A field of the form that predicts a row."""

    name: str
    kind: str
    choices: Sequence[str]  # the known values
    has_all_choices: bool  # the known values are not more than MAX_CHOICES


def write_importance_call(model: str, source: str | None) -> str:
    """Return the SQL that computes the importance of columns; "" unless the source is a table.

    >>> print(write_importance_call("it's", '"public"."t"'))
    SELECT * FROM cerebro.importance('it''s', '"public"."t"');
    >>> write_importance_call("m", "(SELECT 1)")
    ''
    """
    if source is None or not source.startswith('"'):
        return ""
    return f"SELECT * FROM cerebro.importance({write_text(model)}, {write_text(source)});"


class ModelPages:
    """The pages of the models that the role may use."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader

    def list_routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/models", self.show_models),
            Route("/model", self.show_model),
            Route("/model/columns", self.show_columns),
            Route("/model/deploy", self.deploy, methods=["POST"]),
            Route("/model/predict", self.predict, methods=["POST"]),
            Route("/model/evaluate", self.evaluate, methods=["POST"]),
            Route("/model/drift", self.measure_drift, methods=["POST"]),
        ]

    async def show_models(self, request: Request) -> Response:
        """Show the list of models."""
        role = await run_in_threadpool(self._reader.read_role)
        models = await run_in_threadpool(self._reader.read_models)
        return self._site.render("models.html", role=role, models=models, make_address=make_address)

    async def show_model(self, request: Request) -> Response:
        """Show one model."""
        variables = await run_in_threadpool(self._describe_model, *_read_model_key(request))
        return self._site.render("model.html", **variables)

    def _describe_model(self, owner: str, name: str) -> Variables:
        reader = self._reader
        model = reader.read_model(owner, name)
        tables = read_tables(reader)
        columns = self._describe_columns(model)
        features = columns["features"] or reader.read_granted_features(owner, name)
        version = model["version"]
        sources = (table["name"] for table in tables if table["quoted"] == model["source"])
        return {
            **columns,
            "role": reader.read_role(),
            "versions": reader.read_versions(owner, name),
            "groups": reader.read_groups(owner, name, version) if version else [],
            "members": reader.read_members(owner, name, version) if version else [],
            "inputs": list_inputs(features),
            "tables": tables,
            "source": next(sources, None),
            "make_hidden_fields": lambda: _make_hidden_fields(owner, name),
        }

    async def show_columns(self, request: Request) -> Response:
        """Show the columns of the deployed version; the page repeats this for importances."""
        owner, name = _read_model_key(request)
        columns = await run_in_threadpool(
            lambda: self._describe_columns(self._reader.read_model(owner, name))
        )
        return self._site.render("features.html", **columns)

    def _describe_columns(self, model: Row) -> Variables:
        """Return the features of the deployed version; their importances may be stored later."""
        owner = model["owner"]
        name = model["model"]
        version = model["version"]
        features = self._reader.read_features(owner, name, version) if version else []
        features = sort_features(features)
        importances = [row["importance"] for row in features if row["importance"] is not None]
        deployed_at = model["deployed_at"]
        is_new = deployed_at is not None and datetime.now(UTC) - deployed_at < IMPORTANCE_TIMEOUT
        return {
            "model": model,
            "features": features,
            "largest_importance": max(importances, default=0) or 1,
            "has_importances": bool(importances),
            "importance_call": write_importance_call(name, model["source"]),
            "is_computing": is_new and not importances,
            "query": urlencode({"owner": owner, "model": name}),
        }

    async def deploy(self, request: Request) -> Response:
        """Deploy another version."""
        form = await read_form(request)
        name = read_text(form, "model")
        version, _ = await run_in_threadpool(
            self._site.quick_session.call,
            lambda session: session.deploy(name, read_text(form, "version")),
        )
        address = make_address(form.get("owner", ""), name)
        return self._site.render("deployed.html", version=version, address=address)

    async def predict(self, request: Request) -> Response:
        """Show the prediction for the typed row."""
        form = await read_form(request)
        columns = [
            field.removeprefix(VALUE_PREFIX) for field in form if field.startswith(VALUE_PREFIX)
        ]
        row = {column: _read_value(form, column) for column in columns}
        prediction, notices = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.predict_row(
                read_text(form, "model"), row, owner=read_text(form, "owner")
            ),
        )
        target = form.get("target", "It")
        return self._site.render(
            "predicted.html", prediction=prediction, notices=notices, target=target
        )

    async def evaluate(self, request: Request) -> Response:
        """Show the metrics of a model on the rows of a table."""
        form = await read_form(request)
        source = read_text(form, "source")
        rows, notices = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.evaluate(read_text(form, "model"), source),
        )
        return self._site.render(
            "evaluated.html", source=source, notices=notices, **_describe_evaluation(rows)
        )

    async def measure_drift(self, request: Request) -> Response:
        """Show the drift of the rows of a table from those of the training."""
        form = await read_form(request)
        drift, notices = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.drift(read_text(form, "model"), read_text(form, "source")),
        )
        return self._site.render("drift.html", drift=drift, notices=notices)


def _read_model_key(request: Request) -> tuple[str, str]:
    """Return the owner and the name of the model in an address."""
    return request.query_params.get("owner", ""), request.query_params.get("model", "")


def make_address(owner: str, model: str) -> str:
    """Return the address of a model's page.

    >>> make_address("ann", "a/b&c")
    '/model?owner=ann&model=a%2Fb%26c'
    """
    return f"/model?{urlencode({'owner': owner, 'model': model})}"


def _make_hidden_fields(owner: str, model: str) -> Markup:
    field = Markup('<input type="hidden" name="{}" value="{}">')
    return field.format("owner", owner) + field.format("model", model)


def sort_features(features: Sequence[Row]) -> list[Row]:
    """Return features, the most important one first, and last those that are left out."""

    def make_key(feature: Row) -> tuple[bool, bool, float]:
        importance = feature.get("importance")
        return (feature["kind"] == "left out", importance is None, -(importance or 0.0))

    return sorted(features, key=make_key)


def list_inputs(features: Sequence[Row]) -> list[Input]:
    """Return a field for each column that a version uses, with its categories.

    Those of another role's model are not revealed.
    """
    return [_make_input(row) for row in features if row["kind"] != "left out"]


def _make_input(feature: Row) -> Input:
    constants = feature.get("constants") or {}
    values = constants.get("values")
    if not isinstance(values, list):
        values = []
    texts = [str(value) for value in values]
    return Input(
        name=feature["column_name"],
        kind=feature["kind"],
        choices=texts[:MAX_CHOICES],
        has_all_choices=0 < len(texts) <= MAX_CHOICES,
    )


def _read_value(form: Form, column: str) -> object:
    """Return the typed value of a column; an empty field is NULL."""
    text = form[VALUE_PREFIX + column]
    if not text:
        return None
    if form.get(f"kind.{column}") == "text":
        return text
    try:
        return read_json(text)
    except ValueError:
        raise InvalidParameter(
            f"{text[:80]!r} is typed for {column}, and a number or an array is expected"
        ) from None


def _describe_evaluation(rows: Sequence[Mapping[str, Any]]) -> Variables:
    """Return the metrics of all rows, and the confusion matrix unless it has too many classes."""
    all_rows = [row for row in rows if row["group_values"] is None]
    confusion = {
        (row["class"], row["predicted"]): row for row in all_rows if row["metric"] == "confusion"
    }
    classes = list(dict.fromkeys(name for pair in confusion for name in pair))
    overall = [row for row in all_rows if row["class"] is None]
    return {
        "metrics": {row["metric"]: row["value"] for row in overall},
        "rows": max((row["rows"] for row in overall), default=0),
        "classes": classes if len(classes) <= MAX_CLASSES else [],
        "confusion": confusion,
    }
