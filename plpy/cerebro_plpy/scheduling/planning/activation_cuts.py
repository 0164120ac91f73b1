"""Which outputs of frozen layers a run stores, so that they are computed once and not in every
epoch of every config.

A pure choice. Configurations can be cut at layers in front of which nothing changes; those whose
cuts give the same share what is stored. Chosen are the cuts by which the run takes least in all,
within a budget of bytes: exactly, by branch and bound, since the cuts that matter are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

ELEMENT_BYTES = 4
# operations in the time in which a trainer gets a byte of a row that it keeps in memory, or reads
# at times
LOADED = 20
WRITTEN = 200  # operations in the time in which a byte is stored
SPEED = 2 * 10**10  # operations a second of a core
OVERHEAD = (
    2 * SPEED
)  # operations in the time in which a table is made, and a front compiled: two seconds of a core
MOST_STEPS = 20_000


class Cut(NamedTuple):
    """A layer at which a network can be cut: what it gives for a row, and what it takes to come
    there.

    Those of equal digests give the same for the same rows, whatever their layers are called.
    """

    layer: str
    digest: str
    shape: tuple[int, ...]
    flops: int

    @property
    def nbytes(self) -> int:
        """Of a row."""
        return ELEMENT_BYTES * prod(self.shape)


class Wish(NamedTuple):
    """A configuration that could train on what is stored: its cuts, and how often it goes through a
    row in all.
    """

    mst_key: int
    cuts: tuple[Cut, ...]
    passes: int

    def cost(self, cut: Cut | None, row_bytes: int) -> int:
        """What all passes of a row take, as far as it depends on where it is cut, if it is."""
        deepest = max((each.flops for each in self.cuts), default=0)
        if cut is None:
            return self.passes * (LOADED * row_bytes + deepest)
        return self.passes * (LOADED * cut.nbytes + deepest - cut.flops)


class Means(NamedTuple):
    """The rows that there are and the bytes of one, the bytes that may be stored, and what each cut
    takes beside. Those that are `kept`, by their digests, are there already."""

    rows: int
    row_bytes: int
    budget: int
    overhead: int = OVERHEAD
    kept: frozenset[str] = frozenset()

    def stored(self, cut: Cut) -> int:
        """What it takes to store a cut."""
        if cut.digest in self.kept:
            return 0
        return self.overhead + self.rows * (cut.flops + WRITTEN * cut.nbytes)

    def bytes_of(self, cut: Cut) -> int:
        """What a cut takes on disk."""
        return self.rows * cut.nbytes

    def seconds(self, cut: Cut) -> float:
        """Seconds of a core that it takes to fill tables with a cut."""
        return self.rows * (cut.flops + WRITTEN * cut.nbytes) / SPEED


def cost(wishes: Iterable[Wish], chosen: Collection[Cut], means: Means) -> int:
    """What a run takes with these cuts, as far as it depends on them."""
    digests = {cut.digest for cut in chosen}
    passes = sum(wish.cost(best_cut(wish, digests, means), means.row_bytes) for wish in wishes)
    return sum(map(means.stored, chosen)) + means.rows * passes


def best_cut(wish: Wish, stored: Collection[str], means: Means) -> Cut | None:
    """At which of the cuts that are stored a configuration is cut; None where it trains on the rows
    themselves.
    """
    usable: list[Cut | None] = [None, *(cut for cut in wish.cuts if cut.digest in stored)]
    return min(usable, key=lambda cut: wish.cost(cut, means.row_bytes))


def choose(wishes: Sequence[Wish], means: Means) -> dict[int, Cut]:
    """The cut of each configuration that is to have one, by mst_key."""
    stored = _Search(wishes, means).best
    found = {wish.mst_key: best_cut(wish, {cut.digest for cut in stored}, means) for wish in wishes}
    return {key: cut for key, cut in found.items() if cut is not None}


def worthwhile(wishes: Sequence[Wish], means: Means) -> list[Cut]:
    """Each cut that could be worth its place, the most useful first, but where another one does in
    all respects.
    """
    users: dict[str, frozenset[int]] = {}
    cuts: dict[str, Cut] = {}
    for number, wish in enumerate(wishes):
        for cut in wish.cuts:
            cuts.setdefault(cut.digest, cut)
            users[cut.digest] = users.get(cut.digest, frozenset()) | {number}
    nothing = cost(wishes, (), means)
    gains = {digest: nothing - cost(wishes, (cut,), means) for digest, cut in cuts.items()}
    useful = [
        cut
        for digest, cut in cuts.items()
        if gains[digest] > 0 and means.bytes_of(cut) <= means.budget
    ]
    useful.sort(key=lambda cut: (-gains[cut.digest], cut.digest))
    return [cut for place, cut in enumerate(useful) if not _outdone(cut, useful[:place], users)]


def _outdone(cut: Cut, others: Iterable[Cut], users: Mapping[str, frozenset[int]]) -> bool:
    """Whether one of others, which gain as much at least, has the same users and takes no more
    bytes.
    """
    return any(
        other.nbytes <= cut.nbytes and users[other.digest] == users[cut.digest] for other in others
    )


class _Search:
    """Branch and bound over cuts that are stored or not; `best` are those of the cheapest way that
    was found.
    """

    def __init__(self, wishes: Sequence[Wish], means: Means) -> None:
        self._wishes = wishes
        self._means = means
        self._steps = 0
        self.best: tuple[Cut, ...] = ()
        self._least = cost(wishes, (), means)
        self._go((), worthwhile(wishes, means), means.budget)

    def _go(self, chosen: tuple[Cut, ...], open_: Sequence[Cut], left: int) -> None:
        self._steps += 1
        found = cost(self._wishes, chosen, self._means)
        if found < self._least:
            self._least, self.best = found, chosen
        if self._steps > MOST_STEPS or not open_ or self._bound(chosen, open_) >= self._least:
            return
        first, rest = open_[0], open_[1:]
        if self._means.bytes_of(first) <= left:
            self._go((*chosen, first), rest, left - self._means.bytes_of(first))
        self._go(chosen, rest, left)

    def _bound(self, chosen: Sequence[Cut], open_: Sequence[Cut]) -> int:
        """Less than any way takes that goes on from here: whatever else is stored costs nothing."""
        free = sum(map(self._means.stored, open_))
        return cost(self._wishes, (*chosen, *open_), self._means) - free
