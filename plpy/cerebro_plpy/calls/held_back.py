"""What networks say of the rows that a model holds back: worker sessions predict them, as they are in the table now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil
from typing import NamedTuple

from cerebro_plpy.calls.prediction_table import fetched
from cerebro_plpy.calls.version_prediction import network_program
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.names import columns_of
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features.columns import raw_columns
from cerebro_plpy.features.encoding import TEXTS, Expression, NetworkInput, category, network_inputs
from cerebro_plpy.features.matching import matched
from cerebro_plpy.features.part import both
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.scores import Told
from cerebro_plpy.features.split import read_split
from cerebro_plpy.features.table import Held, held_back
from cerebro_plpy.platform.job import Job, RawRows, StateSource
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run.workers import Crew, crew_for, score, together

MODULE = "train"
COVERED = 0.9
BLOCK_ROWS, BLOCK_ELEMENTS = 4096, 1 << 20


class Network(NamedTuple):
    """A trained network: what makes its inputs, the texts of its classes (none of a regression), and what runs it."""

    recipe: Recipe
    classes: tuple[str, ...]
    architecture: str
    compile_params: str
    state: StateSource
    backend: str


def margin_of(distances: Sequence[float], covered: float = COVERED) -> float | None:
    """How far such a share of all numbers lie from their predictions, at most, by the distances of a sample.

    That of split conformal prediction (Lei et al., 2018, section 2.2): a quantile a little above that of the sample;
    None where the sample is too small for one.

    >>> margin_of([float(n) for n in range(1, 20)]), margin_of([1.0, 2.0])
    (18.0, None)
    """
    place = ceil((len(distances) + 1) * covered)
    return sorted(distances)[place - 1] if place <= len(distances) else None


def predictions(
    workplace: Workplace, spec: TrainSpec, source: Relation, network: Network, group: str | None = None
) -> list[Told]:
    """What a network says of the rows of a table that a run holds back, in the order that rows have of their own; or of
    those of a group."""
    columns = raw_columns(workplace.control, source.oid)
    inputs = network_inputs(matched(MODULE, network.recipe, columns, source.spelling))
    held = held_back(MODULE, source.quoted, columns, spec)
    if group is not None and spec.group_by is not None:
        held = _of_group(held, spec.group_by, group)
    rows = _rows(held, network.recipe, inputs)
    placed = workplace.platform.raw_rows(workplace.control, source.oid, rows)
    arrays = [{"column": each.name, **each.entry} for each in inputs]
    block = max(1, min(BLOCK_ROWS, BLOCK_ELEMENTS // network.recipe.room))
    asked = {"arrays": arrays, "want": {"kind": "prob"}, "classes": [len(network.classes)]}
    program = network_program(json.loads(network.architecture), network.compile_params, network.classes)
    job, request = Job("predict", program, network.state.key), {"block": block, "request": asked}
    configured = Expression(sql("session.configure"), (json.dumps(TEXTS),)).inlined()

    def predict(crew: Crew) -> list[tuple[int, Told]]:
        steps = [crew.visits.predict(worker, placed, network.state, job, request) for worker in crew.workers]
        found: list[tuple[int, Told]] = []
        for worker, declare in together(workplace, crew, steps):
            if declare is not None:
                for ids, values in fetched(workplace, worker.session, f"{configured}; {declare}"):
                    found += _told(json.loads(ids), values, network.classes)
                finish = crew.visits.predicted(worker)
                worker.session.run(finish.sql, finish.values)
        return found

    found = score(workplace, lambda: crew_for(workplace, network.backend, False, placed.segments), predict)
    return [told for _, told in sorted(found, key=lambda each: (each[0], each[1].label))]


def _of_group(held: Held, column: str, group: str) -> Held:
    value = category(column)
    side = both(held.side, Expression(f"{value.text} = %s", (*value.values, group)))
    return held._replace(side=side, columns=(*held.columns, column))


def held_table(catalog: Catalog, spec: TrainSpec) -> Relation:
    """The table of the rows that a run holds back: its own, as a rule."""
    return catalog.relation(read_split(catalog.module, spec.split).table or spec.relation)


def _rows(held: Held, recipe: Recipe, inputs: Sequence[NetworkInput]) -> RawRows:
    """The rows with their place and their label as ids; statements of a worker's cursor take no parameters."""
    names = columns_of("t", (*held.columns, *(each.column for each in recipe.inputs)))
    return RawRows(
        f"(SELECT {names} FROM {held.table} t WHERE {held.side.inlined()})",
        f"({held.order.inlined()}) || ' ' || ({held.label.inlined()})",
        f"ARRAY[{', '.join(each.sent.inlined() for each in inputs)}]",
    )


def _told(ids: Sequence[str], values: dict[str, str], classes: tuple[str, ...]) -> Iterator[tuple[int, Told]]:
    """Of the rows of a block: `values` are array literals, with an element for each output of each row, row by row."""
    rows, places, numbers = (values[name].strip("{}").split(",") for name in ("row", "class", "value"))
    for row, parts in groupby(zip(rows, places, numbers), key=lambda part: part[0]):
        order, _, label = ids[int(row) - 1].partition(" ")
        if classes:
            yield int(order), Told(label, {classes[int(place)]: float(number) for _, place, number in parts})
        else:
            yield int(order), Told(label, {}, next(float(number) for _, _, number in parts))
