"""The pages of models by name: versions, what they learned, how good they are elsewhere, a form
that predicts.
"""

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

from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.forms import fields, read_json, text
from cerebro_db.dashboard.queries import Row
from cerebro_db.errors import InvalidParameter

CHOICES = 100
"""So many categories of a column are offered."""
AWAITED = timedelta(minutes=2)
"""So long after a version its importances may still come."""
CLASSES = 30
"""A confusion matrix has at most so many rows."""


@dataclass(frozen=True)
class Input:
    """A field of the form that predicts a row."""

    name: str
    kind: str
    choices: Sequence[str] = ()


class ModelPages:
    """The pages of the models that the role may use."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/models", self.models),
            Route("/model", self.model),
            Route("/model/columns", self.columns),
            Route("/model/deploy", self.deploy, methods=["POST"]),
            Route("/model/predict", self.predict, methods=["POST"]),
            Route("/model/evaluate", self.evaluate, methods=["POST"]),
            Route("/model/drift", self.drift, methods=["POST"]),
        ]

    async def models(self, request: Request) -> Response:
        """All of them."""
        role, models = await run_in_threadpool(lambda: (self._reader.role(), self._reader.models()))
        return self._site.page("models.html", role=role, models=models, address=address)

    async def model(self, request: Request) -> Response:
        """One of them."""
        return self._site.page(
            "model.html", **await run_in_threadpool(self._facts, *_named(request))
        )

    def _facts(self, owner: str, name: str) -> dict[str, Any]:
        reader, model = self._reader, self._reader.model(owner, name)
        tables, learned = reader.tables(), self._learned(model)
        outline = reader.granted(owner, name) if not learned["features"] else None
        return {
            **learned,
            "role": reader.role(),
            "versions": reader.versions(owner, name),
            "groups": reader.groups(owner, name, model["version"]) if model["version"] else [],
            "inputs": _granted_inputs(outline) if outline else _inputs(learned["features"]),
            "tables": tables,
            "source": next(
                (row["name"] for row in tables if row["quoted"] == model["source"]), None
            ),
            "named": lambda: _hidden(owner, name),
        }

    async def columns(self, request: Request) -> Response:
        """What the version that predicts has learned of each column, read again while its
        importances are computed.
        """
        owner, name = _named(request)
        found = await run_in_threadpool(lambda: self._learned(self._reader.model(owner, name)))
        return self._site.page("features.html", **found)

    def _learned(self, model: Row) -> dict[str, Any]:
        """What was learned of columns; importances come some time after a version."""
        owner, name, version = model["owner"], model["model"], model["version"]
        features = self._reader.features(owner, name, version) if version else []
        known = [row["importance"] for row in features if row["importance"] is not None]
        deployed = model["deployed_at"]
        recent = deployed is not None and datetime.now(UTC) - deployed < AWAITED
        return {
            "model": model,
            "features": features,
            "largest": max(known, default=0) or 1,
            "awaited": recent and not known,
            "place": urlencode({"owner": owner, "model": name}),
        }

    async def deploy(self, request: Request) -> Response:
        """Lets another version predict."""
        form = await fields(request)
        name = text(form, "model")
        version, _ = await run_in_threadpool(
            self._site.acts.ask, lambda session: session.deploy(name, text(form, "version"))
        )
        return self._site.page(
            "deployed.html", version=version, address=address(form.get("owner", ""), name)
        )

    async def predict(self, request: Request) -> Response:
        """What a model says of the row that was typed."""
        form = await fields(request)
        record = {name[6:]: _value(form, name[6:]) for name in form if name.startswith("value.")}
        found, said = await run_in_threadpool(
            self._site.work.ask,
            lambda session: session.predict_row(
                text(form, "model"), record, owner=text(form, "owner")
            ),
        )
        return self._site.page(
            "predicted.html", found=found, said=said, target=form.get("target", "It")
        )

    async def evaluate(self, request: Request) -> Response:
        """How good a model is over the rows of a table."""
        form = await fields(request)
        source = text(form, "source")
        rows, said = await run_in_threadpool(
            self._site.work.ask, lambda session: session.evaluation(text(form, "model"), source)
        )
        return self._site.page("evaluated.html", source=source, said=said, **_judged(rows))

    async def drift(self, request: Request) -> Response:
        """How far the rows of a table lie from those of training."""
        form = await fields(request)
        drift, said = await run_in_threadpool(
            self._site.work.ask,
            lambda session: session.drift(text(form, "model"), text(form, "source")),
        )
        return self._site.page("drift.html", drift=drift, said=said)


def _named(request: Request) -> tuple[str, str]:
    """The owner and the name of the model that an address is about."""
    return request.query_params.get("owner", ""), request.query_params.get("model", "")


def address(owner: str, model: str) -> str:
    """Where a model's page is.

    >>> address("ann", "a/b&c")
    '/model?owner=ann&model=a%2Fb%26c'
    """
    return f"/model?{urlencode({'owner': owner, 'model': model})}"


def _hidden(owner: str, model: str) -> Markup:
    field = Markup('<input type="hidden" name="{}" value="{}">')
    return field.format("owner", owner) + field.format("model", model)


def _inputs(features: Sequence[Row]) -> list[Input]:
    """A field for each column that a version has learned from, with its categories to choose
    from.
    """
    used = (row for row in features if row["kind"] != "left out")
    return [
        Input(row["column"], row["kind"], _choices(row["constants"].get("values"))) for row in used
    ]


def _choices(values: object) -> list[str]:
    return [str(value) for value in values[:CHOICES]] if isinstance(values, list) else []


def _granted_inputs(outline: Mapping[str, Any]) -> list[Input]:
    """The same of a model of another role, of which no values are told."""
    return [
        Input(each["column"], each["kind"])
        for each in outline["recipe"]["features"]
        if each["kind"] != "left out"
    ]


def _value(form: Mapping[str, str], name: str) -> object:
    """What was typed for a column: nothing is NULL."""
    typed = form[f"value.{name}"]
    if not typed:
        return None
    if form.get(f"kind.{name}") == "text":
        return typed
    try:
        return read_json(typed)
    except ValueError:
        raise InvalidParameter(
            f"{typed[:80]!r} is typed for {name}, and a number or an array is expected"
        ) from None


def _judged(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metrics of all rows, and of a classification with not too many classes which was taken for
    which.
    """
    whole = [row for row in rows if row["group"] is None]
    confusion = {
        (row["class"], row["predicted"]): row for row in whole if row["metric"] == "confusion"
    }
    classes = list(dict.fromkeys(name for pair in confusion for name in pair))
    metrics = {row["metric"]: row["value"] for row in whole if row["class"] is None}
    counts = [row["rows"] for row in whole if row["class"] is None]
    few = classes if len(classes) <= CLASSES else []
    return {
        "metrics": metrics,
        "rows": max(counts, default=0),
        "classes": few,
        "confusion": confusion,
    }
