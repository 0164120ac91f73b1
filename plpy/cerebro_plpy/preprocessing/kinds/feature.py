"""The interface of a kind of column: everything that the backend needs to know about a feature.

A kind is a subclass in a module of this package, which the registry finds by itself. By default, a
column has no part in any input; a kind overrides the methods of its parts.

`row` is the alias of the row in a statement. Methods that return several expressions return them in
the order in which the network, the trainer and the exported recipe expect them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeVar

from cerebro_plpy.configs.templates.layers.model_io import Wide
from cerebro_plpy.preprocessing.values import thumbnails
from cerebro_plpy.preprocessing.values.checks import Json, check_record
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.scale import ScaleConstants
from cerebro_plpy.records import asdict, dataclass, fields

VALUE = "value"
"""The part of a column that is one number."""
LENGTH = "length"
AS_IT_IS: tuple[float, ...] = ()
"""The pieces of a number of which no edges are known."""
MISSING_NOTES = {True: "; where it is missing is an input of its own", False: ""}
ROBUST_SCALE = "centred by the median, scaled by the quartiles of training rows"
FeatureType = TypeVar("FeatureType", bound="Feature")


class NetworkInput(NamedTuple):
    """An input of a network, as rows are packed and sent."""

    name: str  # where rows are packed, and in the network
    kind: str  # how a trainer reads the bytes
    value: Expression
    division: dict[str, object] | None = None  # the column, and what divides its arrays

    @property
    def entry(self) -> dict[str, object]:
        """The description of the input for a trainer."""
        return {"kind": self.kind, **(self.division or {})}

    @property
    def sent(self) -> Expression:
        """The bytes that a trainer takes."""
        text = f"cerebro_internal.array_bytes({self.value.text})"
        if self.kind == thumbnails.KIND:
            text = f"pg_catalog.array_send(ARRAY[{self.value.text}])"
        return Expression(text, self.value.values)


@dataclass(frozen=True)
class Feature:
    """A raw column and the inputs of a network that are computed from it."""

    kind: ClassVar[str]
    is_input: ClassVar[bool] = True
    is_time: ClassVar[bool] = False
    has_edges: ClassVar[bool] = True
    """True if the bins of a drift profile lie between edges."""

    type_fields: ClassVar[tuple[str, ...]] = ("family",)
    """Fields that follow from the type of the column."""

    column: str

    # Stored form

    def to_json(self) -> Json:
        """Return the feature as `from_json` reads it."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls: type[FeatureType], value: Json) -> FeatureType:
        """Read a stored feature; raises DataCorrupted if a part is not as expected."""
        raise NotImplementedError

    @classmethod
    def check_fields(cls, value: Json) -> Json:
        """Return a stored feature that has all fields of this class and no others."""
        return check_record(value, "feature", "kind", *(field.name for field in fields(cls)))

    @classmethod
    def is_stored_as(cls, value: Json) -> bool:
        """Return whether a stored feature of this kind is of this class; few kinds have two."""
        return True

    def without_type(self) -> tuple[str, Json]:
        """Return what is equal for features that compute the same inputs from other types."""
        fields = asdict(self)
        return self.kind, {name: fields[name] for name in fields if name not in self.type_fields}

    # Inputs of the network

    @property
    def number_parts(self) -> Sequence[str]:
        """The names of the numbers of the column, which are parts of its value."""
        return ()

    @property
    def number_pieces(self) -> Sequence[tuple[float, ...]]:
        """For each of these numbers, the ends of ranges with about as many training rows each."""
        return (AS_IT_IS,) * len(self.number_parts)

    @property
    def has_missing_flag(self) -> bool:
        """True if a number behind all others shows that the value is missing."""
        return False

    @property
    def cardinality(self) -> int | None:
        """The number of codes, 0 included; None if the column has no code."""
        return None

    @property
    def code_values(self) -> Sequence[str]:
        """The values that have a code, in the order of their codes."""
        return ()

    @property
    def wide(self) -> WideFeature | None:
        """The feature itself if it is an input of its own."""
        return None

    @property
    def file_bytes(self) -> int:
        """The size of a usual file in the column."""
        return 0

    def numbers(self, row: str) -> list[Expression]:
        """Return `number_parts` as the network takes them."""
        return []

    def missing_flag(self, row: str) -> Expression:
        """Return 1 if the value is missing, else 0; only if `has_missing_flag`."""
        value = self.any_value(row)
        text = f"CASE WHEN {value.text} IS NULL THEN '1'::real ELSE '0'::real END"
        return Expression(text, value.values)

    def any_value(self, row: str) -> Expression:
        """Return an expression that is NULL exactly if the value is missing."""
        raise NotImplementedError

    def code(self, row: str) -> Expression:
        """Return the code of the value; only if there is a `cardinality`."""
        raise NotImplementedError

    def unknown_value(self, row: str) -> Expression | None:
        """Return the text of a value that counts as missing though it is none, else NULL.

        Such a value is a category that is not learned, or a text that is not in a format.

        The result is None if every value is an input.
        """
        return None

    # The same without anything learned: expressions, and constants that a trainer applies

    def outline(self) -> Feature:
        """Return the feature without anything that was learned from values."""
        return self

    def raw_numbers(self, row: str) -> list[Expression]:
        """Return the numbers that a trainer computes `number_parts` from; NULL if missing."""
        return []

    def hashes(self, row: str) -> list[Expression]:
        """Return the hashes that a trainer finds the code by."""
        return []

    @property
    def scale_constants(self) -> list[ScaleConstants]:
        """The scale of each of `number_parts`."""
        return []

    @property
    def raw_parts(self) -> list[Sequence[str]]:
        """For each of `raw_numbers`, the parts that are computed from it."""
        return [(VALUE,)] * len(self.number_parts)

    @property
    def deciding_numbers(self) -> int:
        """The number of `raw_numbers` that are NaN if the value is missing."""
        return 1

    # Drift

    @property
    def drift_parts(self) -> Sequence[str]:
        """The parts whose distribution is compared; the first is missing if the value is."""
        return (VALUE,)

    def drift_value(self, part: str) -> Expression:
        """Return a part as double precision; NULL if it is missing."""
        raise NotImplementedError

    def drift_bin(self, part: str, edges: Sequence[float]) -> Expression:
        """Return the number of the bin that a part lies in."""
        value = self.drift_value(part)
        text = f"pg_catalog.width_bucket({value.text}, %s::{DOUBLE}[])"
        return Expression(text, (*value.values, list(map(float, edges))))

    def count_bins(self, edges: Sequence[float]) -> int:
        """Return the number of bins of a part."""
        return len(edges) + 1

    # Other tables, and rows as JSON

    def over_column(self, column: RawColumn) -> Feature | None:
        """Return the feature over a column of another table; None if the type does not fit."""
        raise NotImplementedError

    @property
    def expected_values(self) -> str:
        """The values that the column may have, for messages."""
        raise NotImplementedError

    @property
    def blank_value(self) -> object:
        """The value of a column in a JSON record without content; None if it may be missing."""
        return None

    def suggest_cast(self, column: RawColumn) -> str | None:
        """Return SQL that makes a value of the expected type of a column that does not fit."""
        return None

    def record_type(self, source_type: str | None) -> str:
        """Return the type that a value in a JSON record is read as.

        Args:
            source_type: the type of the column in the table that the model was trained on.
        """
        raise NotImplementedError

    def over_record(self, record_type: str) -> Feature:
        """Return the feature over a value that was read as this type."""
        return self

    @property
    def has_settings(self) -> bool:
        """True if expressions over a record depend on settings, whatever its types are."""
        return False

    # Descriptions

    @property
    def description(self) -> str:
        """The inputs that are made of the column, for `cerebro.plan`."""
        raise NotImplementedError

    @property
    def explanation(self) -> str | None:
        """The reason for these inputs or their constants, for `cerebro.plan`."""
        return ROBUST_SCALE

    @property
    def shown_constants(self) -> Json:
        """The constants that `cerebro.plan` shows."""
        constants = asdict(self)
        del constants["column"]
        return constants


@dataclass(frozen=True)
class WideFeature(Feature):
    """A column that is an input of its own."""

    @property
    def wide(self) -> WideFeature:
        return self

    @property
    def shape_of_input(self) -> Wide:
        """The network's input."""
        raise NotImplementedError

    def value(self, row: str) -> Expression:
        """Return the input, of the same shape in every row and never NULL.

        Arrays that a network takes as they are make an exception: the trainer checks these.
        """
        raise NotImplementedError

    def extent(self, row: str) -> Expression:
        """Return the length of the value as double precision; NULL if it is missing."""
        raise NotImplementedError

    def network_input(self, name: str, row: str) -> NetworkInput:
        """Return the input with all constants applied."""
        return NetworkInput(name, self.shape_of_input.dtype, self.value(row))

    def raw_network_input(self, name: str, row: str) -> NetworkInput:
        """Return the input as a trainer takes it that applies the constants itself."""
        return self.network_input(name, row)

    def input_constants(self, name: str) -> Json:
        """Return how the raw input is sent, and its scales."""
        return {"kind": self.network_input(name, "t").kind, "scales": []}

    @property
    def drift_parts(self) -> Sequence[str]:
        return (LENGTH,)

    def drift_value(self, part: str) -> Expression:
        return self.extent("t")
