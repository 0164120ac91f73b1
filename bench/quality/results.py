"""Results of attempts, which a file gathers line by line as JSON, so that a bench can pause."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Key(NamedTuple):
    """The conditions of an attempt; a finished one is not made again."""

    table: str
    contender: str
    seed: int
    seconds: float
    busy: int  # processes that computed something else meanwhile


@dataclass(frozen=True, kw_only=True)
class Result:
    """The score of a contender on a table, and its costs."""

    table: str
    contender: str
    seed: int
    seconds: float
    busy: int = 0
    rows: int  # of the whole table
    train_rows: int
    test_rows: int
    score: float  # the accuracy, or the negative RMSE: more is better
    reason: str = ""  # why there is no model; then the best constant has been scored
    train_seconds: float | None = None
    predict_seconds: float | None = None
    wall_seconds: float = 0.0  # with the start of the process, its imports and the load of rows
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    cores: int = 0
    commit: str = ""  # of this project
    date: str = ""
    more: dict[str, Any] = field(default_factory=dict)  # values of this contender only

    @property
    def key(self) -> Key:
        """The conditions of the attempt."""
        return Key(self.table, self.contender, self.seed, self.seconds, self.busy)

    @property
    def overrun(self) -> float | None:
        """The time beyond the budget, as a share of it; None without a model."""
        if self.train_seconds is None:
            return None
        return self.train_seconds / self.seconds - 1


def append_result(path: Path, result: Result) -> None:
    """Add a line to the file, which begins with the first one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(result), sort_keys=True) + "\n")


def read_results(path: Path) -> dict[Key, Result]:
    """Return the newest result of all conditions; none if the file is missing.

    A last line that an interrupted bench left incomplete is ignored.
    """
    if not path.exists():
        return {}
    text = path.read_text()
    complete = text[: text.rfind("\n") + 1]
    results = (Result(**json.loads(line)) for line in complete.splitlines())
    return {result.key: result for result in results}


def group_by_contender(results: Iterable[Result]) -> Mapping[str, dict[int, Result]]:
    """Return results of one table by contender and seed."""
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        groups.setdefault(result.contender, {})[result.seed] = result
    return groups
