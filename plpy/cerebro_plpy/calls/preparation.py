"""From a raw table to packed tables of a run: looked at, and packed by its recipe, in one transaction of one session.

What it makes lies in schema cerebro_state and belongs to the caller; it stays as long as the run may be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from cerebro_plpy.calls.compared_rows import pack_compared, version_to_compare
from cerebro_plpy.calls.inputs import Data, PackedInputs, find_packed_inputs
from cerebro_plpy.calls.run_tables import drop_data
from cerebro_plpy.configs.train_spec import Compared
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.dispatch import Session, transaction
from cerebro_plpy.database.platform import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.features import profile
from cerebro_plpy.features.digest import Digest, digest, fingerprint
from cerebro_plpy.features.encoding import network_inputs
from cerebro_plpy.features.halves import constants_by_input
from cerebro_plpy.features.part import raw_rows
from cerebro_plpy.features.profile import Profile
from cerebro_plpy.features.table import SETTINGS, RawTable
from cerebro_plpy.features.target import CLASSIFICATION
from cerebro_plpy.packing.fill import usual_rows
from cerebro_plpy.packing.grouped import Grouped, Layout, grouped_layouts
from cerebro_plpy.platform.state_tables import SIDES, data_table
from cerebro_plpy.platform.workplace import Workplace

MODULE = "train"
SNAPSHOT = "REPEATABLE READ"
Look = Callable[[Reader], RawTable]
KINDS = {True: "class", False: "float"}


class Prepared(NamedTuple):
    """A raw table, the packed tables that were made of it, and what its training rows were like.

    `counts` are those of each class, as far as they are known, and `hashes` what the fingerprint is made of; so many
    `additions` were packed beside rows of an earlier run. Rows of groups lie as `grouped` says.
    """

    table: RawTable
    profile: Profile
    inputs: PackedInputs
    data: Data
    hashes: tuple[int, int]
    counts: tuple[int, ...]
    additions: int = 0
    grouped: Grouped | None = None
    compared: Compared | None = None

    @property
    def fingerprint(self) -> str:
        """What tells these rows from others."""
        return fingerprint(*self.hashes)


@contextmanager
def packed(workplace: Workplace, run_id: int, work: Callable[[], Prepared]) -> Iterator[Prepared]:
    """Yield what `work` has packed for a run; after an error drop it if the run is not in the log."""
    try:
        yield work()
    except BaseException:
        with suppress(CerebroError):  # where that session is lost, cerebro.vacuum_runs removes it
            if not workplace.control.run(sql("run.logged"), (run_id,)):
                drop_data(workplace.control, run_id)
        raise


def prepare(catalog: Catalog, workplace: Workplace, look: Look, run_id: int, model: str | None = None) -> Prepared:
    """Pack both sides of a table for a run, as `look` finds it, to be compared with what a model predicts so far."""
    control = workplace.control
    with transaction(control, SNAPSHOT):
        control.run(sql("session.configure"), (json.dumps(SETTINGS),))
        table = look(control)
        training, validation = digests(workplace, table)
        grouped = layouts(catalog, table) if table.groups else None
        _pack(control, table, run_id, (training, grouped))
        other = version_to_compare(catalog, model, table) if model is not None else None
        compared = pack_compared(catalog, control, table, other, run_id, validation.rows) if other else None
        seen = profile.measure(control, table.source, table.source.rows or 0, table.recipe)
    inputs = find_packed_inputs(catalog, *(data_table(run_id, name) for name in SIDES))
    data = inputs.read(catalog, workplace.reader)
    counts = tuple(training.counts.get(name, 0) for name in table.target.values)
    hashes = training.hashes, validation.hashes
    return Prepared(table, seen, inputs, data, hashes, counts, grouped=grouped, compared=compared)


def digests(workplace: Workplace, table: RawTable) -> tuple[Digest, Digest]:
    """Put the raw rows of both sides in order, until the transaction ends; and what tells them from others."""
    control, classes, found = workplace.control, table.target.task == CLASSIFICATION, list[Digest]()
    for side, part in zip(SIDES, table.parts):
        output = f"pg_temp.cerebro_{side}"
        control.run(*raw_rows(workplace.platform, part, output, table.groups and table.groups.order))
        found.append(digest(control, part, output, classes))
    return found[0], found[1]


def layouts(catalog: Catalog, table: RawTable) -> Grouped:
    """Where rows of groups are to lie on either side."""
    assert table.groups is not None
    keys = catalog.db.platform.distribution(catalog.db, MODULE, None, None).first(table.rows).keys
    block = usual_rows(table.recipe.room + table.target.head.units)
    return grouped_layouts(table.groups, keys, block)


def _pack(control: Session, table: RawTable, run_id: int, of: tuple[Digest, Grouped | None]) -> None:
    (training, grouped), (output, validation) = of, (data_table(run_id, name) for name in SIDES)
    known = training.rows, [name for name in training.counts if name is not None]
    pack_training(control, table, output, known, grouped and grouped.training)
    pack_validation(control, table, (validation, output), grouped and grouped.validation)


def pack_training(
    control: Session, table: RawTable, output: str, known: tuple[int, list[str]], grouped: Layout | None = None
) -> None:
    """Pack the raw rows that are trained on; it is `known` how many they are, and of what classes."""
    kind = KINDS[table.target.task == CLASSIFICATION]
    weight = None if table.weight is None else "weight"
    told = _recipes(control, table, 0), _layout(grouped)
    control.run(sql("features.pack_training"), (output, _inputs(table), kind, weight, *known, *told))


def pack_validation(control: Session, table: RawTable, tables: tuple[str, str], grouped: Layout | None = None) -> None:
    """Pack the raw rows that are held back: the second of these tables has those that are trained on."""
    output, training = tables
    told = _recipes(control, table, 1), _layout(grouped)
    control.run(sql("features.pack_validation"), (output, _inputs(table), training, *told))


def _layout(grouped: Layout | None) -> str | None:
    return None if grouped is None else json.dumps(grouped.to_json())


def _recipes(control: Session, table: RawTable, side: int) -> str:
    """What makes inputs of the raw values of a side, as JSON."""
    return json.dumps(constants_by_input(control, table.parts[side].recipe))


def _inputs(table: RawTable) -> str:
    return ", ".join(each.name for each in network_inputs(table.recipe))
