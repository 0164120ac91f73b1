"""What a question about runs or tables is answered with: a list of records, which can become a DataFrame.

pandas is not required: it is asked for only when a frame is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from cerebro_db import errors

if TYPE_CHECKING:
    import pandas

R = TypeVar("R")


class Records(list[R]):
    """Records in the order of the answer: dataclasses of cerebro_db.records, or a dict for a row of any table.

    >>> Records([{"id": 1, "prob": 0.5}], ["id", "prob"]).columns
    ('id', 'prob')
    """

    def __init__(self, records: Iterable[R], columns: Iterable[str]) -> None:
        super().__init__(records)
        self.columns = tuple(columns)

    def frame(self) -> pandas.DataFrame:
        """The records as rows of a DataFrame; without records it has the columns all the same."""
        try:
            import pandas
        except ImportError as error:
            raise errors.MissingLibrary(
                "pandas is not installed, and a DataFrame needs it",
                hint="Run `pip install pandas`; or use the records as they are, they are a list.",
                name="pandas",
            ) from error
        return pandas.DataFrame([values(record) for record in self], columns=list(self.columns))


def values(record: object) -> Mapping[str, Any]:
    """The fields of a record by name."""
    return record if isinstance(record, Mapping) else vars(record)
