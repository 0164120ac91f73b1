"""The choice of the activations of frozen layers that a run stores.

Stored activations are computed once, and not in every epoch of every config. A network can be cut
at layers before which no weight changes; configurations share stored activations if their cuts
have the same output. The pure choice minimizes the total cost of the run within a budget of bytes.
It is exact, by branch and bound, because few cuts matter.

Costs are in operations of a core.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

ELEMENT_BYTES = 4
LOAD_OPS = 20
"""Cost of loading a byte of a row, which is mostly in the trainer's memory."""
WRITE_OPS = 200
"""Cost of storing a byte."""
OPS_PER_SECOND = 2 * 10**10
"""Speed of a core."""
TABLE_OPS = 2 * OPS_PER_SECOND
"""Cost of creating a table and compiling the frozen prefix."""
MAX_STEPS = 20_000
"""Number of steps of the search; afterwards it takes the best choice so far."""


class Cut(NamedTuple):
    """A layer at which a network can be cut."""

    layer: str
    digest: str  # cuts with equal digests have equal outputs for equal rows
    shape: tuple[int, ...]  # of the output for a row
    flops: int  # operations that compute the output for a row

    @property
    def nbytes(self) -> int:
        """Return the bytes of the output for a row."""
        return ELEMENT_BYTES * prod(self.shape)


class ConfigCuts(NamedTuple):
    """A configuration that could train on stored activations."""

    mst_key: int
    cuts: tuple[Cut, ...]
    passes: int  # number of times that it processes each row

    def cost(self, cut: Cut | None, row_bytes: int) -> int:
        """Return the cost of all passes of a row, as far as it depends on the cut."""
        deepest = max((option.flops for option in self.cuts), default=0)
        if cut is None:
            return self.passes * (LOAD_OPS * row_bytes + deepest)
        return self.passes * (LOAD_OPS * cut.nbytes + deepest - cut.flops)


class Storage(NamedTuple):
    """The rows of a run, and the storage for activations."""

    rows: int
    row_bytes: int
    budget: int  # bytes
    overhead: int = TABLE_OPS  # cost of each cut beside its rows
    existing: frozenset[str] = frozenset()  # digests of cuts that are stored already

    def store_cost(self, cut: Cut) -> int:
        """Return the cost of storing a cut."""
        if cut.digest in self.existing:
            return 0
        return self.overhead + self.rows * (cut.flops + WRITE_OPS * cut.nbytes)

    def size_of(self, cut: Cut) -> int:
        """Return the bytes of a cut on disk."""
        return self.rows * cut.nbytes

    def store_seconds(self, cut: Cut) -> float:
        """Return the seconds of a core that filling tables with a cut takes."""
        return self.rows * (cut.flops + WRITE_OPS * cut.nbytes) / OPS_PER_SECOND


def total_cost(configs: Iterable[ConfigCuts], cuts: Collection[Cut], storage: Storage) -> int:
    """Return the cost of a run that stores cuts, as far as it depends on them."""
    digests = {cut.digest for cut in cuts}
    row_cost = sum(
        config.cost(choose_cut(config, digests, storage), storage.row_bytes) for config in configs
    )
    return sum(map(storage.store_cost, cuts)) + storage.rows * row_cost


def choose_cut(config: ConfigCuts, digests: Collection[str], storage: Storage) -> Cut | None:
    """Return the best of the stored cuts for a configuration; None to train on the rows."""
    usable: list[Cut | None] = [None, *(cut for cut in config.cuts if cut.digest in digests)]
    return min(usable, key=lambda cut: config.cost(cut, storage.row_bytes))


def choose_cuts(configs: Sequence[ConfigCuts], storage: Storage) -> dict[int, Cut]:
    """Return by mst_key the cut of each configuration that should have one."""
    digests = {cut.digest for cut in _Search(configs, storage).best}
    cuts = {config.mst_key: choose_cut(config, digests, storage) for config in configs}
    return {key: cut for key, cut in cuts.items() if cut is not None}


def list_useful_cuts(configs: Sequence[ConfigCuts], storage: Storage) -> list[Cut]:
    """Return the cuts that could be worth their storage, the most useful first.

    A cut that another one dominates is left out.
    """
    users: dict[str, frozenset[int]] = {}
    cuts: dict[str, Cut] = {}
    for number, config in enumerate(configs):
        for cut in config.cuts:
            cuts.setdefault(cut.digest, cut)
            users[cut.digest] = users.get(cut.digest, frozenset()) | {number}
    cost_without = total_cost(configs, (), storage)
    gains = {
        digest: cost_without - total_cost(configs, (cut,), storage) for digest, cut in cuts.items()
    }
    useful = [
        cut
        for digest, cut in cuts.items()
        if gains[digest] > 0 and storage.size_of(cut) <= storage.budget
    ]
    useful.sort(key=lambda cut: (-gains[cut.digest], cut.digest))
    return [cut for rank, cut in enumerate(useful) if not _is_dominated(cut, useful[:rank], users)]


def _is_dominated(cut: Cut, better: Iterable[Cut], users: Mapping[str, frozenset[int]]) -> bool:
    """Return True if a better cut has the same users and is not larger."""
    return any(
        other.nbytes <= cut.nbytes and users[other.digest] == users[cut.digest] for other in better
    )


class _Search:
    """Branch and bound over cuts that are stored or not; `best` are the cheapest ones so far."""

    def __init__(self, configs: Sequence[ConfigCuts], storage: Storage) -> None:
        self._configs = configs
        self._storage = storage
        self._steps = 0
        self.best: tuple[Cut, ...] = ()
        self._lowest_cost = total_cost(configs, (), storage)
        self._search((), list_useful_cuts(configs, storage), storage.budget)

    def _search(self, stored: tuple[Cut, ...], undecided: Sequence[Cut], budget: int) -> None:
        self._steps += 1
        cost = total_cost(self._configs, stored, self._storage)
        if cost < self._lowest_cost:
            self._lowest_cost = cost
            self.best = stored
        if self._steps > MAX_STEPS or not undecided:
            return
        if self._lower_bound(stored, undecided) >= self._lowest_cost:
            return
        first = undecided[0]
        remaining_budget = budget - self._storage.size_of(first)
        if remaining_budget >= 0:
            self._search((*stored, first), undecided[1:], remaining_budget)
        self._search(stored, undecided[1:], budget)

    def _lower_bound(self, stored: Sequence[Cut], undecided: Sequence[Cut]) -> int:
        """Return the cost if all undecided cuts were stored for free."""
        store_cost = sum(map(self._storage.store_cost, undecided))
        return total_cost(self._configs, (*stored, *undecided), self._storage) - store_cost
