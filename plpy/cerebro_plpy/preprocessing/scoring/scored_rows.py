"""Predictions for rows with labels, column by column.

Hundreds of thousands of rows of a large table are held back, and several models predict each of
them. So a number takes 8 bytes here, where a row as an object takes some hundreds.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple, overload


class ScoredRow(NamedTuple):
    """A row with its label and a prediction."""

    label: str  # the text of its class or number
    classes: Mapping[str, float]  # predicted probabilities by class; empty for numbers
    number: float = math.nan  # predicted number
    prediction: str | None = None  # predicted class; None for the most probable one


class ScoredRows(Sequence[ScoredRow]):
    """Rows whose predictions are all of the same classes, or all numbers.

    Args:
        classes: names of the predicted classes; empty for numbers.
        columns: probabilities of each class by row; for numbers, one column.
        labels: the class of each row; empty for numbers.
        targets: the number of each row; empty for classes.
        predictions: predicted classes by row; None for the most probable ones.
    """

    def __init__(
        self,
        classes: Sequence[str],
        columns: Sequence[array[float]],
        labels: Sequence[str],
        targets: array[float],
        predictions: Sequence[str | None] | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.columns = tuple(columns)
        self.labels = labels
        self.targets = targets
        self.predictions = predictions

    @classmethod
    def collect(cls, rows: Iterable[ScoredRow]) -> ScoredRows:
        """Return rows column by column.

        >>> [*ScoredRows.collect([ScoredRow("a", {"a": 0.75, "b": 0.25})])]
        [ScoredRow(label='a', classes={'a': 0.75, 'b': 0.25}, number=nan, prediction=None)]
        >>> [*ScoredRows.collect([ScoredRow("3", {}, 2.5)])]
        [ScoredRow(label='3.0', classes={}, number=2.5, prediction=None)]
        """
        iterator = iter(rows)
        first = next(iterator, None)
        if first is None:
            return cls((), [array("d")], [], array("d"))
        all_rows = chain([first], iterator)
        targets = array("d")
        if not first.classes:
            numbers = array("d")
            for row in all_rows:
                targets.append(float(row.label))
                numbers.append(row.number)
            return cls((), [numbers], [], targets)
        classes = tuple(first.classes)
        labels: list[str] = []
        predictions: list[str | None] = []
        columns = [array("d") for _ in classes]
        for row in all_rows:
            labels.append(row.label)
            predictions.append(row.prediction)
            for name, column in zip(classes, columns):
                column.append(row.classes[name])
        has_predictions = any(prediction is not None for prediction in predictions)
        return cls(classes, columns, labels, targets, predictions if has_predictions else None)

    @classmethod
    def concatenate(cls, parts: Sequence[ScoredRows]) -> ScoredRows:
        """Return the rows of all parts, which are predicted by models of the same classes.

        A predicted class other than the most probable one is not retained.

        >>> part = ScoredRows.collect([ScoredRow("3", {}, 2.5)])
        >>> ScoredRows.concatenate([part, part]).columns
        (array('d', [2.5, 2.5]),)
        """
        labels: list[str] = []
        targets = array("d")
        columns = [array("d") for _ in parts[0].columns]
        for part in parts:
            labels.extend(part.labels)
            targets.extend(part.targets)
            for column, values in zip(columns, part.columns):
                column.extend(values)
        return cls(parts[0].classes, columns, labels, targets)

    def replace_columns(self, columns: Sequence[array[float]]) -> ScoredRows:
        """Return the same rows with other probabilities or numbers, and no predicted class."""
        return ScoredRows(self.classes, columns, self.labels, self.targets)

    def list_label_probabilities(self) -> Iterator[float]:
        """Yield the probability of the label of each row: 0 of a class that is not predicted."""
        by_name = dict(zip(self.classes, self.columns))
        for place, label in enumerate(self.labels):
            column = by_name.get(label)
            yield 0.0 if column is None else column[place]

    def list_predictions(self) -> Iterator[str]:
        """Yield the predicted class of each row: as a rule the most probable, the first of equals.

        >>> rows = ScoredRows.collect([ScoredRow("a", {"a": 0.5, "b": 0.5})])
        >>> list(rows.list_predictions())
        ['a']
        """
        places = range(len(self.classes))
        predictions: Iterable[str | None] = self.predictions or repeat(None)
        for prediction, *shares in zip(predictions, *self.columns):
            if prediction is None:
                prediction = self.classes[max(places, key=shares.__getitem__)]
            yield prediction

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[ScoredRow]:
        if not self.classes:
            for target, number in zip(self.targets, self.columns[0]):
                yield ScoredRow(repr(target), {}, number)
            return
        predictions: Iterable[str | None] = self.predictions or repeat(None)
        for label, prediction, *shares in zip(self.labels, predictions, *self.columns):
            yield ScoredRow(label, dict(zip(self.classes, shares)), prediction=prediction)

    @overload
    def __getitem__(self, index: int) -> ScoredRow: ...

    @overload
    def __getitem__(self, index: slice) -> ScoredRows: ...

    def __getitem__(self, index: int | slice) -> ScoredRow | ScoredRows:
        if isinstance(index, slice):
            return ScoredRows(
                self.classes,
                [column[index] for column in self.columns],
                self.labels[index],
                self.targets[index],
                None if self.predictions is None else self.predictions[index],
            )
        place = range(len(self))[index]
        (row,) = self[place : place + 1]
        return row


NO_ROWS = ScoredRows.collect([])
"""The predictions of a model that were not computed."""
