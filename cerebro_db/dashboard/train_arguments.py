"""The fields of the form that trains a model, their help, and the arguments of cerebro.train."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from cerebro_db.dashboard.forms import Form, read_integer, read_text
from cerebro_db.nouns import count_nouns

BUDGETS = ((1, "a minute"), (5, "5 minutes"), (15, "15 minutes"), (60, "an hour"), (480, "8 hours"))
SEARCHES = (
    ("auto", "usual values, then values of earlier versions, then random ones"),
    ("asha", "start many configurations, continue the better ones"),
    ("tpe", "choose new values by the results of earlier ones"),
    ("hyperband", "mix many short trainings with a few long ones"),
    ("pbt", "clone the best configurations with other values while they train"),
    ("random", "random values"),
)
TASKS: Mapping[str, tuple[str, ...]] = {
    "classification": (
        "accuracy",
        "balanced_accuracy",
        "f1",
        "auc",
        "average_precision",
        "log_loss",
        "brier",
    ),
    "regression": ("rmse", "mae", "mape", "r2"),
}
"""The tasks, and the metrics of each."""
TEMPLATES = (
    "realmlp",
    "realmlp_simple",
    "tabm",
    "resnet",
    "transformer",
    "linear",
    "text",
    "series",
    "cnn",
    "boosting",
)
KINDS = ("number", "category", "moment", "text", "vector", "series", "image")
LEFT_OUT = "left out"
"""The choice for a column that is not learned from."""
INTEGER_OPTIONS = ("configs", "epochs", "seed", "ensemble")
TEXT_OPTIONS = ("model", "task", "metric", "split", "weight", "group_by")
KIND_PREFIX = "kind."
TEMPLATE_PREFIX = "template."
_ENTRY = re.compile(
    r"^  (\w+) [^\n]+, (?:required|default [^\n]+)\n((?:      [^\n]+\n?)+)", re.MULTILINE
)
_REFERENCE = re.compile(r"(?:[:;,] see|\. See) [\w .&-]*\w\.(?=\s|$)")


def read_options(form: Form) -> dict[str, Any]:
    """Return the arguments of cerebro.train; an empty field means the default.

    >>> read_options({"budget": "5", "search": "asha", "configs": "", "model": "m"})
    {'budget': datetime.timedelta(seconds=300), 'search': 'asha', 'model': 'm'}
    """
    kinds = _read_named_fields(form, KIND_PREFIX)
    left_out = [column for column, kind in kinds.items() if kind == LEFT_OUT]
    types = {column: kind for column, kind in kinds.items() if kind != LEFT_OUT}
    options: dict[str, Any] = {
        "budget": timedelta(minutes=read_integer(form, "budget")),
        "search": read_text(form, "search"),
        **{name: read_text(form, name) for name in TEXT_OPTIONS if form.get(name, "").strip()},
        **{name: read_integer(form, name) for name in INTEGER_OPTIONS if form.get(name)},
    }
    models = list(_read_named_fields(form, TEMPLATE_PREFIX))
    if models:
        options["models"] = models
    if types:
        options["types"] = types
    if left_out:
        options["columns"] = f"* except {', '.join(map(quote_identifier, left_out))}"
    return options


def _read_named_fields(form: Form, prefix: str) -> dict[str, str]:
    """Return the fields that are not empty, by their names behind a prefix."""
    return {
        field.removeprefix(prefix): value
        for field, value in form.items()
        if field.startswith(prefix) and value
    }


def quote_identifier(name: str) -> str:
    """Return a name as SQL reads it.

    >>> quote_identifier('a"b')
    '"a""b"'
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def write_call(source: str, target: str, options: Mapping[str, Any]) -> str:
    """Return the call in SQL that does the same as the form.

    >>> write_call("t", "it's", {"budget": timedelta(seconds=60), "models": ["cnn"], "seed": 1})
    "cerebro.train('t', 'it''s', budget => '60 seconds', models => '{cnn}', seed => 1)"
    """
    arguments = [write_text(source), write_text(target)]
    for name, value in options.items():
        arguments.append(f"{name} => {_write_value(value)}")
    return f"cerebro.train({', '.join(arguments)})"


def _write_value(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, timedelta):
        return write_text(count_nouns(round(value.total_seconds()), "second"))
    if isinstance(value, list):
        return write_text("{" + ",".join(value) + "}")
    if isinstance(value, dict):
        return write_text(json.dumps(value, ensure_ascii=False))
    return write_text(value)


def write_text(text: str) -> str:
    """Return a text as SQL reads it.

    >>> write_text("it's")
    "'it''s'"
    """
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def parse_argument_help(text: str) -> dict[str, str]:
    r"""Return the help of each argument in the text of `cerebro.help(function, 'usage')`.

    References to sections of the page are left out, and NULL is an empty field.

    >>> parse_argument_help("  seed bigint, default NULL\n      Seed of\n      all: see Seeds.\n")
    {'seed': 'Seed of all.'}
    """
    return {name: shorten_help(" ".join(lines.split())) for name, lines in _ENTRY.findall(text)}


def shorten_help(text: str) -> str:
    """Return the help of an argument for a field of a form.

    >>> shorten_help("A number: see Limits. NULL: 5. See Ties.")
    'A number. Empty: 5.'
    """
    return _REFERENCE.sub(".", text).replace("NULL:", "Empty:")
