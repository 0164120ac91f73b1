"""The tables that a call names.

Each name is resolved once; afterwards the run reads these tables only.
"""

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
from cerebro_plpy.run.request.run_request import SamplingPlan
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import check_validation
from cerebro_plpy.tables.model_selection_table import (
    SelectionSummary,
    check_models,
    find_architectures,
    read_summary,
)


@dataclass(frozen=True)
class PackedData:
    """The packed rows of a run; both tables are spread over the same segments."""

    source: PackedTable
    validation: PackedTable | None


@dataclass(frozen=True)
class PackedInputs:
    """The packed tables that a call names."""

    source: PackedRelation
    validation: PackedRelation | None

    def read(self, catalog: Catalog, reader: Session) -> PackedData:
        """Read both tables and check that they fit each other."""
        source = read_packed(catalog, reader, self.source)
        if self.validation is None:
            return PackedData(source, None)
        validation = read_packed(catalog, reader, self.validation)
        check_validation(catalog, source, validation)
        return PackedData(source, align_segments(source, validation))

    def get_relations(self) -> dict[str, Relation]:
        """Return the tables by their roles, as in the log."""
        relations: dict[str, Relation] = {}
        for role, packed in (("source", self.source), ("validation", self.validation)):
            if packed:
                relations[role] = packed.table
            if packed and packed.summary:
                relations[f"{role}_summary"] = packed.summary
        return relations


class ModelInputs(NamedTuple):
    """The configurations to train, and the source of configurations that are sampled later."""

    configs: tuple[Config, ...]
    architectures: dict[int, StoredModel]  # by model id
    table: Relation | None  # the architecture table, if there is one
    backends: Mapping[int, str]  # frameworks by mst_key, as far as they are chosen
    sampling: SamplingPlan | None = None

    @property
    def config_count(self) -> int:
        """Return the number of configurations, including those to be sampled later."""
        if self.sampling is None:
            return len(self.configs)
        return len(self.configs) + self.sampling.total_remaining


@dataclass(frozen=True)
class InputTables:
    """The tables of a fit call."""

    packed: PackedInputs
    architectures: Relation
    selection: Relation | None  # None: the call trains a single model
    selection_summary: Relation | None  # None: AutoML will create the model selection table
    objects: Relation | None
    object_table: str | None  # the name of the object table, as in the call

    def list_existing(self) -> list[Relation]:
        """Return the tables that exist before the run."""
        relations = self.get_relations()
        if self.selection_summary is None:
            relations.pop("selection", None)
        return list(relations.values())

    def get_relations(self) -> dict[str, Relation]:
        """Return the tables by their roles, as in the log."""
        models = {
            "selection": self.selection,
            "selection_summary": self.selection_summary,
            "architectures": self.architectures,
            "objects": self.objects,
        }
        existing = {role: relation for role, relation in models.items() if relation}
        return {**self.packed.get_relations(), **existing}


def find_packed_inputs(
    catalog: Catalog, source: str | None, validation: str | None
) -> PackedInputs:
    """Find packed tables by their names."""
    source_table = find_packed(catalog, source)
    if validation is None:
        return PackedInputs(source_table, None)
    return PackedInputs(source_table, find_packed(catalog, validation, "validation"))


def find_inputs(catalog: Catalog, arguments: FitArguments) -> InputTables:
    """Find the tables that a fit call names and those that its model selection table refers to."""
    packed = find_packed_inputs(catalog, arguments.source_table, arguments.validation_table)
    selection = None
    summary = None
    if arguments.single:
        names = SelectionSummary(arguments.single.model_arch_table, arguments.single.object_table)
    else:
        selection = catalog.resolve_input(arguments.model_selection_table, "model selection")
        summary = catalog.find_companion(selection, "_summary")
        names = read_summary(catalog, selection, summary, LocalSession(catalog.db))
    architectures = find_architectures(catalog, names, selection)
    objects = object_table.find(catalog, names.objects)
    return InputTables(packed, architectures, selection, summary, objects, names.objects)


def find_search_inputs(
    catalog: Catalog, arguments: AutomlArguments, selection: Relation | None = None
) -> InputTables:
    """Find the tables that an AutoML call reads.

    Args:
        selection: the model selection table that the call will create.
    """
    packed = find_packed_inputs(catalog, arguments.source_table, arguments.validation_table)
    architectures = check_models(catalog, arguments.model_arch_table, arguments.model_id_list)
    objects = object_table.find(catalog, arguments.object_table)
    return InputTables(packed, architectures, selection, None, objects, arguments.object_table)
