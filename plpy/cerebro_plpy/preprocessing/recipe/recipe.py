"""A recipe: what was learned of raw columns from training rows, as data of a closed grammar.

Recipes are stored as JSON, which the owner of a model could have changed. So a recipe is checked as
a whole whenever it is read; everything that is built from it relies on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Table, wide_name
from cerebro_plpy.preprocessing.kinds.feature import Feature, WideFeature
from cerebro_plpy.preprocessing.kinds.registry import read_feature
from cerebro_plpy.preprocessing.values.checks import check_record, wrong
from cerebro_plpy.records import dataclass

VERSION = 1
MOST_FEATURES = 1600
"""PostgreSQL's limit of columns of a table."""
MISSING = "missing"
"""The part of a column that is 1 if its value is missing; these numbers come behind all others."""
FLOAT_BYTES = 4
NUMBERS_INPUT = "numbers"
CODES_INPUT = "codes"


class Places(NamedTuple):
    """A column of the table, and its positions in the inputs of a network."""

    column: str
    inputs: Mapping[str, tuple[int, ...]]  # by the name of the input


@dataclass(frozen=True)
class Recipe:
    """The features of a table, in the order of its columns."""

    features: tuple[Feature, ...]

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """The features that are inputs."""
        return tuple(feature for feature in self.features if feature.is_input)

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The column and the part of each input that is a number, in order."""
        parts = [(each.column, part) for each in self.inputs for part in each.number_parts]
        flags = [(each.column, MISSING) for each in self.inputs if each.has_missing_flag]
        return (*parts, *flags)

    @property
    def category_columns(self) -> tuple[str, ...]:
        """The columns that have codes, in order."""
        return tuple(each.column for each in self.inputs if each.cardinality is not None)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """How many codes each category has, 0 included."""
        counts = (each.cardinality for each in self.inputs)
        return tuple(count for count in counts if count is not None)

    @property
    def category_values(self) -> tuple[list[str], ...]:
        """The values of each category, in the order of their codes."""
        return tuple(list(each.code_values) for each in self.inputs if each.cardinality is not None)

    @property
    def wide(self) -> tuple[WideFeature, ...]:
        """The columns that are an input of their own, in order."""
        features = (each.wide for each in self.inputs)
        return tuple(feature for feature in features if feature is not None)

    @property
    def room(self) -> int:
        """About how many numbers of four bytes a row has on its way to a trainer, or in one."""
        files = sum(feature.file_bytes // FLOAT_BYTES for feature in self.inputs)
        return max(self.table.elements, files)

    @property
    def places(self) -> tuple[Places, ...]:
        """The positions of each column in the inputs of a network, in the order of `inputs`."""
        columns = {
            NUMBERS_INPUT: [column for column, part in self.numbers],
            CODES_INPUT: list(self.category_columns),
        }
        for place, feature in enumerate(self.wide, 1):
            elements = feature.shape_of_input.elements
            columns[wide_name(place)] = [feature.column] * elements
        positions: dict[str, dict[str, list[int]]] = {each.column: {} for each in self.inputs}
        for name, names in columns.items():
            for position, column in enumerate(names):
                positions[column].setdefault(name, []).append(position)
        return tuple(
            Places(column, {name: tuple(places) for name, places in by_input.items()})
            for column, by_input in positions.items()
        )

    @property
    def table(self) -> Table:
        """The table that a template builds a network for.

        Raises InvalidParameter if the recipe has no input.
        """
        flags = sum(part == MISSING for column, part in self.numbers)
        wide = tuple(feature.shape_of_input for feature in self.wide)
        pieces = tuple(piece for each in self.inputs for piece in each.number_pieces)
        return Table(len(self.numbers) - flags, flags, self.cardinalities, wide, pieces)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as `from_json` reads it."""
        return {"version": VERSION, "features": [each.to_json() for each in self.features]}

    @classmethod
    def from_json(cls, value: object) -> Recipe:
        """Read a stored recipe; raises DataCorrupted if the value is not one."""
        entry = check_record(value, "recipe", "version", "features")
        if entry["version"] != VERSION:
            raise wrong("version", entry["version"], f"{VERSION}")
        features = entry["features"]
        if not isinstance(features, list) or len(features) > MOST_FEATURES:
            raise wrong("features", features, f"a list of at most {MOST_FEATURES}")
        recipe = cls(tuple(map(read_feature, features)))
        columns = [feature.column for feature in recipe.features]
        if len(set(columns)) < len(columns):
            raise wrong("features", columns, "no column twice")
        return recipe
