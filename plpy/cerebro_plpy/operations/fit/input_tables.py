"""The tables that a call names, each name resolved once; afterwards nothing but these is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.packing.packed_table import (
    PackedRelation,
    PackedTable,
    align_segments,
    find_packed,
    read_packed,
)
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.request.run_request import Drawing
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import check_validation
from cerebro_plpy.tables.model_selection_table import SelectionSummary, check_models, read_summary


@dataclass(frozen=True)
class PackedData:
    """The packed table to train on, and that for validation, spread over the same segments."""

    source: PackedTable
    validation: PackedTable | None


@dataclass(frozen=True)
class PackedInputs:
    """The packed tables of a call."""

    source: PackedRelation
    validation: PackedRelation | None

    def read(self, catalog: Catalog, reader: Session) -> PackedData:
        """What they hold, checked against each other."""
        source = read_packed(catalog, reader, self.source)
        if self.validation is None:
            return PackedData(source, None)
        validation = read_packed(catalog, reader, self.validation)
        check_validation(catalog, source, validation)
        return PackedData(source, align_segments(source, validation))

    def relations(self) -> dict[str, Relation]:
        """All tables by what they are for the call, as the log names them."""
        packed = {"source": self.source, "validation": self.validation}
        found: dict[str, Relation] = {}
        for name, each in packed.items():
            found |= {name: each.table} if each else {}
            found |= {f"{name}_summary": each.summary} if each and each.summary else {}
        return found


class ModelInputs(NamedTuple):
    """What is trained: configurations, their architectures by model id, and the table that these
    are in, if any.

    `backends` are the frameworks by mst_key; none where they are still to be chosen. Others may be
    drawn meanwhile.
    """

    configs: tuple[Config, ...]
    architectures: dict[int, StoredModel]
    table: Relation | None
    backends: Mapping[int, str]
    drawing: Drawing | None = None

    @property
    def configurations(self) -> int:
        """How many configurations there are to be."""
        return len(self.configs) + (self.drawing.to_come if self.drawing else 0)


@dataclass(frozen=True)
class InputTables:
    """The tables of a fit call. Without a model selection table it is a call that trains a single
    model.

    `object_table` is the name of the object table as it was given.
    """

    packed: PackedInputs
    architectures: Relation
    selection: Relation | None
    selection_summary: Relation | None
    objects: Relation | None
    object_table: str | None

    def existing(self) -> list[Relation]:
        """Those that are there: a model selection table without a summary is still to be made."""
        made = self.selection is None or self.selection_summary is not None
        return [found for name, found in self.relations().items() if made or name != "selection"]

    def relations(self) -> dict[str, Relation]:
        """All tables by what they are for the call, as the log names them."""
        others = {
            "selection": self.selection,
            "selection_summary": self.selection_summary,
            "architectures": self.architectures,
            "objects": self.objects,
        }
        return {
            **self.packed.relations(),
            **{name: relation for name, relation in others.items() if relation},
        }


def find_packed_inputs(
    catalog: Catalog, source: str | None, validation: str | None
) -> PackedInputs:
    """The packed tables of these names."""
    return PackedInputs(
        find_packed(catalog, source),
        None if validation is None else find_packed(catalog, validation, "validation"),
    )


def find_inputs(catalog: Catalog, arguments: FitArguments) -> InputTables:
    """The tables that a fit call names, or that its model selection table refers to."""
    packed = find_packed_inputs(catalog, arguments.source_table, arguments.validation_table)
    selection = summary = None
    if arguments.single:
        named = SelectionSummary(arguments.single.model_arch_table, arguments.single.object_table)
    else:
        selection = catalog.resolve_input(arguments.model_selection_table, "model selection")
        summary = catalog.find_companion(selection, "_summary")
        named = read_summary(catalog, selection, summary, LocalSession(catalog.db))
    return InputTables(
        packed=packed,
        architectures=catalog.resolve_input(
            named.architectures, "model architecture", owner=selection
        ),
        selection=selection,
        selection_summary=summary,
        objects=object_table.find(catalog, named.objects),
        object_table=named.objects,
    )


def find_search_inputs(
    catalog: Catalog, arguments: AutomlArguments, chosen: Relation | None = None
) -> InputTables:
    """The tables that an AutoML call reads, and the model selection table that it is to make."""
    packed = find_packed_inputs(catalog, arguments.source_table, arguments.validation_table)
    architectures = check_models(catalog, arguments.model_arch_table, arguments.model_id_list)
    objects = object_table.find(catalog, arguments.object_table)
    return InputTables(packed, architectures, chosen, None, objects, arguments.object_table)
