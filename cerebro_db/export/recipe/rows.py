"""Convert rows of raw columns to the inputs of a network, and its outputs to predictions."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from . import scales, text_formats, text_hashing, tree_columns, value_texts, values
from .class_choice import choose_classes
from .nouns import count_nouns
from .scales import ARRAYS, PARTS, Array, Json, RawInput
from .values import is_missing

NUMBERS = "numbers"
CODES = "codes"
WIDE = "wide"
RAW = "raw_"
"""Prefix of the inputs of an ONNX graph that are raw numbers; the network's input follows."""
SEPARATE_INPUTS = (*ARRAYS, "text", "array")
"""Kinds of features that are inputs of their own."""
INTEGERS = {
    **{"smallint": 1 << 15, "integer": 1 << 31, "bigint": 1 << 63},
    **{"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63},
}
"""Smallest number that is too large for an integer type, by both names of the type."""
Columns: TypeAlias = Mapping[str, Iterable[Any]]
"""Values by column, such as a DataFrame."""
Numbers: TypeAlias = list[float | None]


class Answers(NamedTuple):
    """Predictions of rows, by column; None is an unknown value."""

    prediction: list[Any]  # a class or a number
    probability: Numbers  # of the predicted class; None for numbers
    probabilities: list[dict[str, float] | None]  # by class; None for numbers
    lower: Numbers  # the number less the margin; None for classes
    upper: Numbers  # the number plus the margin; None for classes

    def columns(self) -> dict[str, list[Any]]:
        """Return the prediction, and the other columns that have any value."""
        return {
            name: cells
            for name, cells in self._asdict().items()
            if name == "prediction" or any(cell is not None for cell in cells)
        }


@dataclass(frozen=True)
class RawRows:
    """The exported description of a model: the inputs of its network, and its outputs."""

    description: Json

    @classmethod
    def of(cls, text: str) -> RawRows:
        """Read the text of the JSON file that is exported with a model."""
        return cls(json.loads(text))

    @cached_property
    def features(self) -> list[Json]:
        """The features that are used as inputs."""
        return [f for f in self.description["features"] if f["kind"] != "left out"]

    @cached_property
    def wide_features(self) -> dict[str, Json]:
        """The features that are inputs of their own, by the names of the inputs."""
        features = [f for f in self.features if f["kind"] in SEPARATE_INPUTS]
        return {f"{WIDE}_{number}": feature for number, feature in enumerate(features, 1)}

    @cached_property
    def scaled_inputs(self) -> dict[str, RawInput]:
        """The inputs that are computed from raw numbers, by name."""
        columns = [(feature, list(scales.list_numbers(feature))) for feature in self.features]
        numbers = tuple(number for _, column_numbers in columns for number in column_numbers)
        inputs = {}
        if numbers:
            groups = tuple(scales.find_missing_groups(columns))
            inputs[NUMBERS] = RawInput(NUMBERS, numbers, groups)
        for name, feature in self.wide_features.items():
            if "scales" in feature:
                inputs[name] = RawInput(name, tuple(scales.list_elements(feature)))
        return inputs

    @cached_property
    def categories(self) -> list[Json]:
        """The features that are categories, in order."""
        return [feature for feature in self.features if feature["kind"] == "category"]

    @cached_property
    def network_names(self) -> dict[str, str]:
        """The names of the inputs in the network, by their names here, in order."""
        names = list(self.wide_features)
        if self.categories:
            names.insert(0, CODES)
        if NUMBERS in self.scaled_inputs:
            names.insert(0, NUMBERS)
        inputs = self.description.get("network_inputs")
        if inputs is None:
            return {name: name for name in names}
        return {name: entry["name"] for name, entry in zip(names, inputs, strict=True)}

    def raw(self, columns: Columns) -> dict[str, Array]:
        """Return the inputs of the ONNX graph, by name, before anything is scaled.

        Args:
            columns: values by column, such as a DataFrame.

        Raises:
            KeyError: a column is missing.
            ValueError: the type of a column does not fit.
        """
        return {
            (RAW if name in self.scaled_inputs else "") + self.network_names[name]: array
            for name, array in self._read_inputs(columns).items()
        }

    def inputs(self, columns: Columns) -> dict[str, Array]:
        """Return the inputs of the network, by name.

        Args:
            columns: values by column, such as a DataFrame.

        Raises:
            KeyError: a column is missing.
        """
        inputs = {}
        for name, array in self._read_inputs(columns).items():
            if name in self.scaled_inputs:
                array = self.scaled_inputs[name].scale(array)
            inputs[self.network_names[name]] = array
        return inputs

    def matrix(self, columns: Columns) -> Array:
        """Return the columns that boosted trees take, for a model exported as LightGBM.

        Args:
            columns: values by column, such as a DataFrame.

        Raises:
            KeyError: a column is missing.
        """
        trees = self.description[tree_columns.KEY]
        arrays = list(self.inputs(columns).values())
        return tree_columns.join_columns(arrays, trees["inputs"])

    def _read_inputs(self, columns: Columns) -> dict[str, Array]:
        """Return the inputs before they are scaled, by their names here."""
        cells = {feature["column"]: list(columns[feature["column"]]) for feature in self.features}
        inputs: dict[str, Array] = {}
        if NUMBERS in self.scaled_inputs:
            parts = [_read_numbers(feature, cells[feature["column"]]) for feature in self.features]
            inputs[NUMBERS] = np.concatenate([part for part in parts if part is not None], axis=1)
        if self.categories:
            codes = [_encode(feature, cells[feature["column"]]) for feature in self.categories]
            inputs[CODES] = np.array(codes, np.int32).T
        for name, feature in self.wide_features.items():
            inputs[name] = _read_wide(feature, cells[feature["column"]])
        return inputs

    def answers(self, outputs: Array) -> Answers:
        """Return the predictions of rows for outputs of shape (rows, units)."""
        if self.description["task"] == "regression":
            return self._predict_numbers(outputs)
        return self._predict_classes(outputs)

    def _predict_numbers(self, outputs: Array) -> Answers:
        # Numbers have the fewest digits that identify them in the precision of the network. Whole
        # numbers keep all digits.
        texts = outputs.ravel().astype(str)
        numbers = [_replace_infinite(float(text)) for text in texts]
        margin = self.description["margin"]
        unknown: list[Any] = [None] * len(outputs)
        return Answers(
            prediction=self._round(outputs.ravel()) or numbers,
            probability=unknown,
            probabilities=unknown,
            lower=[_shift(number, margin, -1) for number in numbers],
            upper=[_shift(number, margin, 1) for number in numbers],
        )

    def _predict_classes(self, outputs: Array) -> Answers:
        classes = self.description["classes"]
        scores = outputs.reshape(len(outputs), -1).astype(np.float64)
        is_finite = np.isfinite(scores)
        finite_scores = np.where(is_finite, scores, 0.0)
        best_classes = choose_classes(self.description, finite_scores).tolist()
        unknown: list[Any] = [None] * len(outputs)
        answers = Answers(list(unknown), list(unknown), list(unknown), unknown, unknown)
        for index in np.flatnonzero(is_finite.all(axis=1)).tolist():
            row = scores[index].tolist()
            best = best_classes[index]
            answers.prediction[index] = classes[best]
            answers.probability[index] = row[best]
            answers.probabilities[index] = dict(zip(classes, row, strict=True))
        return answers

    def _round(self, outputs: Array) -> list[int | None]:
        """Round outputs if the target is an integer; else return an empty list."""
        target_type = self.description["target_type"]
        limit = INTEGERS.get(self.description.get("target_base") or target_type)
        if limit is None:
            return []
        return [
            min(max(round(value), -limit), limit - 1) if math.isfinite(value) else None
            for value in outputs.tolist()
        ]


def _replace_infinite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shift(value: float | None, margin: float | None, sign: int) -> float | None:
    if value is None or margin is None:
        return None
    return value + sign * margin


def _read_numbers(feature: Json, cells: Sequence[Any]) -> Array | None:
    """Return the numbers of a column in the input that columns share, shape (rows, numbers).

    NaN is missing. The result is None if the column is not part of that input.
    """
    kind = feature["kind"]
    family: Any = feature.get("family")
    if kind == "number":
        numbers = values.read_numbers(cells, family)[:, np.newaxis]
        _warn_of_unread(feature, numbers, cells)
        return numbers
    rows: list[Any]
    if kind == "vector":
        size = len(feature["scales"])
        rows = [values.read_vector(value, family, size) for value in cells]
    elif kind == "moment":
        parts = [part for part in PARTS if part in feature["parts"]]
        rows = [values.read_timestamp(value, family, parts) for value in cells]
        _warn_of_unread(feature, np.array(rows, np.float64), cells)
    elif kind in ARRAYS and feature["missing"]:
        rows = [[values.read_absence(value, family)] for value in cells]
    else:
        return None
    return np.array(rows, np.float64)


def _read_wide(feature: Json, cells: Sequence[Any]) -> Array:
    """Return an input of one column before it is scaled, one row a cell, flat.

    A cell of an image file is its thumbnail, an array.
    """
    if feature["kind"] == "text":
        words = feature["words"]
        texts = [values.format_text(value) or "" for value in cells]
        hashes = [text_hashing.hash_words(text, words, feature["buckets"]) for text in texts]
        return np.array(hashes, np.int32)
    shape = tuple(feature["shape"])
    if "scales" in feature:
        arrays = [values.read_shaped(value, feature["family"], shape).ravel() for value in cells]
        return np.array(arrays, np.float64)
    if feature["kind"] == "array":
        arrays = [np.asarray(value, np.float32).reshape(shape) for value in cells]
        return np.array(arrays, np.float32) / np.float32(feature["divisor"])
    blank = np.zeros(shape)
    pixels = [blank if is_missing(value) else value for value in cells]
    return np.array(pixels, np.float32).reshape(len(pixels), -1)


def _encode(feature: Json, cells: Sequence[Any]) -> list[int]:
    """Return the codes of a category, from 1; 0 for missing and unknown values.

    Raises:
        ValueError: the column has values of a type that cannot be compared with the category's.
    """
    form = feature.get("family", "timestamptz" if feature.get("zoned") else "text")
    try:
        codes = value_texts.encode_categories(feature["values"], form, cells)
    except ValueError as error:
        raise ValueError(f"column {feature['column']!r}: {error}") from error
    _warn_of_unknown(feature["column"], codes, cells)
    return codes


def _warn_of_unread(feature: Json, numbers: Array, cells: Sequence[Any]) -> None:
    """Warn of texts that are not in the format of a column."""
    if not text_formats.is_text_family(str(feature.get("family"))):
        return
    known = [
        bool(np.isfinite(row).any()) or text_formats.is_blank(cell)
        for row, cell in zip(numbers, cells, strict=True)
    ]
    _warn_of_unknown(feature["column"], known, cells)


def _warn_of_unknown(column: str, codes: Sequence[float], cells: Sequence[Any]) -> None:
    """Warn once of the values of a column that the model does not know, as the database does."""
    unknown = [
        cell for code, cell in zip(codes, cells, strict=True) if not code and not is_missing(cell)
    ]
    if unknown:
        examples = ", ".join(map(repr, list(dict.fromkeys(map(str, unknown)))[:2]))
        warnings.warn(
            f"column {column} has {count_nouns(len(unknown), 'value')}, such as {examples}, which "
            "the model does not know: they count as missing",
            UserWarning,
            stacklevel=2,
        )
