"""A recipe: everything learned about raw columns from training rows, as data of a closed grammar.

Recipes are stored as JSON, which the owner of a model could have changed. So a recipe is checked
completely whenever it is read; everything that is built from it relies on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Table, wide_name
from cerebro_plpy.preprocessing.kinds.feature import Feature, WideFeature
from cerebro_plpy.preprocessing.kinds.registry import read_feature
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.values.checks import Json, check_choice, check_record, wrong
from cerebro_plpy.preprocessing.values.families import TEXT_NUMBERS
from cerebro_plpy.preprocessing.values.value_texts import FORMS
from cerebro_plpy.records import dataclass

VERSION = 1
MOST_FEATURES = 1600
"""PostgreSQL's limit of columns of a table."""
MISSING = "missing"
"""The part of a column that is 1 if its value is missing; these numbers come behind all others."""
FORM_FIELDS = ("label", "group")
TARGET_SCALE = "target_scale"
"""Key of the scale of labels, which recipes of earlier versions do not have."""
TARGET_FORMAT = "target_format"
"""Key of the format of a target whose numbers are written in texts."""
FLOAT_BYTES = 4
NUMBERS_INPUT = "numbers"
CODES_INPUT = "codes"


class Places(NamedTuple):
    """A column of the table, and its positions in the inputs of a network."""

    column: str
    inputs: Mapping[str, tuple[int, ...]]  # by the name of the input


@dataclass(frozen=True)
class Recipe:
    """The features of a table, in the order of its columns.

    A recipe of an earlier version has no forms: its classes and groups are texts as PostgreSQL
    writes them.
    """

    features: tuple[Feature, ...]
    label: str | None = None  # the form of the classes; None if numbers are predicted
    group: str | None = None  # the form of the values of groups; None without groups
    target_scale: TargetScale | None = None  # None for classes, and if labels are not scaled
    target_format: str | None = None  # of the texts that numbers to predict are read from

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """The features that are inputs."""
        return tuple(feature for feature in self.features if feature.is_input)

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The column and the part of each input that is a number, in order."""
        parts = [(feature.column, part) for feature in self.inputs for part in feature.number_parts]
        flags = [(feature.column, MISSING) for feature in self.inputs if feature.has_missing_flag]
        return (*parts, *flags)

    @property
    def category_columns(self) -> tuple[str, ...]:
        """The columns that have codes, in order."""
        return tuple(feature.column for feature in self.inputs if feature.cardinality is not None)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of codes of each category, 0 included."""
        counts = (feature.cardinality for feature in self.inputs)
        return tuple(count for count in counts if count is not None)

    @property
    def category_values(self) -> tuple[list[str], ...]:
        """The values of each category, in the order of their codes."""
        return tuple(
            list(feature.code_values) for feature in self.inputs if feature.cardinality is not None
        )

    @property
    def wide(self) -> tuple[WideFeature, ...]:
        """The columns that are an input of their own, in order."""
        features = (feature.wide for feature in self.inputs)
        return tuple(feature for feature in features if feature is not None)

    @property
    def room(self) -> int:
        """The approximate size of a row in a trainer or on its way, in numbers of four bytes."""
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
        positions: dict[str, dict[str, list[int]]] = {feature.column: {} for feature in self.inputs}
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
        flags = sum(part == MISSING for _, part in self.numbers)
        wide = tuple(feature.shape_of_input for feature in self.wide)
        pieces = tuple(piece for feature in self.inputs for piece in feature.number_pieces)
        numbers = len(self.numbers) - flags
        missing = self._list_missing(numbers)
        return Table(numbers, flags, self.cardinalities, wide, pieces, missing)

    def _list_missing(self, numbers: int) -> tuple[tuple[int, int], ...]:
        """Return the position of each number that may be missing, with that of its indicator.

        Args:
            numbers: number of columns before all indicators.
        """
        pairs = []
        number = 0
        indicator = numbers
        for feature in self.inputs:
            parts = range(number, number + len(feature.number_parts))
            number = parts.stop
            if feature.has_missing_flag:
                pairs += [(part, indicator) for part in parts]
                indicator += 1
        return tuple(pairs)

    def to_json(self) -> Json:
        """Return the recipe as `from_json` reads it."""
        forms = {name: getattr(self, name) for name in FORM_FIELDS}
        values: Json = {
            "version": VERSION,
            "features": [feature.to_json() for feature in self.features],
            **{name: form for name, form in forms.items() if form is not None},
        }
        if self.target_scale is not None:
            values[TARGET_SCALE] = self.target_scale.to_json()
        if self.target_format is not None:
            values[TARGET_FORMAT] = self.target_format
        return values

    @classmethod
    def from_json(cls, value: object) -> Recipe:
        """Read a stored recipe; raises DataCorrupted if the value is not one."""
        forms = _read_forms(value)
        target_names = _list_target_keys(value)
        entry = check_record(value, "recipe", "version", "features", *forms, *target_names)
        if entry["version"] != VERSION:
            raise wrong("version", entry["version"], f"{VERSION}")
        features = entry["features"]
        if not isinstance(features, list) or len(features) > MOST_FEATURES:
            raise wrong("features", features, f"a list of at most {MOST_FEATURES}")
        fields = {**forms, **_read_target(entry)}
        recipe = cls(tuple(map(read_feature, features)), **fields)
        columns = [feature.column for feature in recipe.features]
        if len(set(columns)) < len(columns):
            raise wrong("features", columns, "no column twice")
        return recipe


def _read_forms(value: object) -> dict[str, str]:
    """Return the forms that a stored recipe has."""
    if not isinstance(value, dict):
        return {}
    return {name: check_choice(value[name], name, FORMS) for name in FORM_FIELDS if name in value}


def _list_target_keys(value: object) -> list[str]:
    """Return the keys about the target that a stored recipe has; older ones have none."""
    if not isinstance(value, dict):
        return []
    return [name for name in (TARGET_SCALE, TARGET_FORMAT) if name in value]


def _read_target(entry: Json) -> dict[str, Any]:
    """Return the fields about the target that a stored recipe has."""
    fields: dict[str, Any] = {}
    if TARGET_SCALE in entry:
        fields[TARGET_SCALE] = TargetScale.from_json(entry[TARGET_SCALE])
    if TARGET_FORMAT in entry:
        fields[TARGET_FORMAT] = check_choice(entry[TARGET_FORMAT], TARGET_FORMAT, TEXT_NUMBERS)
    return fields
