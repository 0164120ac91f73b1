"""What is to be learned from which rows of a raw table: its target, the sides of its rows, and their recipe.

All of it is read in one transaction of one session, so that it is of one snapshot; `plan` and `train` both ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.table import Floats, Measure
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.platform import Reader, Table
from cerebro_plpy.errors import DatatypeMismatch
from cerebro_plpy.features import columns as raw
from cerebro_plpy.features import kinds
from cerebro_plpy.features.columns import TEXT, RawColumn
from cerebro_plpy.features.comparison import compare
from cerebro_plpy.features.encoding import TEXTS, Expression
from cerebro_plpy.features.enough import check_any, check_inputs, check_rows
from cerebro_plpy.features.feature import BYTES, NUMBERS, ImageFile
from cerebro_plpy.features.giveaway import Giveaway, giveaways
from cerebro_plpy.features.groups import Groups
from cerebro_plpy.features.labels import is_known, is_usable, label_of
from cerebro_plpy.features.learn import learn
from cerebro_plpy.features.matching import matched
from cerebro_plpy.features.named_columns import named, weighing, weights
from cerebro_plpy.features.part import Part, both, labels_of, rows_of
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.split import (
    ALIKE,
    Sides,
    Split,
    find_bound,
    has_copies,
    naming,
    numbered,
    read_split,
    row_hash,
    sides,
    usual_split,
)
from cerebro_plpy.features.statistics import Source, with_sample
from cerebro_plpy.features.tally import Places, Tally, Total, has_many, tally, total
from cerebro_plpy.features.target import CLASSIFICATION, Target, check_target, read_target
from cerebro_plpy.records import dataclass, replace

SETTINGS = {**TEXTS, "enable_sort": "on", "enable_hashagg": "on", "jit": "off"}
"""Settings under which a table is looked at: columns are sorted one after another, and statements are not compiled."""
NO_HEAD = Floats((Measure(0.0, 1.0, 0.0, 0.0),))
"""Of a table that no network is made for."""
SEEDS = 20
"""Hashes that are tried for one that leaves every class on the training side, and its share of it."""
PLACES = 1 << 20
"""Of hashes, by which rows are drawn."""
FEW = 10_000
"""Of more rows each class has its share, or nearly, whatever the hash; but for the rarest."""


class Wishes(NamedTuple):
    """What the caller says of a table; None where nothing is said.

    The seed is `settled` where rows were divided by it before, and so is the `bound` that the split had then. `held` is
    the table whose rows are held back, where the split names one.
    """

    target: str
    task: str | None
    columns: str | None
    types: Mapping[str, str]
    split: str | None
    weight: str | None
    split_seed: int
    settled: bool
    bound: str | None = None
    held: Table | None = None


class Newer(NamedTuple):
    """Rows beyond a value of a column, as text; all where there is none."""

    column: str
    value: str | None


@dataclass(frozen=True)
class RawTable:
    """A raw table as it is trained on: `parts` are the rows to train on and those that are held back.

    Of both the target can be used; in `missing` rows it is NULL, and `unused` are others that are in neither part.
    `share` is how much of the former was drawn; `source` are all of them. `newest` has the largest values of columns
    that grow, as texts. Its `groups` have models of their own, too.
    """

    relation: Table
    columns: tuple[RawColumn, ...]
    target: Target
    split: Split
    split_seed: int
    bound: str | None
    source: Source
    parts: tuple[Part, Part]
    recipe: Recipe
    validation_rows: int
    missing: int
    giveaways: tuple[Giveaway, ...]
    newest: Mapping[str, str | None]
    share: float = 1.0
    unused: int = 0
    groups: Groups | None = None

    @property
    def rows(self) -> int:
        """Rows that are trained on."""
        return self.target.rows

    @property
    def weight(self) -> Expression | None:
        """How much a training row counts, where a column says it."""
        return self.parts[0].weight


class _Divided(NamedTuple):
    """How rows are divided, but for the seed; the tables, and the columns of the first."""

    split: Split
    columns: Sequence[RawColumn]
    bound: str | None
    places: Places

    def sides(self, seed: int) -> Sides:
        """The sides of a row."""
        return sides(self.split, self.columns, seed, self.bound)


def read_table(reader: Reader, module: str, relation: Table, wishes: Wishes, kept: bool = False) -> RawTable:
    """Look at all rows of a table; raises where nothing can be learned from it.

    Where a sample may be `kept` until the transaction ends, those after the first look at it are quicker.
    """
    columns = raw.raw_columns(reader, relation.oid)
    target = named(module, columns, wishes.target, "target")
    check_target(module, target)
    rows = total(reader, relation.quoted, target, [c for c in columns if c.name in raw.growing(columns)])
    check_any(module, target, rows)
    split = _split(reader, module, (relation, columns), wishes, rows)
    lines = numbered(relation.quoted, columns, split)
    weight = weighing(module, columns, wishes.weight)
    others = {target.name, *(name for name in (split.column, wishes.weight) if name)}
    chosen = raw.selected(module, columns, wishes.columns, others)
    kinds.check_types(module, chosen, wishes.types)
    there = _held_columns(reader, module, wishes) or columns
    places = Places(lines, wishes.held.quoted if wishes.held else lines)
    divided = _Divided(split, columns, _bound(reader, (relation, columns), split, wishes), places)
    seed, known = _divide(reader, wishes, divided, target)
    if not known.training:
        check_rows(module, 0, 0, split)
    halves = divided.sides(seed)
    source = Source(lines, halves.training, _order(columns, split, seed))
    aim = read_target(reader, module, source, target, known, wishes.task)
    source = source._replace(side=both(halves.training, is_usable(target, aim.task)), rows=aim.rows)
    if kept:
        source = with_sample(reader, source, [target, *(c for c in chosen if c.family not in (None, BYTES))])
    recipe = learn(reader, source, chosen, wishes.types)
    source = _with_files(source, recipe)
    check_inputs(module, recipe)
    given_away = giveaways(reader, source, recipe, aim.rows, label_of(target, aim.task), aim.task == CLASSIFICATION)
    weighed = weight and weights(reader, module, source, weight)
    training = Part(source.table, source.side, recipe, label_of(target, aim.task), source.hash, weighed)
    validation = _held_part(module, training, halves.validation, (wishes, there, aim, seed))
    held = known.held_back if aim.task == CLASSIFICATION else rows_of(reader, validation)
    check_rows(module, aim.rows, held, split)
    parts = training, validation
    unused = rows.present - aim.rows - (held if wishes.held is None else 0)
    rest = rows.rows - rows.present, given_away, rows.newest, 1.0, unused
    return RawTable(relation, columns, aim, split, seed, divided.bound, source, parts, recipe, held, *rest)


def _with_files(source: Source, recipe: Recipe) -> Source:
    """The source as it tells of all inputs: a sample has no files, which would be many times as large as all else."""
    return source._replace(sample=None) if any(isinstance(each, ImageFile) for each in recipe.inputs) else source


def _order(columns: Sequence[RawColumn], split: Split, seed: int) -> Expression:
    """A bigint by which rows are put into an order of their own."""
    return row_hash(naming(columns, ALIKE._replace(copies=split.copies)), seed + 1)


def _held_part(
    module: str, training: Part, side: Expression, of: tuple[Wishes, Sequence[RawColumn], Target, int]
) -> Part:
    """The rows that are held back, of this table or of another one, in which columns are found by name."""
    wishes, columns, aim, seed = of
    if wishes.held is None:
        return training._replace(side=both(side, is_known(aim.column, aim.task, aim.values)), weight=None)
    target = _held_target(module, columns, aim, wishes.held)
    return Part(
        wishes.held.quoted,
        both(side, is_known(target, aim.task, aim.values)),
        matched(module, training.recipe, columns, wishes.held.spelling),
        label_of(target, aim.task),
        _order(columns, ALIKE, seed),
    )


def _held_columns(reader: Reader, module: str, wishes: Wishes) -> tuple[RawColumn, ...]:
    """The columns of the table that the split names, if it names one: the target is among them."""
    if wishes.held is None:
        return ()
    columns = raw.raw_columns(reader, wishes.held.oid)
    named(module, columns, wishes.target, "target", f" in {wishes.held.spelling}, whose rows are held back")
    return columns


def _held_target(module: str, columns: Sequence[RawColumn], aim: Target, table: Table) -> RawColumn:
    column = named(module, columns, aim.column.name, "target")
    if aim.task != CLASSIFICATION and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} of {table.spelling}, whose rows are held back, has type"
            f" {column.type}; expected a number, as {aim.column.type} is.",
            hint="Cast it in a view, and name that.",
        )
    return column


class Held(NamedTuple):
    """Rows that models are compared by: of which table, which, and each one's label and order, of these columns."""

    table: str
    side: Expression
    label: Expression
    order: Expression
    columns: tuple[str, ...]


def held_back(module: str, table: str, columns: Sequence[RawColumn], spec: TrainSpec) -> Held:
    """The rows that a run does not train on, of the table that has them, by its quoted name, and with these columns."""
    split, target = read_split(module, spec.split), named(module, columns, spec.target, "target")
    halves = sides(split, columns, spec.split_seed, spec.bound)
    side = both(halves.validation, is_known(target, spec.task, spec.classes))
    order = _order(columns, split, spec.split_seed)
    needed = target.name, *naming(columns, ALIKE._replace(copies=split.copies))
    return Held(numbered(table, columns, split), side, label_of(target, spec.task), order, needed)


def known_table(
    reader: Reader, module: str, relation: Table, spec: TrainSpec, held: Table | None, newer: Newer | None = None
) -> RawTable:
    """A table as a run learned of it before, with the rows that it has now; `held` is the table that its split names.

    Neither its recipe nor the sides of its rows are looked for again. Where rows are to be `newer` than a value, nobody
    counts them.
    """
    columns = raw.raw_columns(reader, relation.oid)
    target, split = named(module, columns, spec.target, "target"), read_split(module, spec.split)
    check_target(module, target)
    grows = {*raw.growing(columns), *([newer.column] if newer else [])}
    rows = total(reader, relation.quoted, target, [c for c in columns if c.name in grows])
    check_any(module, target, rows)
    asked = spec.target, spec.task, spec.columns, spec.types, spec.split, spec.weight, spec.split_seed
    wishes = Wishes(*asked, settled=True, bound=spec.bound, held=held)
    there = _held_columns(reader, module, wishes) or columns
    halves = sides(split, columns, spec.split_seed, spec.bound)
    few = newer is not None and newer.value is not None
    if newer and few:
        later = compare(named(module, columns, newer.column, "since"), ">", newer.value)
        halves = Sides(both(later, halves.training), both(later, halves.validation))
    order = _order(columns, split, spec.split_seed)
    side = both(halves.training, is_known(target, spec.task, spec.classes))
    source = Source(numbered(relation.quoted, columns, split), side, order)
    weight = weighing(module, columns, spec.weight)
    weighed = weight and weights(reader, module, source, weight)
    recipe = matched(module, Recipe.from_json(spec.recipe), columns, relation.spelling)
    training = Part(source.table, side, recipe, label_of(target, spec.task), order, weighed)
    trained = 0 if few else rows_of(reader, training)
    aim = Target(target, spec.task, NO_HEAD, spec.classes, trained)
    validation = _held_part(module, training, halves.validation, (wishes, there, aim, spec.split_seed))
    kept = 0 if few else rows_of(reader, validation)
    if not few:
        check_rows(module, trained, kept, split)
    parts = training, validation
    missing = rows.rows - rows.present
    divided_by = split, spec.split_seed, spec.bound
    source = source._replace(rows=trained)
    table = RawTable(relation, columns, aim, *divided_by, source, parts, recipe, kept, missing, (), rows.newest)
    return table if spec.share == 1 else drawn(reader, table, spec.share)


def drawn(reader: Reader, table: RawTable, share: float) -> RawTable:
    """The table with such a share of its training rows; a class that would have none keeps all that it has.

    They are drawn by the hash that puts them in order: the same rows whenever it is asked, as far as they are there.
    """
    training, validation = table.parts
    some = Expression(
        f"(({training.order.text}) & {PLACES - 1}::bigint) < %s::bigint",
        (*training.order.values, round(share * PLACES)),
    )
    side = both(training.side, some)
    if table.target.task == CLASSIFICATION:
        lost = sorted({*table.target.values} - labels_of(reader, training._replace(side=side)))
        rare = Expression(f"{training.label.text} = ANY (%s::text[])", (*training.label.values, lost))
        side = both(training.side, Expression(f"({some.text}) OR {rare.text}", (*some.values, *rare.values)))
    part = training._replace(side=side)
    target = table.target._replace(rows=rows_of(reader, part))
    return replace(table, parts=(part, validation), target=target, share=share)


def _split(reader: Reader, module: str, of: tuple[Table, Sequence[RawColumn]], wishes: Wishes, rows: Total) -> Split:
    """As it is wanted, or usual; where many rows are equal and no key tells them apart, their copies are divided.

    Else all that have some values may be held back, where few combinations of values are there at all.
    """
    relation, columns = of
    found = usual_split(rows.present) if wishes.split is None else read_split(module, wishes.split)
    if found.column is not None:
        named(module, columns, found.column, "split")
    if found.kind != "random" or wishes.settled or any(each.key for each in columns):
        return found
    return found._replace(copies=found.copies or has_copies(reader, relation.quoted, columns, rows.rows))


def _bound(reader: Reader, of: tuple[Table, Sequence[RawColumn]], split: Split, wishes: Wishes) -> str | None:
    """Where rows are held back from: where it was in earlier versions, so that no row changes its side."""
    if split.kind != "last" or wishes.bound is not None:
        return wishes.bound
    relation, columns = of
    return find_bound(reader, relation.quoted, split, columns, f"t.{quote_identifier(wishes.target)} IS NOT NULL")


def _divide(reader: Reader, wishes: Wishes, divided: _Divided, target: RawColumn) -> tuple[int, Tally]:
    """The seed of a hash by which each class is on the training side, where one of several does it; and its counts.

    Of few rows it is that of the evenest.
    """
    many = has_many(reader, divided.places.training, target)
    first = tally(reader, divided.places, divided.sides(wishes.split_seed), target, many)
    if wishes.settled or divided.split.kind not in ("random", "group"):
        return wishes.split_seed, first
    best: tuple[float, int, Tally] | None = None
    for seed in range(wishes.split_seed, wishes.split_seed + SEEDS):
        known = first if best is None else tally(reader, divided.places, divided.sides(seed), target, many)
        classes = known if target.family in (TEXT, "integer") else known.together()
        uneven = classes.unevenness(divided.split.share)
        best = min(best or (uneven, seed, known), (uneven, seed, known), key=lambda each: each[:2])
        if uneven < 1 and known.rows > FEW:
            return seed, known
    assert best is not None
    return best[1:]
