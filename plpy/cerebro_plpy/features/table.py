"""What is to be learned from which rows of a raw table: its target, the sides of its rows, and their recipe.

All of it is read in one transaction of one session, so that it is of one snapshot; `plan` and `train` both ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cerebro_plpy.configs.keras_names import near_matches
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.platform import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, UndefinedColumn
from cerebro_plpy.features import columns as raw
from cerebro_plpy.features import encoding, kinds
from cerebro_plpy.features.columns import TEXT, RawColumn
from cerebro_plpy.features.encoding import Expression
from cerebro_plpy.features.learn import learn
from cerebro_plpy.features.recipe import NUMBERS, Recipe
from cerebro_plpy.features.split import Sides, Split, naming, read_split, row_hash, sides, usual_split
from cerebro_plpy.features.statistics import Source
from cerebro_plpy.features.target import CLASSIFICATION, FEW_CLASSES, MOST_CLASSES, Target, read_target

TEXTS = {"timezone": "UTC", "lc_monetary": "C", "enable_sort": "on", "enable_hashagg": "on"}
"""Settings with which rows have the same texts for everybody, and columns are sorted one after another."""
SEEDS = 20
"""Hashes that are tried for one that leaves every class on the training side, and its share of it."""
FEW = 10_000
"""Of more rows each class has its share, or nearly, whatever the hash; but for the rarest."""


class Wishes(NamedTuple):
    """What the caller says of a table; None where nothing is said.

    The seed is `settled` where rows were divided by it before.
    """

    target: str
    task: str | None
    columns: str | None
    types: Mapping[str, str]
    split: str | None
    weight: str | None
    split_seed: int
    settled: bool


@dataclass(frozen=True)
class RawTable:
    """A raw table as it is trained on: `sides` say of a row which it is on, where its target can be used.

    In `missing` rows the target is NULL; `order` is a bigint by which rows are put into an order of their own.
    """

    relation: Table
    columns: tuple[RawColumn, ...]
    target: Target
    split: Split
    split_seed: int
    bound: str | None
    sides: Sides
    order: Expression
    recipe: Recipe
    validation_rows: int
    missing: int
    weight: Expression | None

    @property
    def rows(self) -> int:
        """Rows that are trained on."""
        return self.target.rows

    @property
    def label(self) -> Expression:
        """What a network is to give for a row."""
        return _label(self.target.column, self.target.task)


class _Divided(NamedTuple):
    """How rows are divided, but for the seed."""

    split: Split
    named: tuple[str, ...]
    bound: str | None

    def sides(self, seed: int) -> Sides:
        """The sides of a row."""
        return sides(self.split, self.named, seed, self.bound)


class _Count(NamedTuple):
    """Of a value of the target: rows on either side."""

    value: str | None
    training: int
    validation: int


def read_table(reader: Reader, module: str, relation: Table, wishes: Wishes) -> RawTable:
    """Look at all rows of a table; raises where nothing can be learned from it."""
    columns = raw.raw_columns(reader, relation.oid)
    target = _named(module, columns, wishes.target, "target")
    usable = Expression(f"t.{quote_identifier(target.name)} IS NOT NULL")
    found = _split(reader, module, relation, columns, wishes, usable)
    weight = _weighing(module, columns, wishes.weight)
    others = {target.name, *(name for name in (found.column, wishes.weight) if name)}
    chosen = raw.selected(module, columns, wishes.columns, others)
    kinds.check_types(module, chosen, wishes.types)
    named = naming(columns, found)
    bound = _bound(reader, relation, found, usable)
    divided = _Divided(found, named, bound)
    seed = _seed(reader, relation, wishes, divided, target)
    both = divided.sides(seed)
    order = row_order(columns, seed)
    source = Source(relation.quoted, both.training, order)
    aim = read_target(reader, module, source, target, wishes.task)
    known = _known(target, aim.task, aim.values)
    limited = Sides(*(_both(side, known) for side in both))
    recipe = learn(reader, source._replace(side=limited.training), chosen, wishes.types)
    _check_inputs(module, recipe)
    held = _rows(reader, relation, limited.validation)
    missing = _rows(reader, relation, Expression(f"t.{quote_identifier(target.name)} IS NULL"))
    _check_rows(module, aim.rows, held, found)
    weights = weight and _weights(reader, module, source._replace(side=limited.training), weight)
    return RawTable(relation, columns, aim, found, seed, bound, limited, order, recipe, held, missing, weights)


def row_order(columns: Sequence[RawColumn], split_seed: int) -> Expression:
    """A bigint by which the rows of a table with these columns are put into an order of their own."""
    return row_hash(naming(columns, Split("random", 0.0, None)), split_seed + 1)


class Held(NamedTuple):
    """Rows that models are compared by: which of a table they are, what is to be predicted for each, their order."""

    side: Expression
    label: Expression
    order: Expression


def held_back(module: str, columns: Sequence[RawColumn], spec: TrainSpec) -> Held:
    """The rows of a table with these columns that a run does not train on."""
    split, target = read_split(module, spec.split), _named(module, columns, spec.target, "target")
    both = sides(split, naming(columns, split), spec.split_seed, spec.bound)
    side = _both(both.validation, _known(target, spec.task, spec.classes))
    return Held(side, _label(target, spec.task), row_order(columns, spec.split_seed))


def encoded(table: RawTable, side: Expression, output: str) -> Expression:
    """The statement that makes a table of what a network is given of the rows of a side, and is to give for them."""
    inputs = encoding.network_inputs(table.recipe)
    named = {**{each.name: each.value for each in inputs}, "label": table.label}
    if table.weight is not None:
        named["weight"] = table.weight
    text = sql(
        "features.encoded",
        output=output,
        columns=", ".join(f"{part.text} AS {name}" for name, part in named.items()),
        source=table.relation.quoted,
        side=side.text,
        order=table.order.text,
    )
    return Expression(text, (*(v for part in named.values() for v in part.values), *side.values, *table.order.values))


def _named(module: str, columns: Sequence[RawColumn], name: str, what: str) -> RawColumn:
    for column in columns:
        if column.name == name:
            return column
    known = [column.name for column in columns]
    raise UndefinedColumn(
        f"{module} error: there is no column {name!r}, which {what} names.", hint=near_matches(name, known)
    )


def _weighing(module: str, columns: Sequence[RawColumn], name: str | None) -> RawColumn | None:
    if name is None:
        return None
    column = _named(module, columns, name, "weight")
    if column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: weight names column {name!r} of type {column.type}; expected a column of numbers.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return column


def _weights(reader: Reader, module: str, source: Source, column: RawColumn) -> Expression:
    """How much a row counts in the training loss: its weight by the mean of all, so that losses are as without."""
    weight = encoding.number(column.name, column.family or "")
    text = sql("features.weights", source=source.table, weight=weight.text, side=source.side.text)
    ((rows, usable, mean),) = reader.run(text, (*weight.values, *source.side.values))
    if usable < rows or not mean:
        raise InvalidParameter(
            f"{module} error: weight names column {column.name!r}, which has {rows - usable} values that are NULL,"
            f" negative or not finite in {rows} training rows, and {'some' if mean else 'none'} above 0.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return Expression(f"({weight.text}) / %s::double precision", (*weight.values, mean))


def _split(
    reader: Reader, module: str, relation: Table, columns: Sequence[RawColumn], wishes: Wishes, usable: Expression
) -> Split:
    if wishes.split is None:
        return usual_split(_rows(reader, relation, usable))
    found = read_split(module, wishes.split)
    if found.column is not None:
        _named(module, columns, found.column, "split")
    return found


def _rows(reader: Reader, relation: Table, side: Expression) -> int:
    return int(reader.run(sql("features.rows", source=relation.quoted, side=side.text), side.values)[0][0])


def _bound(reader: Reader, relation: Table, split: Split, usable: Expression) -> str | None:
    if split.kind != "last":
        return None
    column = f"t.{quote_identifier(split.column or '')}"
    statement = sql("features.bound", column=column, source=relation.quoted, usable=usable.text)
    ((bound,),) = reader.run(statement, (split.share, *usable.values))
    return None if bound is None else str(bound)


def _seed(reader: Reader, relation: Table, wishes: Wishes, divided: _Divided, target: RawColumn) -> int:
    """A hash by which each class is on the training side, where one of several does it: of few rows the evenest."""
    if wishes.settled or divided.split.kind not in ("random", "group"):
        return wishes.split_seed
    best: tuple[float, int] | None = None
    for seed in range(wishes.split_seed, wishes.split_seed + SEEDS):
        counts = _counts(reader, relation, divided.sides(seed), target)
        uneven = _unevenness(counts, divided.split.share)
        best = min(best or (uneven, seed), (uneven, seed))
        rows = sum(each.training + each.validation for each in counts)
        if uneven < 1 and rows > FEW:
            return seed
    assert best is not None
    return best[1]


def _counts(reader: Reader, relation: Table, both: Sides, target: RawColumn) -> list[_Count]:
    classes = target.family in (TEXT, "integer")
    statement = sql(
        "features.sides",
        value=f"t.{quote_identifier(target.name)}::text" if classes else "NULL::text",
        training=both.training.text,
        validation=both.validation.text,
        source=relation.quoted,
        usable=f"t.{quote_identifier(target.name)} IS NOT NULL",
    )
    values = (*both.training.values, *both.validation.values, MOST_CLASSES + 1)
    return [_Count(*row) for row in reader.run(statement, values)]


def _unevenness(counts: Sequence[_Count], share: float) -> float:
    """How far sides are from what they should be: below 1 where no class is missing in training, and no side is empty.

    >>> _unevenness([_Count("a", 8, 2), _Count("b", 4, 1)], 0.2)
    0.0
    >>> _unevenness([_Count("a", 0, 2), _Count("b", 8, 0)], 0.2) > 1
    True
    """
    rows = sum(each.training + each.validation for each in counts) or 1
    classes = counts if len(counts) <= FEW_CLASSES else ()
    lost = sum(1 for each in classes if not each.training and each.validation > 1)
    far = sum(abs(each.validation - share * (each.training + each.validation)) for each in counts) / rows
    nothing = not sum(each.validation for each in counts) or not sum(each.training for each in counts)
    return lost + nothing + far / (1 + far)


def _label(column: RawColumn, task: str) -> Expression:
    if task == CLASSIFICATION:
        return encoding.category(column.name)
    return encoding.number(column.name, column.family or "")


def _known(target: RawColumn, task: str, classes: Sequence[str]) -> Expression:
    """Whether the target of a row can be used: a class that there is in training, or a finite number."""
    label = _label(target, task)
    if task == CLASSIFICATION:
        return Expression(f"{label.text} = ANY (%s::text[])", (list(classes),))
    assert target.family in NUMBERS
    return Expression(f"abs({label.text}) < 'Infinity'::double precision", label.values)


def _both(one: Expression, other: Expression) -> Expression:
    return Expression(f"({one.text}) AND ({other.text})", (*one.values, *other.values))


def _check_inputs(module: str, recipe: Recipe) -> None:
    if not recipe.inputs:
        reasons = "; ".join(f"{each.column}: {each.reason}" for each in recipe.features if hasattr(each, "reason"))
        raise InvalidParameter(
            f"{module} error: no column can be learned from.",
            detail=reasons,
            hint='Name other columns, or say what they are: types => \'{"column": "category"}\'.',
        )


def _check_rows(module: str, training: int, validation: int, split: Split) -> None:
    for what, rows, least in (("train on", training, 2), ("compare models by", validation, 1)):
        if rows < least:
            raise InvalidParameter(
                f"{module} error: {split} leaves {rows} rows to {what}; expected at least {least}.",
                hint="Give more rows, or another split.",
            )
