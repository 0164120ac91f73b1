"""What is to be learned from which rows of a raw table: its target, the sides of its rows, and
their recipe.

All of it is read in one transaction of one session, so that it is of one snapshot; `plan` and
`train` both ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Floats, Measure
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import DatatypeMismatch
from cerebro_plpy.preprocessing.learning import type_inference
from cerebro_plpy.preprocessing.learning.data_checks import check_any, check_inputs, check_rows
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.learning.labels import is_known, is_usable, label_expression
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.target import (
    CLASSIFICATION,
    Target,
    check_target,
    read_target,
)
from cerebro_plpy.preprocessing.learning.target_leakage import Giveaway, giveaways
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.class_counts import (
    ClassCounts,
    SideTables,
    TargetCounts,
    count_classes,
    count_targets,
    has_many_values,
)
from cerebro_plpy.preprocessing.rows.groups import Groups
from cerebro_plpy.preprocessing.rows.opened_source import (
    OpenedSource,
    TableOptions,
    open_holdout,
    open_source,
)
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, both_hold, count_rows, read_labels
from cerebro_plpy.preprocessing.rows.sample import keep_sample
from cerebro_plpy.preprocessing.rows.split import (
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
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.rows.weight_column import (
    find_column,
    find_weight_column,
    weight_of_row,
)
from cerebro_plpy.preprocessing.values import columns as raw
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import BYTES, NUMBERS, TEXT
from cerebro_plpy.records import dataclass, replace

SETTINGS = {**TEXTS, "enable_sort": "on", "enable_hashagg": "on", "jit": "off"}
"""Settings under which a table is looked at: columns are sorted one after another, and statements
are not compiled.
"""
NO_HEAD = Floats((Measure(0.0, 1.0, 0.0, 0.0),))
"""Of a table that no network is made for."""
SEEDS = 20
"""Hashes that are tried for one that leaves every class on the training side, and its share of it.
"""
PLACES = 1 << 20
"""Of hashes, by which rows are drawn."""
FEW = 10_000
"""Of more rows each class has its share, or nearly, whatever the hash; but for the rarest."""


class Newer(NamedTuple):
    """Rows beyond a value of a column, as text; all where there is none."""

    column: str
    value: str | None


@dataclass(frozen=True)
class RawTable:
    """A raw table as it is trained on: `parts` are the rows to train on and those that are held
    back.

    Of both the target can be used; in `missing` rows it is NULL, and `unused` are others that are
    in neither part. `share` is how much of the former was drawn; `source` are all of them. `newest`
    has the largest values of columns that grow, as texts. Its `groups` have models of their own,
    too. The values of `identity` name a row.
    """

    relation: Table
    columns: tuple[RawColumn, ...]
    target: Target
    split: Split
    split_seed: int
    bound: str | None
    source: Source
    parts: tuple[RowSubset, RowSubset]
    recipe: Recipe
    validation_rows: int
    missing: int
    giveaways: tuple[Giveaway, ...]
    newest: Mapping[str, str | None]
    identity: tuple[str, ...]
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
    """How rows are divided, but for the seed; the tables, and the first of them."""

    split: Split
    opened: OpenedSource
    bound: str | None
    places: SideTables

    def sides(self, seed: int) -> Sides:
        """The sides of a row."""
        return sides(self.split, self.opened.columns, seed, self.bound, self.opened.identity)


def read_table(
    rows: SourceRows, module: str, relation: Table, wishes: TableOptions, kept: bool = False
) -> RawTable:
    """Look at all rows of a table; raises where nothing can be learned from it.

    Where a sample may be `kept` until the transaction ends, those after the first look at it are
    quicker.
    """
    reader, columns = rows.session, raw.read_columns(rows.session, relation.oid)
    target = find_column(module, columns, wishes.target, "target")
    check_target(module, target)
    opened = open_source(rows, module, (relation, columns), wishes)
    count = count_targets(reader, opened.table, target, opened.growing)
    check_any(module, target, count)
    split = _split(reader, module, opened, wishes, count)
    lines = numbered(opened.table, opened.columns, split, opened.identity)
    weight = find_weight_column(module, columns, wishes.weight)
    type_inference.check_types(module, opened.learned, wishes.types)
    held = open_holdout(rows, module, wishes, [each.name for each in opened.learned])
    places = SideTables(lines, held.table if held else lines)
    divided = _Divided(split, opened, _bound(reader, opened, split, wishes), places)
    seed, known = _divide(reader, wishes, divided, target)
    if not known.training:
        check_rows(module, 0, 0, split)
    halves = divided.sides(seed)
    source = Source(lines, halves.training, _order(opened.columns, split, seed, opened.identity))
    aim = read_target(reader, module, source, target, known, wishes.task)
    source = source._replace(
        side=both_hold(halves.training, is_usable(target, aim.task)), rows=aim.rows
    )
    if kept:
        source = keep_sample(
            rows, source, [target, *(c for c in opened.learned if c.family not in (None, BYTES))]
        )
    recipe = fit_recipe(reader, source, opened.learned, wishes.types)
    source = _with_files(source, recipe)
    check_inputs(module, recipe)
    given_away = giveaways(
        reader,
        source,
        recipe,
        aim.rows,
        label_expression(target, aim.task),
        aim.task == CLASSIFICATION,
    )
    weighed = weight and weight_of_row(reader, module, source, weight)
    training = RowSubset(
        source.table,
        source.side,
        recipe,
        label_expression(target, aim.task),
        source.hash,
        opened.columns,
        weighed,
    )
    validation = _held_part(module, training, halves.validation, (wishes, held, aim, seed))
    held_rows = (
        known.comparable_rows if aim.task == CLASSIFICATION else count_rows(reader, validation)
    )
    check_rows(module, aim.rows, held_rows, split)
    parts = training, validation
    unused = count.present - aim.rows - (held_rows if wishes.held is None else 0)
    rest = count.rows - count.present, given_away, count.newest, opened.identity, 1.0, unused
    return RawTable(
        relation, columns, aim, split, seed, divided.bound, source, parts, recipe, held_rows, *rest
    )


def _with_files(source: Source, recipe: Recipe) -> Source:
    """Return the source without its sample if the recipe reads files.

    A sample has no files, which would be many times as large as all else.
    """
    has_files = any(feature.file_bytes for feature in recipe.inputs)
    return source._replace(sample=None) if has_files else source


def _order(
    columns: Sequence[RawColumn], split: Split, seed: int, identity: Sequence[str] = ()
) -> Expression:
    """A bigint by which rows are put into an order of their own."""
    return row_hash(naming(columns, ALIKE._replace(copies=split.copies), identity), seed + 1)


def _held_part(
    module: str,
    training: RowSubset,
    side: Expression,
    of: tuple[TableOptions, OpenedSource | None, Target, int],
) -> RowSubset:
    """The rows that are held back, of this table or of another one, in which columns are found by
    name.
    """
    wishes, held, aim, seed = of
    if wishes.held is None or held is None:
        return training._replace(
            side=both_hold(side, is_known(aim.column, aim.task, aim.values)), weight=None
        )
    target = _held_target(module, held.columns, aim, wishes.held)
    return RowSubset(
        held.table,
        both_hold(side, is_known(target, aim.task, aim.values)),
        match_recipe(module, training.recipe, held.columns, wishes.held.spelling),
        label_expression(target, aim.task),
        _order(held.columns, ALIKE, seed),
        held.columns,
    )


def _held_target(module: str, columns: Sequence[RawColumn], aim: Target, table: Table) -> RawColumn:
    column = find_column(module, columns, aim.column.name, "target")
    if aim.task != CLASSIFICATION and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} of {table.spelling}, whose rows are held "
            f"back, has type {column.type}; expected a number, as {aim.column.type} is.",
            hint="Cast it in a view, and name that.",
        )
    return column


def known_table(
    rows: SourceRows,
    module: str,
    relation: Table,
    spec: TrainSpec,
    held: Table | None,
    newer: Newer | None = None,
) -> RawTable:
    """A table as a run learned of it before, with the rows that it has now; `held` is the table
    that its split names.

    Neither its recipe nor the sides of its rows are looked for again. Where rows are to be `newer`
    than a value, nobody counts them.
    """
    reader, columns = rows.session, raw.read_columns(rows.session, relation.oid)
    target, split = (
        find_column(module, columns, spec.target, "target"),
        read_split(module, spec.split),
    )
    check_target(module, target)
    learned = Recipe.from_json(spec.recipe)
    asked = (
        spec.target,
        spec.task,
        spec.columns,
        spec.types,
        spec.split,
        spec.weight,
        spec.split_seed,
    )
    before = spec.bound, held, spec.group_by, spec.identity
    wishes = TableOptions(*asked, True, *before, growing=(newer.column,) if newer else ())
    opened = open_source(rows, module, (relation, columns), wishes)
    count = count_targets(reader, opened.table, target, opened.growing)
    check_any(module, target, count)
    there = open_holdout(rows, module, wishes, [each.column for each in learned.inputs])
    few = newer is not None and newer.value is not None
    halves = _known_sides(module, opened, spec, newer if few else None)
    order = _order(opened.columns, split, spec.split_seed, opened.identity)
    side = both_hold(halves.training, is_known(target, spec.task, spec.classes))
    source = Source(numbered(opened.table, opened.columns, split, opened.identity), side, order)
    weight = find_weight_column(module, columns, spec.weight)
    weighed = weight and weight_of_row(reader, module, source, weight)
    recipe = match_recipe(module, learned, columns, relation.spelling)
    training = RowSubset(
        source.table,
        side,
        recipe,
        label_expression(target, spec.task),
        order,
        opened.columns,
        weighed,
    )
    trained = 0 if few else count_rows(reader, training)
    aim = Target(target, spec.task, NO_HEAD, spec.classes, trained)
    validation = _held_part(
        module, training, halves.validation, (wishes, there, aim, spec.split_seed)
    )
    kept = 0 if few else count_rows(reader, validation)
    if not few:
        check_rows(module, trained, kept, split)
    divided, source = (split, spec.split_seed, spec.bound), source._replace(rows=trained)
    missing, parts = count.rows - count.present, (training, validation)
    grown, identity = count.newest, opened.identity
    table = RawTable(
        relation, columns, aim, *divided, source, parts, recipe, kept, missing, (), grown, identity
    )
    return table if spec.share == 1 else drawn(reader, table, spec.share)


def _known_sides(module: str, opened: OpenedSource, spec: TrainSpec, newer: Newer | None) -> Sides:
    """The sides of the rows of a table as a run divided them before, of all or of those that are
    newer than a value.
    """
    split = read_split(module, spec.split)
    halves = sides(split, opened.columns, spec.split_seed, spec.bound, opened.identity)
    if newer is None:
        return halves
    later = compare(find_column(module, opened.columns, newer.column, "since"), ">", newer.value)
    return Sides(both_hold(later, halves.training), both_hold(later, halves.validation))


def drawn(reader: Reader, table: RawTable, share: float) -> RawTable:
    """The table with such a share of its training rows; a class that would have none keeps all that
    it has.

    They are drawn by the hash that puts them in order: the same rows whenever it is asked, as far
    as they are there.
    """
    training, validation = table.parts
    some = Expression(
        f"(({training.order.text}) & {PLACES - 1}::bigint) < %s::bigint",
        (*training.order.values, round(share * PLACES)),
    )
    side = both_hold(training.side, some)
    if table.target.task == CLASSIFICATION:
        lost = sorted({*table.target.values} - read_labels(reader, training._replace(side=side)))
        rare = Expression(
            f"{training.label.text} = ANY (%s::text[])", (*training.label.values, lost)
        )
        side = both_hold(
            training.side, Expression(f"({some.text}) OR {rare.text}", (*some.values, *rare.values))
        )
    part = training._replace(side=side)
    target = table.target._replace(rows=count_rows(reader, part))
    return replace(table, parts=(part, validation), target=target, share=share)


def _split(
    reader: Reader, module: str, opened: OpenedSource, wishes: TableOptions, rows: TargetCounts
) -> Split:
    """As it is wanted, or usual; where many rows are equal and no key tells them apart, their
    copies are divided.

    Else all that have some values may be held back, where few combinations of values are there at
    all.
    """
    split = usual_split(rows.present) if wishes.split is None else read_split(module, wishes.split)
    if split.kind != "random" or wishes.settled or any(each.key for each in opened.columns):
        return split
    return split._replace(
        copies=split.copies or has_copies(reader, opened.table, opened.identity, rows.rows)
    )


def _bound(reader: Reader, opened: OpenedSource, split: Split, wishes: TableOptions) -> str | None:
    """Where rows are held back from: where it was in earlier versions, so that no row changes its
    side.
    """
    if split.kind != "last" or wishes.bound is not None:
        return wishes.bound
    usable = f"t.{quote_identifier(wishes.target)} IS NOT NULL"
    return find_bound(reader, opened.table, split, opened.columns, usable)


def _divide(
    reader: Reader, wishes: TableOptions, divided: _Divided, target: RawColumn
) -> tuple[int, ClassCounts]:
    """The seed of a hash by which each class is on the training side, where one of several does it;
    and its counts.

    Of few rows it is that of the evenest.
    """
    many = has_many_values(reader, divided.places.training, target)
    first = count_classes(reader, divided.places, divided.sides(wishes.split_seed), target, many)
    if wishes.settled or divided.split.kind not in ("random", "group"):
        return wishes.split_seed, first
    best: tuple[float, int, ClassCounts] | None = None
    for seed in range(wishes.split_seed, wishes.split_seed + SEEDS):
        known = (
            first
            if best is None
            else count_classes(reader, divided.places, divided.sides(seed), target, many)
        )
        classes = known if target.family in (TEXT, "integer") else known.without_values()
        uneven = classes.unevenness(divided.split.share)
        best = min(best or (uneven, seed, known), (uneven, seed, known), key=lambda each: each[:2])
        if uneven < 1 and known.rows > FEW:
            return seed, known
    assert best is not None
    return best[1:]
