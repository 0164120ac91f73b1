"""The contenders, and an attempt of a contender, which is a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench import bench_server, measure
from bench.contenders import Interpreter, find_error
from bench.measure import Usage
from bench.quality.task import Answer, Task, read_answer, write_task
from bench.real_tables import RealTable
from bench.rivals import RIVALS
from bench.seeds import environments

OURS = "ours"
MEDIUM = "AutoGluon medium"
BEST = "AutoGluon best"
FLAML = "FLAML"
LIGHTGBM = "LightGBM"
MLP = "MLP"
BOOSTING = "boosting"
SECONDS_BEYOND = 600.0
TIMES_BEYOND = 4
"""A contender is stopped when it has taken so many times its seconds, and as many more."""


@dataclass(frozen=True)
class Contender:
    """A way to learn from a table: a module, run as a process."""

    name: str
    module: str
    environment: str = ""  # the name of its virtual environment; none for that of this project


CONTENDERS: Mapping[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(OURS, "bench.quality.ours"),
        Contender(MEDIUM, "bench.quality.autogluon_fit", "autogluon"),
        Contender(BEST, "bench.quality.autogluon_fit", "autogluon"),
        Contender(FLAML, "bench.quality.flaml_fit", "flaml"),
        Contender(LIGHTGBM, "bench.quality.lightgbm_fit"),
        Contender(BOOSTING, "bench.quality.pipelines"),
        Contender(MLP, "bench.quality.pipelines"),
    )
}
KEYS: Mapping[str, str] = {
    "ours": OURS,
    "medium": MEDIUM,
    "best": BEST,
    "flaml": FLAML,
    "lightgbm": LIGHTGBM,
    "boosting": BOOSTING,
    "mlp": MLP,
}
"""The names of contenders by what a command line calls them."""
assert {*KEYS.values()} == {*CONTENDERS} and {*RIVALS} < {*CONTENDERS}


class Attempt(NamedTuple):
    """The answer of a contender, or the reason why there is none."""

    answer: Answer | None
    usage: Usage
    reason: str = ""


def list_contenders(table: RealTable, names: list[str]) -> list[Contender]:
    """Return the contenders of a table.

    Those of images, series and texts are ours and the usual pipeline, whatever is named beside.
    """
    if table.rivals is RIVALS:
        return [CONTENDERS[name] for name in names]
    pipelines = [Contender(name, "bench.quality.pipelines") for name in table.rivals]
    return [CONTENDERS[OURS], *pipelines]


def run_attempt(contender: Contender, task: Task, folder: Path, servers: list[int]) -> Attempt:
    """Let a contender do a task in a folder of its own.

    Args:
        servers: pids of servers that work for it.
    """
    task_path = folder / "task"
    answer_path = folder / "answer"
    write_task(task, task_path)
    interpreter = Interpreter([sys.executable], bench_server.make_environment())
    if contender.environment:
        interpreter = environments.find_interpreter(contender.environment)
    command = [*interpreter.command, "-m", contender.module, str(task_path), str(answer_path)]
    limit = TIMES_BEYOND * task.seconds + SECONDS_BEYOND
    outcome = measure.run(command, interpreter.environment, servers, limit, folder)
    if outcome.status == 0 and answer_path.exists():
        return Attempt(read_answer(answer_path), outcome.usage)
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    reason = find_error(lines) or f"exit status {outcome.status}"
    if outcome.status is None:
        reason = f"stopped after {limit:.0f} s"
    return Attempt(None, outcome.usage, reason)
