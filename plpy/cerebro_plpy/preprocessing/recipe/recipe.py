"""A recipe: what was learned of raw columns from training rows, as data of a closed grammar.

It is kept as JSON, which whoever owns a model could have changed. So it is checked as a whole each
time that it is read; what is made of it afterwards relies on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Table, wide_name
from cerebro_plpy.preprocessing.recipe.feature import (
    ABSENT,
    MARKED,
    SCALED,
    WIDE,
    Category,
    Feature,
    ImageFile,
    Input,
    LeftOut,
    Moment,
    Number,
    PlainArray,
    Text,
    Vector,
    WideFeature,
)
from cerebro_plpy.preprocessing.recipe.feature_json import read_feature, record, wrong
from cerebro_plpy.records import asdict, dataclass

VERSION = 1
MOST_FEATURES = 1600
"""As many columns as a table can have."""
MISSING = "missing"
"""What is 1 where a column has no value; all of these come after all others."""
FLOAT_BYTES = 4
NUMBERS_INPUT, CODES_INPUT = "numbers", "codes"
"""The names of the inputs that columns share."""


class Places(NamedTuple):
    """A column of the table, and its positions in those of a network's inputs that have something
    of it, by name.
    """

    column: str
    inputs: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Recipe:
    """The features of a table, in the order of its columns."""

    features: tuple[Feature, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Those that are inputs."""
        return tuple(each for each in self.features if not isinstance(each, LeftOut))

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The inputs that are numbers, in order: the column of each, and what of it."""
        scaled = [each for each in self.inputs if isinstance(each, SCALED)]
        parts = [(each.column, part) for each in self.inputs for part in _parts(each)]
        return (*parts, *((each.column, MISSING) for each in scaled if each.missing))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """How many codes each category has, 0 included."""
        return tuple(len(each.values) + 1 for each in self.inputs if isinstance(each, Category))

    @property
    def wide(self) -> tuple[WideFeature, ...]:
        """The columns that are an input of their own, in order."""
        return tuple(each for each in self.inputs if isinstance(each, WIDE))

    @property
    def room(self) -> int:
        """About how many numbers of four bytes go into a row on its way to a trainer, or out of it
        there.
        """
        files = sum(each.bytes // FLOAT_BYTES for each in self.wide if isinstance(each, ImageFile))
        return max(self.table.elements, files)

    @property
    def places(self) -> tuple[Places, ...]:
        """What of a network's inputs each column is, in the order of `inputs`."""
        columns = {
            NUMBERS_INPUT: [column for column, _ in self.numbers],
            CODES_INPUT: [each.column for each in self.inputs if isinstance(each, Category)],
            **{
                wide_name(place): [each.column] * each.wide.elements
                for place, each in enumerate(self.wide, 1)
            },
        }
        found: dict[str, dict[str, list[int]]] = {each.column: {} for each in self.inputs}
        for name, of in columns.items():
            for place, column in enumerate(of):
                found[column].setdefault(name, []).append(place)
        return tuple(
            Places(column, {name: tuple(of[name]) for name in of}) for column, of in found.items()
        )

    @property
    def table(self) -> Table:
        """What a template makes a network for; raises InvalidParameter where there is no input."""
        missing = sum(what == MISSING for _, what in self.numbers)
        wide = tuple(each.wide for each in self.wide)
        pieces = tuple(found for each in self.inputs for found in _pieces(each))
        return Table(len(self.numbers) - missing, missing, self.cardinalities, wide, pieces)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` takes it."""
        return {
            "version": VERSION,
            "features": [{"kind": each.kind, **asdict(each)} for each in self.features],
        }

    @classmethod
    def from_json(cls, value: object) -> Recipe:
        """The recipe that this is; raises DataCorrupted where it is none, whatever it is."""
        found = record(value, "recipe", "version", "features")
        if found["version"] != VERSION:
            raise wrong("version", found["version"], f"{VERSION}")
        features = found["features"]
        if not isinstance(features, list) or len(features) > MOST_FEATURES:
            raise wrong("features", features, f"a list of at most {MOST_FEATURES}")
        read = tuple(read_feature(each) for each in features)
        if len({each.column for each in read}) < len(read):
            raise wrong("features", [each.column for each in read], "no column twice")
        return cls(read)


def _pieces(feature: Input) -> Iterable[tuple[float, ...]]:
    """Of each of these numbers in what pieces its range is."""
    if isinstance(feature, Number):
        return (feature.scale.pieces,)
    if isinstance(feature, Moment):
        return (scale.pieces for scale in feature.parts.values())
    if isinstance(feature, Vector):
        return (scale.pieces for scale in feature.scales)
    return ((),) * len(tuple(_parts(feature)))


def _parts(feature: Input) -> Iterable[str]:
    """What of a column is a number of its own."""
    if isinstance(feature, Vector):
        return map(str, feature.places)
    if isinstance(feature, MARKED):
        return (ABSENT,) * feature.missing
    if isinstance(feature, (Category, Text, PlainArray)):
        return ()
    return feature.parts if isinstance(feature, Moment) else ("value",)
