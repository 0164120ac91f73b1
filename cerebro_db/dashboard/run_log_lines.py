"""Describe the commands for a run and the decisions of its search, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from cerebro_db.dashboard.base_views import Variables, format_field
from cerebro_db.dashboard.metric_names import RunMetrics
from cerebro_db.dashboard.queries import ACT, DECISION, Reader, Row
from cerebro_db.records import Parameter

MAX_LOG_LINES = 100
"""Largest number of commands, and of decisions."""


@dataclass(frozen=True)
class LogLine:
    """A command of a person, or a decision of a search."""

    time: datetime
    actor: str
    action: str
    mst_key: int | None
    change: str  # the values that differ from those before
    status: str
    reason: str


def describe_log(reader: Reader, run: int) -> Variables:
    """Return the template variables for the commands and decisions of a run, newest first."""
    reader.read_run(run)  # raises UndefinedObject if the run does not exist
    acts = reader.read_newest(ACT.c.act_id, run, MAX_LOG_LINES)
    decisions = reader.read_newest(DECISION.c.decision_no, run, MAX_LOG_LINES)
    metrics = reader.read_run_metrics(run)
    params: Mapping[int, Mapping[str, Any]] = {}
    if any(act["change"].get("params") for act in acts):
        params = collect_params(reader.parameters(run))
    lines = [
        *(_describe_act(act, params) for act in acts),
        *(_describe_decision(decision, metrics) for decision in decisions),
    ]
    lines.sort(key=lambda line: line.time, reverse=True)
    days = groupby(lines, key=lambda line: f"{line.time.astimezone():%A, %Y-%m-%d, %Z}")
    return {"days": [(day, list(group)) for day, group in days]}


def collect_params(parameters: Sequence[Parameter]) -> dict[int, dict[str, Any]]:
    """Return the parameters of each configuration by their names."""
    params: dict[int, dict[str, Any]] = {}
    for parameter in parameters:
        params.setdefault(parameter.mst_key, {})[parameter.name] = parameter.value
    return params


def _describe_act(act: Row, params: Mapping[int, Mapping[str, Any]]) -> LogLine:
    return LogLine(
        time=act["time"],
        actor=act["actor"],
        action=act["action"],
        mst_key=act["mst_key"],
        change=describe_change(act["change"], params.get(act["mst_key"], {})),
        status=act["status"],
        reason=act["reason"] or "",
    )


def _describe_decision(decision: Row, metrics: RunMetrics) -> LogLine:
    return LogLine(
        time=decision["time"],
        actor=decision["rule"],
        action=decision["action"],
        mst_key=decision["mst_key"],
        change="",
        status="",
        reason=metrics.rename_reason(decision["reason"] or ""),
    )


def describe_change(change: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Return what a command changes; of parameters only those that differ from `params`.

    >>> describe_change({"warm": True, "params": {"lr": 0.1, "depth": 3}}, {"lr": 0.2, "depth": 3})
    'warm=true, lr=0.1'
    """
    values: dict[str, Any] = {}
    for name, value in change.items():
        if name == "template":
            continue
        if name != "params" or not isinstance(value, Mapping):
            values[name] = value
            continue
        for parameter, new_value in value.items():
            if parameter not in params or params[parameter] != new_value:
                values[parameter] = new_value
    return ", ".join(f"{name}={format_field(value)}" for name, value in values.items())
