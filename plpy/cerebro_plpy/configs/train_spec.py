"""What a run of `cerebro.train` was asked, and what it learned of its table before it trained: a
part of its spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.records import asdict, dataclass, field


class Start(NamedTuple):
    """The version that a run goes on from, by its run and configuration; `epochs` are those of the
    first run of all.
    """

    run_id: int
    mst_key: int
    epochs: int


class Compared(NamedTuple):
    """The version that a new one is compared with, where it takes rows by a recipe of its own."""

    version: int
    usable: bool  # whether it can predict the rows of the source


class GroupPlace(NamedTuple):
    """Where the rows of a group are: how many each of its buffers has that is trained on, by
    segment which these are, and which are held back; which configurations of the call it has; and
    how many rows of each class are trained on, as far as that is known."""

    sizes: tuple[int, ...]
    training: Mapping[int, tuple[int, ...]]
    validation: Mapping[int, tuple[int, ...]]
    mst_keys: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Those that are trained on."""
        return sum(self.sizes)

    def steps(self, batch: int) -> int:
        """The batches of an epoch: one ends where a buffer does."""
        return sum(-(-rows // batch) for rows in self.sizes)

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> GroupPlace:
        """A list of its fields, with texts for keys."""
        sizes, *sides, keys, counts = [*values, ()][:5]  # an older log has no counts
        training, validation = (
            {int(k): tuple(map(int, ids)) for k, ids in side.items()} for side in sides
        )
        return cls(
            tuple(map(int, sizes)),
            training,
            validation,
            tuple(map(int, keys)),
            tuple(map(int, counts)),
        )


@dataclass(frozen=True)
class TrainSpec:
    """What makes a version of a model of a run. `relation` is the quoted name of the table.

    `columns`, `types` and `weight` are as they came; `bound` is where rows are held back from,
    where their order decides it; `budget` is in seconds. `templates` has the template of each
    configuration that the call has chosen, and `params` its fields, by mst_key. `fingerprint` is a
    hash of the rows on both sides, as the recipe encodes them, and `hashes` is what it was made of.
    Of `ensemble` picks the version may be made, which may be of several configurations. `recipe`,
    and `profile` where there is one, are as JSON. `newest` has the largest values of columns that
    may grow, as texts. `start` is of a run that refreshes a version, and so is how many `additions`
    of new rows its packed tables have. `counts` are the training rows of each class, as far as they
    are known, and `measure` is what a float target is like. By the column `group_by` there are
    `groups`, each with models of its own; of their buffers, which hold one group each, `block_rows`
    are a block for models of all rows. `configs` are to be there in all, of the templates that are
    `tried`; `space` is what the call says of their fields. The run may use `max_cpu` processor
    seconds, and cost `max_cost`. The values of the columns `identity` name a row, all columns if it
    is empty. `reading` says under which formats the source was read, and what it was. The held-back
    rows were packed a second time for the version that is `compared`, if it is usable.
    """

    model: str
    relation: str
    target: str
    target_type: str
    task: str
    columns: str | None
    types: Mapping[str, str]
    split: str
    split_seed: int
    bound: str | None
    metric: str
    budget: float
    recipe: Mapping[str, Any]
    classes: tuple[str, ...]
    training_rows: int
    validation_rows: int
    templates: Mapping[int, str]
    params: Mapping[int, Mapping[str, Any]]
    weight: str | None = None
    fingerprint: str | None = None
    ensemble: int = 1
    share: float = 1.0
    profile: Mapping[str, Any] | None = None
    start: Start | None = None
    newest: Mapping[str, str | None] = field(default_factory=dict)
    hashes: tuple[int, int] | None = None
    additions: int = 0
    group_by: str | None = None
    groups: Mapping[str, GroupPlace] = field(default_factory=dict)
    block_rows: int | None = None
    counts: tuple[int, ...] = ()
    measure: Mapping[str, float] | None = None
    space: Mapping[str, Any] = field(default_factory=dict)
    tried: tuple[str, ...] = ()
    configs: int = 0
    max_cpu: float | None = None
    max_cost: float | None = None
    identity: tuple[str, ...] = ()
    reading: Mapping[str, Any] | None = None
    compared: Compared | None = None

    def to_json(self) -> dict[str, Any]:
        """As `from_json` takes it."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainSpec:
        """What `to_json` gave; KeyError, TypeError or ValueError where it is something else."""
        keyed = {
            name: {int(key): each for key, each in values[name].items()}
            for name in ("templates", "params")
        }
        start, hashes, counts = (
            values.get("start"),
            values.get("hashes"),
            tuple(values.get("counts", ())),
        )
        groups = {
            value: GroupPlace.from_json(place)
            for value, place in (values.get("groups") or {}).items()
        }
        refreshed = {
            "start": start and Start(*map(int, start)),
            "hashes": hashes and (int(hashes[0]), int(hashes[1])),
        }
        lists = {name: tuple(values.get(name, ())) for name in ("tried", "identity")}
        compared = values.get("compared")
        refreshed |= {"compared": compared and Compared(int(compared[0]), bool(compared[1]))}
        of_rows = {"counts": counts, "groups": groups, "classes": tuple(values["classes"])}
        return cls(**{**values, **keyed, **refreshed, **of_rows, **lists})
