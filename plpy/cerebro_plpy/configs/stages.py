"""The stages of a search, each of which is one run over many configurations; what came out decides the next one.

A search is a generator: it yields stages, and is sent the losses of the configurations that did not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.grid import ConfigRow, collapse
from cerebro_plpy.configs.hyperopt import Hyperopt
from cerebro_plpy.configs.points import Point, config_row
from cerebro_plpy.configs.space import Space
from cerebro_plpy.hopping.hyperband import Hyperband, Round, survivors
from cerebro_plpy.records import dataclass, field

Losses = Mapping[int, float]
Trials = Sequence[Mapping[str, Any]]  # {"point": …, "loss": number or None}
Suggest = Callable[[Trials, int], Sequence[Point]]


@dataclass(frozen=True)
class Stage:
    """What is trained together: configurations by mst_key, and for how many iterations more.

    `title` says in the log which stage it is, `message` tells the caller; `last` that its configurations are trained
    to their end in it; `places` are Hyperband's bracket and round of each configuration.
    """

    title: str
    message: str
    iterations: int
    rows: Mapping[int, ConfigRow]
    last: bool
    places: Mapping[int, tuple[int, int]] = field(default_factory=dict)


Search = Generator[Stage, Losses, None]


def hyperband(method: Hyperband, rows: Sequence[ConfigRow]) -> Search:
    """Diagonal after diagonal: those that go on, and a bracket that begins."""
    brackets, alive = dict(method.brackets()), dict[int, list[int]]()
    diagonals = method.diagonals()
    losses: Losses = {}
    for number, diagonal in enumerate(diagonals, 1):
        for found in diagonal:
            begun = list(brackets[found.s])
            alive[found.s] = begun if found.i == 0 else survivors(losses, alive[found.s], found.configs)
        keys = {key: (found.s, found.i) for found in diagonal for key in alive[found.s]}
        losses = {}
        if keys:
            title = f"hyperband {number} of {len(diagonals)}"
            chosen = {key: rows[key - 1] for key in keys}
            message, last = _diagonal(diagonal, alive), number == len(diagonals)
            losses = yield Stage(title, message, diagonal[0].iterations, chosen, last, keys)


def _diagonal(rounds: Sequence[Round], alive: Mapping[int, Sequence[int]]) -> str:
    """MADlib's message."""
    told = ", ".join(f"{len(alive[r.s])} configs under bracket={r.s} & round={r.i}" for r in rounds if alive[r.s])
    return f"*** Diagonally evaluating {told} with {rounds[0].iterations} iterations ***"


def hyperopt(method: Hyperopt, segments: int, space: Space, suggest: Suggest) -> Search:
    """Batch after batch of suggestions, each of which knows the losses of all before; none is trained twice."""
    trials: list[dict[str, Any]] = []
    rows: list[ConfigRow] = []
    batches = method.batches(segments)
    for number, count in enumerate(batches, 1):
        points = suggest(trials, count)
        made = [config_row(space, point) for point in points]
        new = list(collapse(made, rows))
        chosen = {key: row for key, row in enumerate(new, len(rows) + 1)}
        rows += new
        title = f"hyperopt {number} of {len(batches)}"
        message = f"***Evaluating {len(new)} newly suggested model configurations***"
        losses = (yield Stage(title, message, method.num_iterations, chosen, last=True)) if chosen else {}
        by_row = {row: losses.get(key) for key, row in chosen.items()}
        trials += [{"point": point, "loss": by_row.get(row)} for point, row in zip(points, made)]
