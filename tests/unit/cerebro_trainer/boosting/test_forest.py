"""States of trees that are none: refused, or harmless, and never a crash of LightGBM."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tree_tables import make_grown, make_program

from cerebro_trainer.boosting.model.errors import TreesError
from cerebro_trainer.boosting.model.forest import Forest, list_variables
from cerebro_trainer.boosting.program import read_spec
from cerebro_trainer.wire.frames import Array

PLPY = Path(__file__).parents[4] / "plpy"
SUPPORT = Path(__file__).parents[3] / "support"
SPEC = read_spec(make_program(3))
VARIABLES = list_variables(SPEC)
NAMES = [variable.name for variable in VARIABLES]
DRAWS = 250
USE_ACCEPTED = """
import io, sys
sys.path[:0] = {path!r}
import numpy as np
from tree_tables import make_buffer, make_program, COLUMNS
from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.boosting.loaded_model import LoadedModel
from cerebro_trainer.boosting.scoring import score_rows
learner = BoostedTrees(make_program(3), 1)
buffer = make_buffer(40, 3, seed=7)
matrix = learner._read_matrix(buffer)
count = 0
with np.load(io.BytesIO(sys.stdin.buffer.read())) as file:
    states = dict(file)
while f"{{count}}/0" in states:
    learner.write([states[f"{{count}}/{{position}}"] for position in range({variables})])
    loaded = LoadedModel(learner.spec, learner.forest, 1)
    scores = loaded.score(matrix)
    assert scores.tobytes() == score_rows(learner.forest, matrix).tobytes()
    learner.evaluate(buffer)
    learner.attribute(buffer.inputs, COLUMNS, np.ones((buffer.rows, learner.spec.units)))
    count += 1
print(count)
"""
"""Every use of an accepted state, in a process that LightGBM may crash or hang."""


@cache
def read_grown() -> tuple[Array, ...]:
    learner, _ = make_grown(3)
    return tuple(learner.read())


def change(name: str, index: Any, value: Any) -> list[Array]:
    """The arrays of grown trees with another value."""
    arrays = [array.copy() for array in read_grown()]
    arrays[NAMES.index(name)][index] = value
    return arrays


def check(arrays: list[Array]) -> Forest:
    return Forest.from_arrays(SPEC, arrays)


def number_node() -> tuple[int, int]:
    """A node of the first trees that splits numbers, and is not a root."""
    decisions = read_grown()[NAMES.index("decisions")]
    leaves = read_grown()[NAMES.index("leaves")]
    return next(
        (tree, node)
        for tree, node in np.ndindex(*decisions.shape)
        if node and node < leaves[tree] - 1 and not decisions[tree, node] & 1
    )


FIRST = (0, 0)
DAMAGES: dict[str, Callable[[], list[Array]]] = {
    "child far behind": lambda: change("left", FIRST, 9999),
    "largest child": lambda: change("right", FIRST, 32767),
    "leaf far behind": lambda: change("left", FIRST, -9999),
    "smallest child": lambda: change("left", FIRST, -32768),
    "child to itself": lambda: change("left", FIRST, 0),
    "all children 0": lambda: change("left", slice(None), 0),
    "child before its parent": lambda: change("left", number_node(), 0),
    "two parents": lambda: change("left", FIRST, read_grown()[NAMES.index("right")][0, 0]),
    "missing column": lambda: change("features", FIRST, 65535),
    "column behind the last": lambda: change("features", FIRST, SPEC.inputs.columns),
    "no leaves": lambda: change("leaves", 0, 0),
    "too many leaves": lambda: change("leaves", 0, 65535),
    "fewer leaves than children": lambda: change("leaves", 0, 2),
    "infinite leaf": lambda: change("values", FIRST, np.inf),
    "leaf that is no number": lambda: change("values", FIRST, np.nan),
    "infinite threshold": lambda: change("thresholds", number_node(), np.inf),
    "threshold that is no number": lambda: change("thresholds", number_node(), np.nan),
    "set of codes of numbers": lambda: change("decisions", number_node(), 1),
    "zero as missing": lambda: change("decisions", number_node(), 4),
    "all bits of a decision": lambda: change("decisions", number_node(), 255),
    "negative rows": lambda: change("counts", FIRST, -1),
    "too many rows": lambda: change("counts", (0, slice(None)), 2**31 - 1),
    "rounds below 0": lambda: change("progress", 0, -1),
    "rounds without room": lambda: change("progress", 0, 10**9),
    "huge rounds": lambda: change("progress", 0, 2**63 - 1),
    "rounds without growths": lambda: change("progress", 1, 0),
    "growths below 0": lambda: change("progress", 1, -5),
    "rounds of no trees": lambda: change("leaves", slice(4, None), 0),
    "infinite base": lambda: change("base", 1, np.inf),
    "base that is no number": lambda: change("base", 0, np.nan),
    "short array": lambda: [array[:-1] for array in read_grown()],
    "other type": lambda: [array.astype("f4") for array in read_grown()],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_would_crash_or_mislead_are_refused(damage: str) -> None:
    check([*read_grown()])
    with pytest.raises(TreesError) as caught:
        check(DAMAGES[damage]())
    assert caught.value.sqlstate == "XX001"


def draw_damage(generator: np.random.Generator) -> list[Array]:
    """Return arrays with one to three other values, mostly in parts that are read."""
    arrays = [array.copy() for array in read_grown()]
    for _ in range(generator.integers(1, 4)):
        array = arrays[generator.integers(len(arrays))]
        index = tuple(generator.integers(min(size, 6)) for size in array.shape)
        pool: list[float] = [0, 1, 2, 3, 5, 8, 9, 10, 255]
        if array.dtype.kind == "f":
            pool = [0.0, -0.0, 1e-35, -1e300, 1e300, 1e-310, np.nan, np.inf, -np.inf, 0.5]
        else:
            limits = np.iinfo(array.dtype)
            pool += [limits.max, limits.min, limits.max // 2]
            if limits.min < 0:
                pool += [-1, -2, -3, -6, -7]
            pool = [value for value in pool if limits.min <= value <= limits.max]
        array[index] = generator.choice(np.array(pool, array.dtype))
    return arrays


def test_accepted_arrays_neither_crash_nor_hang() -> None:
    """Whatever the checks accept, LightGBM and numpy score it with the same bits."""
    generator = np.random.default_rng(20)
    accepted: dict[str, Array] = {}
    count = 0
    for _ in range(DRAWS):
        arrays = draw_damage(generator)
        try:
            check(arrays)
        except TreesError:
            continue
        accepted |= {f"{count}/{position}": array for position, array in enumerate(arrays)}
        count += 1
    assert DRAWS / 10 < count < DRAWS * 9 / 10
    data = io.BytesIO()
    np.savez(data, **accepted)  # type: ignore[arg-type]
    code = USE_ACCEPTED.format(path=[str(PLPY), str(SUPPORT)], variables=len(VARIABLES))
    process = subprocess.run(
        [sys.executable, "-c", code],
        input=data.getvalue(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (process.returncode, process.stdout.decode()) == (0, f"{count}\n"), process.stderr


def test_digests_are_those_of_the_trees_so_far() -> None:
    whole = check([*read_grown()])
    part = check(change("progress", 0, 5))
    assert whole.digests[:6] == part.digests and len(set(whole.digests)) == 13
    other = check(change("values", (13, 0), 0.25))
    assert other.digests[:5] == whole.digests[:5] and other.digests[5] != whole.digests[5]
