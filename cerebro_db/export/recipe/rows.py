"""Rows of raw columns as the inputs of a network, and the outputs of one as answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from . import scales, values, words
from .scales import ARRAYS, PARTS, Array, Json, RawInput

NUMBERS, CODES, WIDE = "numbers", "codes", "wide"
RAW = "raw_"
"""Before the name of an input of the network, where that of the graph of ONNX is of raw numbers."""
INPUTS_OF_THEIR_OWN = (*ARRAYS, "text", "array")
INTEGERS = {"smallint": 1 << 15, "integer": 1 << 31, "bigint": 1 << 63}
MIDNIGHT = " 00:00:00"
"""Behind dates that a DataFrame has as points of time."""


class Answers(NamedTuple):
    """What is told of each row: a class with its probability and those of all, or a number within a
    margin.

    None stands for what is not known; of classes there are no bounds, of numbers no probabilities.
    """

    prediction: list[Any]
    probability: list[float | None]
    probabilities: list[dict[str, float] | None]
    lower: list[float | None]
    upper: list[float | None]

    def columns(self) -> dict[str, list[Any]]:
        """Those of which any is known, and the prediction in any case."""
        named = self._asdict()
        return {
            name: of
            for name, of in named.items()
            if name == "prediction" or any(e is not None for e in of)
        }


@dataclass(frozen=True)
class RawRows:
    """A model's description, as it is exported: what its network takes of rows, and what its
    outputs mean.
    """

    told: Json

    @classmethod
    def of(cls, text: str) -> RawRows:
        """Of the text of the JSON beside a model."""
        return cls(json.loads(text))

    @cached_property
    def features(self) -> list[Json]:
        """Those that are inputs."""
        return [each for each in self.told["features"] if each["kind"] != "left out"]

    @cached_property
    def wide(self) -> dict[str, Json]:
        """The features that are inputs of their own, by the names of these."""
        own = [each for each in self.features if each["kind"] in INPUTS_OF_THEIR_OWN]
        return {f"{WIDE}_{place}": each for place, each in enumerate(own, 1)}

    @cached_property
    def scaled(self) -> dict[str, RawInput]:
        """The inputs that are made of raw numbers, by their names."""
        shared = [(feature, list(scales.numbers(feature))) for feature in self.features]
        numbers = tuple(number for _, some in shared for number in some)
        found = (
            {NUMBERS: RawInput(NUMBERS, numbers, tuple(scales.missing(shared)))} if numbers else {}
        )
        own = {name: each for name, each in self.wide.items() if "scales" in each}
        return {
            **found,
            **{name: RawInput(name, tuple(scales.elements(each))) for name, each in own.items()},
        }

    @cached_property
    def categories(self) -> list[Json]:
        """The columns that are categories, in order."""
        return [each for each in self.features if each["kind"] == "category"]

    @cached_property
    def names(self) -> dict[str, str]:
        """The inputs in their order, by which the network has them, and what it calls them."""
        own = [NUMBERS] * (NUMBERS in self.scaled) + [CODES] * bool(self.categories) + [*self.wide]
        told = self.told.get("network_inputs")
        return dict(zip(own, own if told is None else (each["name"] for each in told), strict=True))

    def raw(self, columns: Mapping[str, Iterable[Any]]) -> dict[str, Array]:
        """The inputs of the graph of ONNX, of columns by their names; KeyError names one that
        lacks.

        They are those of the network before anything is scaled.
        """
        found = self._raw(columns).items()
        return {RAW * (name in self.scaled) + self.names[name]: each for name, each in found}

    def inputs(self, columns: Mapping[str, Iterable[Any]]) -> dict[str, Array]:
        """The inputs of the network by their names."""
        scaled, found = self.scaled, self._raw(columns).items()
        return {
            self.names[name]: scaled[name].scaled(each) if name in scaled else each
            for name, each in found
        }

    def _raw(self, columns: Mapping[str, Iterable[Any]]) -> dict[str, Array]:
        lists = {each["column"]: list(columns[each["column"]]) for each in self.features}
        found: dict[str, Array] = {}
        if NUMBERS in self.scaled:
            parts = [_raw_numbers(each, lists[each["column"]]) for each in self.features]
            found[NUMBERS] = np.concatenate([part for part in parts if part is not None], axis=1)
        if self.categories:
            codes = [_codes(each, lists[each["column"]]) for each in self.categories]
            found[CODES] = np.array(codes, np.int32).T
        return {
            **found,
            **{name: _wide(each, lists[each["column"]]) for name, each in self.wide.items()},
        }

    def answers(self, outputs: Array) -> Answers:
        """What outputs of shape (rows, units) say: of one row each."""
        nothing: list[Any] = [None] * len(outputs)
        if self.told["task"] == "regression":
            # With as few digits as tell a number of the network's precision from all others; whole
            # ones have all.
            margin, numbers = (
                self.told["margin"],
                [_known(float(text)) for text in outputs.ravel().astype(str)],
            )
            lower, upper = ([_moved(each, margin, sign) for each in numbers] for sign in (-1, 1))
            return Answers(self._whole(outputs.ravel()) or numbers, nothing, nothing, lower, upper)
        classes, found = self.told["classes"], outputs.reshape(len(outputs), -1).astype(np.float64)
        known = np.logical_and.reduce(np.isfinite(found), axis=1).tolist()
        best = np.where(np.isfinite(found), found, 0.0).argmax(axis=1).tolist()
        rows = list(zip(found.tolist(), best, known, strict=True))
        return Answers(
            [classes[place] if sure else None for _, place, sure in rows],
            [row[place] if sure else None for row, place, sure in rows],
            [dict(zip(classes, row, strict=True)) if sure else None for row, _, sure in rows],
            nothing,
            nothing,
        )

    def _whole(self, outputs: Array) -> list[int | None]:
        """Outputs, rounded where the target is of whole numbers; else nothing."""
        if (reach := INTEGERS.get(self.told["target_type"])) is None:
            return []
        return [
            min(max(round(value), -reach), reach - 1) if math.isfinite(value) else None
            for value in outputs.tolist()
        ]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _moved(value: float | None, margin: float | None, sign: int) -> float | None:
    return None if value is None or margin is None else value + sign * margin


def _raw_numbers(feature: Json, given: Sequence[Any]) -> Array | None:
    """What a column has in the input that columns share, of shape (rows, numbers); NaN is
    missing.
    """
    kind = feature["kind"]
    if kind == "number":
        return values.numbers(given, feature["family"])[:, np.newaxis]
    if kind == "vector":
        places = len(feature["scales"])
        return np.array(
            [values.line(value, feature["family"], places) for value in given], np.float64
        )
    if kind == "moment":
        parts = [part for part in PARTS if part in feature["parts"]]
        return np.array(
            [values.moment(value, feature["family"], parts) for value in given], np.float64
        )
    if kind in ARRAYS and feature["missing"]:
        family = feature.get("family")
        return np.array([[values.absent(value, family)] for value in given], np.float64)
    return None


def _wide(feature: Json, given: Sequence[Any]) -> Array:
    """An input of its own before it is scaled, flat; of an image file the caller gives the
    thumbnail, an array.
    """
    if feature["kind"] == "text":
        return np.array(
            [
                words.numbers(values.text(value) or "", feature["words"], feature["buckets"])
                for value in given
            ],
            np.int32,
        )
    shape = tuple(feature["shape"])
    if "scales" in feature:
        return np.array(
            [values.laid_out(value, feature["family"], shape).ravel() for value in given],
            np.float64,
        )
    if feature["kind"] == "array":
        plain = np.array(
            [np.asarray(value, np.float32).reshape(shape) for value in given], np.float32
        )
        return plain / np.float32(feature["divisor"])
    nothing = np.zeros(shape)
    pixels = [nothing if values.is_missing(value) else value for value in given]
    return np.array(pixels, np.float32).reshape(len(pixels), -1)


def _codes(feature: Json, given: Sequence[Any]) -> list[int]:
    known = {value: place for place, value in enumerate(feature["values"], 1)}
    texts = (values.text(value) for value in given)
    return [
        0 if text is None else known.get(text) or known.get(text.removesuffix(MIDNIGHT), 0)
        for text in texts
    ]
