"""From what a model puts out to the columns that a query shows: of each row the class and its
probability, or a number.

They are array literals of PostgreSQL, made for a whole block at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.wire.fields import integers, typed

NULL = "NULL"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Telling:
    """What is told of rows: one of the `labels`, by the place of the largest output; or, without
    any, a number.

    `whole` is the range of whole numbers that it is rounded to.
    """

    labels: tuple[str, ...] | None
    whole: tuple[int, int] | None

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Telling:
        """Read the fields of a request."""
        labels = None if header.get("labels") is None else tuple(typed(header, "labels", list))
        whole = None if header.get("whole") is None else tuple(integers(header, "whole"))
        if labels is not None and not (labels and all(isinstance(label, str) for label in labels)):
            raise RequestError(f'"labels" must be texts; received {labels!r}'[:300])
        if whole is not None and len(whole) != 2:
            raise RequestError(f'"whole" must be two numbers; received {whole!r}'[:300])
        return cls(labels, whole and (whole[0], whole[1]))

    def columns(self, output: Array) -> Iterator[str]:
        """The prediction of each row; then, of classes its probability and those of all, else the
        number unrounded.
        """
        values = output.reshape(len(output), -1)
        units = 1 if self.labels is None else len(self.labels)
        if values.shape[1] != units:
            raise ConfigError(
                f"the model's output has {values.shape[1]} units; expected {units}",
                sqlstate="42804",
            )
        if self.labels is None:
            return self._numbers(values[:, 0])
        return _classes(values.astype(np.float64), self.labels)

    def _numbers(self, values: Array) -> Iterator[str]:
        """With as few digits as tell a number of the network's precision from all others."""
        known = np.isfinite(values)
        texts = [
            text if told else NULL
            for text, told in zip(values.astype(str).tolist(), known.tolist(), strict=True)
        ]
        if self.whole is None:
            yield _literal(texts)
        else:
            low, high = self.whole
            rounded = np.rint(np.where(known, values, 0).astype(np.float64)).tolist()
            whole = (str(min(max(int(number), low), high)) for number in rounded)
            yield _literal(
                text if told else NULL for text, told in zip(whole, known.tolist(), strict=True)
            )
        yield _literal(texts)


def _classes(values: npt.NDArray[np.float64], labels: tuple[str, ...]) -> Iterator[str]:
    quoted, template = texts(labels)
    finite: npt.NDArray[np.bool_] = np.isfinite(values)
    told = np.logical_and.reduce(finite, axis=1).tolist()
    values = np.where(
        np.isfinite(values), values, 0.0
    )  # no class is the likeliest where one of them is no number
    best = values.argmax(axis=1)
    yield _literal(
        quoted[place] if known else NULL for place, known in zip(best.tolist(), told, strict=True)
    )
    largest = values[np.arange(len(values)), best].tolist()
    yield _literal(
        repr(value) if known else NULL for value, known in zip(largest, told, strict=True)
    )
    yield _literal(
        template % tuple(row) if known else NULL
        for row, known in zip(values.tolist(), told, strict=True)
    )


@lru_cache(8)
def texts(labels: tuple[str, ...]) -> tuple[Sequence[str], str]:
    """The labels as elements of an array literal, and one with a JSON object of them all that wants
    their numbers.
    """
    quoted = [_quoted(label) for label in labels]
    members = (
        f"{json.dumps(label, ensure_ascii=False)}: ".replace("%", "%%") + "%r" for label in labels
    )
    return quoted, _quoted("{" + ", ".join(members) + "}")


def _quoted(text: str) -> str:
    r"""A text as an element of an array literal.

    >>> print(_quoted('a"b\\c'))
    "a\"b\\c"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal(elements: Iterable[str]) -> str:
    return "{" + ",".join(elements) + "}"
