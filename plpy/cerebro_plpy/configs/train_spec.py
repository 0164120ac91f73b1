"""The part of a run's spec for `cerebro.train`: the request, and the properties of its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.json_arguments import JsonObject
from cerebro_plpy.records import asdict, dataclass, field, fields

REFIT_AUTO = "auto"
REFIT_ALL = "all"
REFIT_NONE = "none"
REFITS = (REFIT_AUTO, REFIT_ALL, REFIT_NONE)
"""The members of a version that are trained again on all rows: the argument `refit`."""


class BaseVersion(NamedTuple):
    """The version that a refreshing run continues from."""

    run_id: int
    mst_key: int
    epochs: int  # of the first run in the chain of refreshes


class ComparedVersion(NamedTuple):
    """The version that a new one is compared with, if that has another recipe."""

    version: int
    usable: bool  # it can predict the rows of the source


class QueryRecord(NamedTuple):
    """The query that a call named in place of a table."""

    text: str
    path: str  # search_path of the caller
    objects: tuple[str, ...]  # tables, functions and others that it named then


class FinalMetric(NamedTuple):
    """A metric that is computed at the end of a run, and ranks its configurations from then on."""

    name: str
    descending: bool  # larger values are better


class GroupLayout(NamedTuple):
    """The buffers and configurations of a group."""

    sizes: tuple[int, ...]  # rows of each training buffer
    training: Mapping[int, tuple[int, ...]]  # ids of training buffers, by segment
    validation: Mapping[int, tuple[int, ...]]  # ids of held-out buffers, by segment
    mst_keys: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()  # training rows of each class; empty if unknown

    @property
    def rows(self) -> int:
        """Return the number of training rows."""
        return sum(self.sizes)

    def steps(self, batch: int) -> int:
        """Return the number of batches in an epoch; a batch ends with its buffer."""
        return sum(-(-rows // batch) for rows in self.sizes)

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> GroupLayout:
        """Read a list of the fields, with texts for keys; an older log lacks `counts`."""
        sizes, training, validation, mst_keys, counts = [*values, ()][:5]
        return cls(
            sizes=_read_integers(sizes),
            training={int(key): _read_integers(ids) for key, ids in training.items()},
            validation={int(key): _read_integers(ids) for key, ids in validation.items()},
            mst_keys=_read_integers(mst_keys),
            counts=_read_integers(counts),
        )


def _read_integers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(int, values))


@dataclass(frozen=True)
class DataSplit:
    """The division of the source's rows."""

    rule: str
    seed: int
    bound: str | None  # value from which on rows are held out, if an order decides that
    training_rows: int
    validation_rows: int
    share: float = 1.0  # of the training rows that are learned from


@dataclass(frozen=True)
class SourceRecord:
    """The rows of the source by which a later call recognizes or compares them."""

    fingerprint: str | None = None  # hash of all rows, as the recipe encodes them
    hashes: tuple[int, int] | None = None  # of which the fingerprint is made
    identity: tuple[str, ...] = ()  # columns that identify a row; all if empty
    reading: JsonObject | None = None  # formats under which the source was read
    profile: JsonObject | None = None  # as JSON
    newest: Mapping[str, str | None] = field(default_factory=dict)
    """Largest values of columns that may grow, as texts."""
    additions: int = 0  # number of times that new rows were added to the packed tables


@dataclass(frozen=True)
class Grouping:
    """The groups that have models of their own."""

    column: str | None = None
    layouts: Mapping[str, GroupLayout] = field(default_factory=dict)  # by group
    block_rows: int | None = None
    """Rows of a block for models of all rows, as buffers contain one group each."""


STORED_NAMES: Mapping[str, Mapping[str, str]] = {
    "split": {
        "rule": "split",
        "seed": "split_seed",
        **{name: name for name in ("bound", "training_rows", "validation_rows", "share")},
    },
    "source": {entry.name: entry.name for entry in fields(SourceRecord)},
    "grouping": {"column": "group_by", "layouts": "groups", "block_rows": "block_rows"},
}
"""Names in the log, which has the fields of these nested records beside the others."""


@dataclass(frozen=True)
class TrainSpec:
    """The request of `cerebro.train`, and the properties of its table."""

    model: str
    relation: str  # quoted name of the table, or the query in parentheses
    target: str
    target_type: str
    task: str
    columns: str | None  # argument of the call
    types: Mapping[str, str]  # argument of the call
    split: DataSplit
    metric: str
    budget: float  # seconds
    recipe: JsonObject  # as JSON
    classes: tuple[str, ...]
    templates: Mapping[int, str]  # by mst_key, of configurations from templates
    params: Mapping[int, JsonObject]  # fields of the template, by mst_key
    weight: str | None = None  # argument of the call
    source: SourceRecord = field(default_factory=SourceRecord)
    grouping: Grouping = field(default_factory=Grouping)
    ensemble: int = 1  # number of greedy ensemble-selection rounds
    start: BaseVersion | None = None  # of a run that refreshes a version
    counts: tuple[int, ...] = ()  # training rows of each class, if known
    measure: Mapping[str, float] | None = None  # statistics of a float target, as it is packed
    space: JsonObject = field(default_factory=dict)  # argument of the call
    template_names: tuple[str, ...] = ()  # templates to try
    configs: int = 0  # number of configurations in all
    max_cpu: float | None = None  # processor seconds
    max_cost: float | None = None
    compared: ComparedVersion | None = None
    """The version for which the held-out rows were packed a second time, if it is usable."""
    final_metric: FinalMetric | None = None  # `metric`, if trainers do not compute it
    query: QueryRecord | None = None  # in place of a table
    may_return: bool = False  # the run may end before its budget is over
    refit: str = REFIT_AUTO  # argument of the call
    refit_of: int | None = None  # the run whose best configurations this one trains again
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Costs of mistakes that the call names, by the class of a row and the predicted class."""

    @property
    def target_scale(self) -> JsonObject | None:
        """The scale of the labels, as JSON; None if they are packed as they are."""
        return self.recipe.get("target_scale")

    @property
    def fold_keys(self) -> dict[int, dict[str, int]]:
        """The mst_key of each configuration without each fold, by its mst_key on all rows.

        That is of a run whose groups are folds.
        """
        layouts = self.grouping.layouts
        all_folds = {key for layout in layouts.values() for key in layout.mst_keys}
        members = sorted(self.templates.keys() - all_folds)
        keys: dict[int, dict[str, int]] = {member: {} for member in members}
        for fold, layout in layouts.items():
            for member, key in zip(members, layout.mst_keys):
                keys[member][fold] = key
        return keys

    def to_json(self) -> dict[str, Any]:
        """Return the record as the log stores it."""
        values = asdict(self)
        values["tried"] = values.pop("template_names")
        for name in ("final_metric", "query"):
            if values[name] is None:
                del values[name]  # as in logs of versions that did not have it
        if self.refit == REFIT_AUTO:
            del values["refit"]
        if self.refit_of is None:
            del values["refit_of"]
        for name in ("may_return", "costs"):
            if not values[name]:
                del values[name]
        if self.query is not None:
            values["query"] = self.query._asdict()
        for record, names in STORED_NAMES.items():
            nested = values.pop(record)
            values.update({names[name]: value for name, value in nested.items()})
        return values

    @classmethod
    def from_json(cls, values: JsonObject) -> TrainSpec:
        """Read a record that `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: the values are malformed.
        """
        parsed = dict(values)
        for name in ("templates", "params"):
            parsed[name] = {int(key): value for key, value in values[name].items()}
        parsed["template_names"] = parsed.pop("tried", ())
        for name in ("counts", "template_names", "identity"):
            parsed[name] = tuple(parsed.get(name, ()))
        parsed["classes"] = tuple(values["classes"])
        groups = values.get("groups") or {}
        parsed["groups"] = {
            group: GroupLayout.from_json(layout) for group, layout in groups.items()
        }
        start = values.get("start")
        if start:
            parsed["start"] = BaseVersion(*map(int, start))
        hashes = values.get("hashes")
        if hashes:
            parsed["hashes"] = (int(hashes[0]), int(hashes[1]))
        parsed["split"] = DataSplit(**_take(parsed, STORED_NAMES["split"]))
        parsed["source"] = SourceRecord(**_take(parsed, STORED_NAMES["source"]))
        parsed["grouping"] = Grouping(**_take(parsed, STORED_NAMES["grouping"]))
        compared = values.get("compared")
        if compared:
            parsed["compared"] = ComparedVersion(int(compared[0]), bool(compared[1]))
        final = values.get("final_metric")
        if final:
            parsed["final_metric"] = FinalMetric(str(final[0]), bool(final[1]))
        query = values.get("query")
        if query:
            parsed["query"] = QueryRecord(
                str(query["text"]), str(query["path"]), tuple(map(str, query["objects"]))
            )
        return cls(**parsed)


def _take(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Remove the fields of a nested record from logged values, and return those that are there."""
    return {name: values.pop(stored) for name, stored in names.items() if stored in values}
