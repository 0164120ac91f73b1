"""The specification of boosted trees: the `config` of an architecture, checked.

The object has the keys of `TreesSpec` and no others. A stranger may have written it, so every
number has bounds, and so has the room that a state takes.

The client has this module by a link, so its imports are relative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import TreesError
from .nouns import count_nouns

CLASS_NAME = "BoostedTrees"
"""The `class_name` of an architecture of boosted trees."""
MAX_COLUMNS = (1 << 16) - 1
MAX_CODES = 1 << 24
MAX_LEAVES = 1024
MAX_TREES = 100_000
MAX_NODES = 1 << 25
"""Leaves of all trees that a state has room for: about 800 MB."""
MAX_LEVELS = 4096
"""Levels of a category whose sets are stored as bits."""
WORD_BITS = 32
IDENTITY = "identity"
LOG = "log"
"""Links: scores of a number add up to it, or to the logarithm of its distance from `low`."""
BEST = "best"
RANDOM = "random"
"""Where a tree splits a column: at the best place, or at a random one."""
DEFAULTS = {"link": IDENTITY, "splits": BEST}
"""Values of a config that lacks them."""
INPUTS = ("numbers", "indicators", "missing", "cardinalities", "vectors", "words")


@dataclass(frozen=True)
class PackedInputs:
    """The packed inputs of a table, as networks get them."""

    numbers: int  # first columns of the first array
    indicators: int  # columns of the first array behind the numbers
    missing: tuple[tuple[int, int], ...]  # a number's column, and that of its missing indicator
    cardinalities: tuple[int, ...]  # number of codes of each category, in the second array
    vectors: tuple[int, ...]  # elements of each further array; 0 for one that is not read so
    words: tuple[tuple[int, ...], ...] = ()
    """Numbers of the words that are counted in each further array; none if it has no words.

    Empty if no array has any.
    """

    @property
    def width(self) -> int:
        """Columns of the first array."""
        return self.numbers + self.indicators

    @cached_property
    def first_columns(self) -> tuple[int, ...]:
        """Columns of the first array that are columns of the trees."""
        hidden = {indicator for _, indicator in self.missing}
        return tuple(column for column in range(self.width) if column not in hidden)

    @property
    def columns(self) -> int:
        """Columns of the trees."""
        return len(self.first_columns) + len(self.cardinalities) + sum(self.widths)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Columns of the trees from each further array.

        An array of words has a column for each word that is counted, and one for all words.
        """
        word_lists = self.words or ((),) * len(self.vectors)
        return tuple(
            len(words) + 1 if words else size
            for size, words in zip(self.vectors, word_lists, strict=True)
        )

    def find_words(self, array: int) -> tuple[int, ...]:
        """Return the numbers of the words that are counted in a further array."""
        if not self.words:
            return ()
        return self.words[array]

    @property
    def first_category(self) -> int:
        """The column of the trees that has the codes of the first category."""
        return len(self.first_columns)

    @property
    def arrays(self) -> int:
        """Number of arrays."""
        return bool(self.width) + bool(self.cardinalities) + len(self.vectors)


@dataclass(frozen=True)
class TreesSpec:
    """The specification of a configuration of boosted trees."""

    inputs: PackedInputs
    units: int  # 1 for a number, else the number of classes
    low: float | None  # the smallest prediction of a number
    high: float | None
    trees: int  # rounds of the whole run
    epochs: int
    leaves: int  # of a tree, at most
    learning_rate: float
    min_rows: int  # of a leaf
    l2: float
    row_share: float  # of the rows, drawn for each round
    column_share: float  # of the columns, drawn for each split
    max_bins: int  # of a column
    category_levels: int  # categories with more codes are read as numbers
    link: str = IDENTITY  # of a number: what scores add up to
    splits: str = BEST  # where a tree splits a column

    @classmethod
    def from_architecture(cls, architecture: Mapping[str, Any]) -> TreesSpec:
        """Read the specification of an architecture.

        Raises:
            TreesError: a value is missing, unknown or out of range.
        """
        if architecture.get("class_name") != CLASS_NAME:
            class_name = repr(architecture.get("class_name"))
            raise TreesError(f"the architecture is {class_name:.80}, expected {CLASS_NAME!r}")
        unknown = sorted(set(architecture) - {"class_name", "config"})
        if unknown:
            raise TreesError(f"an architecture of boosted trees has no {', '.join(unknown):.80}")
        values = architecture.get("config")
        if isinstance(values, dict):
            values = {**DEFAULTS, **values}
        config = Fields("config", values, cls.__dataclass_fields__)
        spec = cls(
            inputs=_read_inputs(config.values["inputs"]),
            units=config.read_integer("units", 1, MAX_COLUMNS),
            low=config.read_bound("low"),
            high=config.read_bound("high"),
            trees=config.read_integer("trees", 1, MAX_TREES),
            epochs=config.read_integer("epochs", 1, MAX_TREES),
            leaves=config.read_integer("leaves", 2, MAX_LEAVES),
            learning_rate=config.read_number("learning_rate", 0.0, 10.0, is_open=True),
            min_rows=config.read_integer("min_rows", 1, (1 << 31) - 1),
            l2=config.read_number("l2", 0.0, 1e9),
            row_share=config.read_number("row_share", 0.0, 1.0, is_open=True),
            column_share=config.read_number("column_share", 0.0, 1.0, is_open=True),
            max_bins=config.read_integer("max_bins", 2, 4095),
            category_levels=config.read_integer("category_levels", 0, MAX_LEVELS),
            link=config.read_choice("link", (IDENTITY, LOG)),
            splits=config.read_choice("splits", (BEST, RANDOM)),
        )
        spec._check_size()
        spec._check_link()
        return spec

    def _check_size(self) -> None:
        if not 1 <= self.inputs.columns <= MAX_COLUMNS:
            raise TreesError(
                f"boosted trees read from 1 to {MAX_COLUMNS} columns, received "
                f"{self.inputs.columns}",
                sqlstate="54000",
                hint="Texts and pictures are for networks.",
            )
        if self.tree_room * self.leaves > MAX_NODES:
            raise TreesError(
                f"there are {count_nouns(self.tree_room, 'tree')}, each with "
                f"{count_nouns(self.leaves, 'leaf')}: more than {MAX_NODES} leaves together",
                sqlstate="54000",
                hint="Fewer trees or fewer leaves take less room.",
            )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise TreesError(f"low is {self.low}, above high, which is {self.high}")

    def _check_link(self) -> None:
        has_range = self.low is not None and self.high is not None and self.low < self.high
        if self.link == LOG and not (self.units == 1 and has_range):
            raise TreesError(
                f"the link {LOG!r} is for a number from low to high; received "
                f"{count_nouns(self.units, 'unit')}, low {self.low} and high {self.high}"
            )

    @property
    def has_logarithms(self) -> bool:
        """True if scores add up to the logarithm of a number's distance from `low`."""
        return self.link == LOG

    @property
    def outputs(self) -> int:
        """Trees of a round, and raw scores of a row."""
        if self.units <= 2:
            return 1
        return self.units

    @property
    def tree_room(self) -> int:
        """Trees that a state has room for."""
        return self.trees * self.outputs

    @property
    def rounds_per_epoch(self) -> int:
        """Rounds that an epoch grows, as long as there is room."""
        return math.ceil(self.trees / self.epochs)

    @cached_property
    def native_categories(self) -> tuple[int, ...]:
        """Columns of the trees that are split by sets of codes."""
        first = self.inputs.first_category
        return tuple(
            first + position
            for position, count in enumerate(self.inputs.cardinalities)
            if count - 1 <= self.category_levels
        )

    @property
    def set_words(self) -> int:
        """Words of 32 bits that a set of codes has room for."""
        first = self.inputs.first_category
        counts = [self.inputs.cardinalities[column - first] for column in self.native_categories]
        return math.ceil(max(counts, default=0) / WORD_BITS)


class Fields:
    """The fields of a JSON object with exactly the expected keys.

    Raises:
        TreesError: a key is missing or unknown.
    """

    def __init__(self, name: str, value: object, keys: Sequence[str] | Mapping[str, Any]) -> None:
        if not isinstance(value, dict):
            raise TreesError(f'"{name}" of boosted trees must be an object, received {value!r:.80}')
        if set(value) != set(keys):
            missing = ", ".join(sorted(set(keys) - set(value))) or "no key"
            unknown = ", ".join(sorted(set(value) - set(keys))) or "no key"
            raise TreesError(
                f'"{name}" of boosted trees lacks {missing:.150}, and has {unknown:.150} that is '
                "unknown"
            )
        self.values: dict[str, Any] = value
        self._name = name

    def read_integer(self, key: str, low: int, high: int) -> int:
        """Return a whole number within bounds."""
        value = self.values[key]
        if type(value) is not int or not low <= value <= high:
            raise TreesError(
                f'"{key}" of boosted trees must be a whole number from {low} to {high}, received '
                f"{value!r:.80}"
            )
        return value

    def read_number(self, key: str, low: float, high: float, *, is_open: bool = False) -> float:
        """Return a number within bounds.

        Args:
            is_open: the lowest bound itself is not allowed.
        """
        value = self.values[key]
        is_number = type(value) in (int, float) and math.isfinite(value)
        if not is_number or not low <= value <= high or (is_open and value == low):
            lowest = ("from", "above")[is_open]
            raise TreesError(
                f'"{key}" of boosted trees must be a number {lowest} {low:g} to {high:g}, received '
                f"{value!r:.80}"
            )
        return float(value)

    def read_choice(self, key: str, choices: Sequence[str]) -> str:
        """Return one of several texts."""
        value = self.values[key]
        if value not in choices:
            raise TreesError(
                f'"{key}" of boosted trees must be one of {", ".join(choices)}, received '
                f"{value!r:.80}"
            )
        return str(value)

    def read_bound(self, key: str) -> float | None:
        """Return a finite number or None."""
        if self.values[key] is None:
            return None
        return self.read_number(key, -1e300, 1e300)


def _read_inputs(value: object) -> PackedInputs:
    if isinstance(value, dict):
        value = {"words": [], **value}
    fields = Fields("inputs", value, INPUTS)
    numbers = fields.read_integer("numbers", 0, MAX_COLUMNS)
    indicators = fields.read_integer("indicators", 0, MAX_COLUMNS)
    pairs = _read_list(fields.values, "missing")
    width = numbers + indicators
    missing = tuple(_read_pair(pair, numbers, width) for pair in pairs)
    # The numbers of one column, such as the parts of a point in time, share an indicator.
    if len({number for number, _ in missing}) != len(missing):
        raise TreesError(f'"missing" of boosted trees has one number twice: {pairs!r}'[:300])
    vectors = _read_integers(fields.values, "vectors", 0, MAX_COLUMNS)
    return PackedInputs(
        numbers,
        indicators,
        missing,
        _read_integers(fields.values, "cardinalities", 2, MAX_CODES),
        vectors,
        _read_words(fields.values, vectors),
    )


def _read_words(values: Mapping[str, Any], vectors: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the words of each further array, which increase."""
    entries = _read_list(values, "words")
    if not entries:
        return ()
    words = tuple(_read_integers({"words": numbers}, "words", 1, MAX_CODES) for numbers in entries)
    if len(words) != len(vectors):
        raise TreesError(
            f'"words" of boosted trees must have a list for each of '
            f"{count_nouns(len(vectors), 'array')}, received {len(words)}"
        )
    if any(numbers and size for numbers, size in zip(words, vectors, strict=True)):
        raise TreesError('"words" of boosted trees are of arrays that "vectors" has 0 for')
    if any(list(numbers) != sorted(set(numbers)) for numbers in words):
        raise TreesError('"words" of boosted trees must increase in each list')
    return words


def _read_pair(value: object, numbers: int, width: int) -> tuple[int, int]:
    is_pair = isinstance(value, list) and len(value) == 2 and {*map(type, value)} == {int}
    if is_pair and isinstance(value, list):
        number, indicator = value
        if 0 <= number < numbers <= indicator < width:
            return number, indicator
    raise TreesError(
        f'"missing" of boosted trees must pair a number below {numbers} with an indicator below '
        f"{width}, received {value!r:.80}"
    )


def _read_list(values: Mapping[str, Any], key: str) -> list[Any]:
    value = values[key]
    if not isinstance(value, list) or len(value) > MAX_COLUMNS:
        raise TreesError(f'"{key}" of boosted trees must be a list, received {value!r:.80}')
    return value


def _read_integers(values: Mapping[str, Any], key: str, low: int, high: int) -> tuple[int, ...]:
    entries = _read_list(values, key)
    if not all(type(entry) is int and low <= entry <= high for entry in entries):
        raise TreesError(
            f'"{key}" of boosted trees must be whole numbers from {low} to {high}, received '
            f"{entries!r:.80}"
        )
    return tuple(entries)
