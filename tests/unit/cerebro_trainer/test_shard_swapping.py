"""Swapping of shards: no change is lost between memory and file, and two shards are in flight."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.programs.sharded.shard_swapping import ShardSwapper, ShardTask
from cerebro_trainer.programs.sharded.shards import PieceCost, make_shards
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.state_file import StateFile
from cerebro_trainer.wire.frames import Array

SHAPES = ((3, 2), (), (5,), (2, 2), (7,))
PLANS = st.lists(st.tuples(st.sets(st.integers(0, 4), min_size=1), st.booleans()), max_size=8)


def layout() -> Layout:
    count = len(SHAPES)
    names = {"architecture": "a", "optimizer": "o", "framework": "f", "keras": "3"}
    return Layout(
        shapes=SHAPES,
        dtypes=("float32",) * count,
        weights=(),
        trainable=(),
        paths=(),
        frozen=(),
        **names,
    )


class Memory:
    """Variables that a swapper loads and unloads."""

    def __init__(self, file: StateFile) -> None:
        self.values: dict[int, Array] = {}
        self.swapper = ShardSwapper(file, self.values.__setitem__, self.values.pop)

    def add(self, positions: frozenset[int], changes: bool) -> float:
        """Add one to each loaded variable."""
        assert positions == self.values.keys()
        for position in positions if changes else ():
            self.values[position] = self.values[position] + 1
        return 1.0

    def make_task(self, positions: set[int], changes: bool) -> ShardTask:
        wanted = frozenset(positions)
        return ShardTask(
            wanted, wanted if changes else frozenset(), partial(self.add, wanted, changes)
        )


@given(plan=PLANS, can_prefetch=st.booleans())
def test_writes_the_changes_of_tasks_to_the_file(
    plan: list[tuple[set[int], bool]], can_prefetch: bool
) -> None:
    file = StateFile(layout())
    memory = Memory(file)
    memory.swapper.can_prefetch = can_prefetch
    assert memory.swapper.run(
        memory.make_task(positions, changes) for positions, changes in plan
    ) == len(plan)
    assert memory.values == {}
    for position, shape in enumerate(SHAPES):
        times = sum(changes and position in positions for positions, changes in plan)
        np.testing.assert_array_equal(file.read(position), np.full(shape, times, np.float32))


def test_stops_on_request_and_leaves_nothing_in_memory() -> None:
    memory = Memory(StateFile(layout()))
    tasks = [
        memory.make_task({0, 1}, True),
        memory.make_task({1, 2}, True),
        memory.make_task({3}, True),
    ]
    assert memory.swapper.run(tasks, 0.5, lambda total: total > 2) == 2.5
    assert memory.values == {}


def test_an_error_leaves_nothing_in_memory() -> None:
    memory = Memory(StateFile(layout()))

    def fail() -> float:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memory.swapper.run(
            [
                memory.make_task({0}, True),
                ShardTask(frozenset({0, 4}), frozenset(), fail),
                memory.make_task({1}, True),
            ]
        )
    assert memory.values == {}


def test_a_snapshot_stays_what_it_is() -> None:
    file = StateFile(layout())
    file.write(2, np.arange(5, dtype=np.float32))
    before = file.snapshot()
    file.write(2, np.zeros(5, np.float32))
    file.write(0, np.ones((3, 2), np.float32))
    after = file.snapshot()
    file.clear()
    assert [array.tolist() for array in before[2:3]] == [[0, 1, 2, 3, 4]]
    assert [float(array.sum()) for array in before] == [0, 0, 10, 0, 0]
    assert [float(array.sum()) for array in after] == [6, 0, 0, 0, 0]
    assert file.read(2).tolist() == [0] * 5


def test_a_state_needs_room_on_the_disk() -> None:
    huge = StateFile(replace(layout(), shapes=((1 << 40, 1 << 10), *SHAPES[1:])))
    with pytest.raises(ConfigError, match="MB left; a state there needs") as caught:
        huge.write(0, np.zeros(1, np.float32))
    assert caught.value.sqlstate == "53100"


COSTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=9)


@given(sizes=COSTS, room=st.integers(0, 300))
def test_shards_are_all_pieces_in_order_and_fit_if_they_can(
    sizes: list[tuple[int, int]], room: int
) -> None:
    costs = [PieceCost([str(n)], state, state + more) for n, (state, more) in enumerate(sizes)]
    shards, ahead = make_shards(costs, room)
    assert [number for shard in shards for number in shard] == list(range(len(costs)))
    for shard in shards:
        taken = sum(costs[number].peak for number in shard)
        beside = max(costs[number].state for number in shard) if ahead and len(shards) > 1 else 0
        assert taken + beside <= room or len(shard) == 1
