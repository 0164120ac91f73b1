"""The columns of predictions that a query shows, as PostgreSQL array literals of a block of rows.

A row of a classification has its class and the probabilities; a row of a regression has a number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cerebro_trainer.commands.predictions import check_units
from cerebro_trainer.data.arrays import Booleans, Floats, Integers
from cerebro_trainer.data.calibration import NO_CALIBRATION, Calibration
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import Header, integers, optional, typed
from cerebro_trainer.wire.frames import Array

NULL = "NULL"


@dataclass(frozen=True)
class PredictionFormat:
    """The format of a model's predictions."""

    labels: tuple[str, ...] | None  # of the classes, by output; None for regression
    integer_range: tuple[int, int] | None  # of rounded numbers; None for numbers as they are

    @classmethod
    def from_header(cls, header: Header) -> PredictionFormat:
        """Read the fields `labels` and `whole` of a request."""
        labels = None if header.get("labels") is None else tuple(typed(header, "labels", list))
        bounds = optional(header, "whole", integers)
        if labels is not None and not (labels and all(isinstance(label, str) for label in labels)):
            raise RequestError(f'"labels" must be texts; received {labels!r}'[:300])
        if bounds is None:
            return cls(labels, None)
        if len(bounds) != 2:
            raise RequestError(f'"whole" must be two numbers; received {tuple(bounds)!r}'[:300])
        return cls(labels, (bounds[0], bounds[1]))

    def format_columns(
        self, output: Array, calibration: Calibration = NO_CALIBRATION
    ) -> Iterator[str]:
        """Yield the columns: predictions, then probabilities or unrounded numbers.

        A classification has two columns of probabilities: that of the predicted class, and JSON
        objects of all.

        Args:
            calibration: of the outputs of classes.
        """
        values = output.reshape(len(output), -1)
        if self.labels is None:
            check_units(values.shape[1], 1)
            return self._format_numbers(values[:, 0])
        check_units(values.shape[1], len(self.labels))
        probabilities = calibration.correct(values).astype(np.float64)
        classes = calibration.choose_classes(probabilities)
        return _format_classes(probabilities, classes, self.labels)

    def _format_numbers(self, values: Array) -> Iterator[str]:
        """Yield rounded and unrounded numbers; the latter have as few digits as are unambiguous."""
        is_finite = np.isfinite(values)
        texts = values.astype(str).tolist()
        unrounded = _format_literal(texts, is_finite)
        if self.integer_range is None:
            yield unrounded
        else:
            low, high = self.integer_range
            rounded = np.rint(np.where(is_finite, values, 0).astype(np.float64)).tolist()
            bounded = (str(min(max(int(number), low), high)) for number in rounded)
            yield _format_literal(bounded, is_finite)
        yield unrounded


def _replace_infinite(values: Floats) -> Floats:
    """Return values with 0 in place of those that are not finite."""
    return np.where(np.isfinite(values), values, 0.0)


def _format_classes(values: Floats, classes: Integers, labels: tuple[str, ...]) -> Iterator[str]:
    """Yield the class of each row, its probability, and the probabilities of all classes.

    A row with an output that is not a finite number has no class.
    """
    quoted_labels, json_template = format_labels(labels)
    is_finite: Booleans = np.isfinite(values)
    has_class = np.logical_and.reduce(is_finite, axis=1)
    values = _replace_infinite(values)
    class_labels = (quoted_labels[index] for index in classes.tolist())
    yield _format_literal(class_labels, has_class)
    probabilities = map(repr, values[np.arange(len(values)), classes].tolist())
    yield _format_literal(probabilities, has_class)
    objects = (json_template % tuple(row) for row in values.tolist())
    yield _format_literal(objects, has_class)


@lru_cache(8)
def format_labels(labels: tuple[str, ...]) -> tuple[Sequence[str], str]:
    """Return the labels as elements of an array literal, and a template of a JSON object.

    The template is an element with the labels as keys and %r for each number.
    """
    quoted_labels = [_quote(label) for label in labels]
    keys = [json.dumps(label, ensure_ascii=False).replace("%", "%%") for label in labels]
    members = ", ".join(f"{key}: %r" for key in keys)
    return quoted_labels, _quote("{" + members + "}")


def _quote(text: str) -> str:
    r"""Quote a text as an element of an array literal.

    >>> print(_quote('a"b\\c'))
    "a\"b\\c"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _format_literal(elements: Iterable[str], is_valid: Booleans) -> str:
    """Return an array literal with NULL for the elements that are not valid."""
    pairs = zip(elements, is_valid.tolist(), strict=True)
    return "{" + ",".join(element if valid else NULL for element, valid in pairs) + "}"
