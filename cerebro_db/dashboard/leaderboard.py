"""Order, filter and compare the configurations of a run for its page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from cerebro_db.dashboard.base_views import Variables
from cerebro_db.dashboard.queries import Reader
from cerebro_db.display.boards import describe_configs
from cerebro_db.errors import InvalidParameter, UndefinedObject
from cerebro_db.records import Parameter, Standing

MAX_LINES = 100
"""Number of configurations that are shown, unless the user asks for all."""
MAX_COMPARED = 8
"""Largest number of configurations that are compared."""
KEY_LIST = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
"""The numbers of configurations in an address."""
COLUMNS: Mapping[str, str] = {
    "rank": "rank",
    "configuration": "mst_key",
    "metric": "value",
    "template": "template",
    "group": "group_value",
    "training": "training",
    "epochs": "epochs",
    "status": "status",
}
"""Fields of a standing by which a leaderboard can be sorted, by their names in an address."""


@dataclass(frozen=True)
class BoardOrder:
    """The order and the filter of a leaderboard, as an address has them."""

    sort: str = "rank"
    is_descending: bool = False
    filter: str = ""  # words that a configuration must contain
    shows_all: bool = False

    def make_query(self) -> str:
        """Return this order as the part of an address behind its path."""
        parts: dict[str, str] = {}
        if self.sort != "rank" or self.is_descending:
            parts["sort"] = self.sort
        if self.is_descending:
            parts["descending"] = "1"
        if self.filter:
            parts["filter"] = self.filter
        if self.shows_all:
            parts["all"] = "1"
        if not parts:
            return ""
        return f"?{urlencode(parts)}"

    def make_full_query(self) -> str:
        """Return the part of an address for this order with all configurations."""
        return replace(self, shows_all=True).make_query()

    def make_sort_query(self, column: str) -> str:
        """Return the part of an address that sorts by a column, or reverses its order."""
        is_descending = column == self.sort and not self.is_descending
        return replace(self, sort=column, is_descending=is_descending).make_query()

    def describe_sort(self, column: str) -> str:
        """Return the value of aria-sort for a column."""
        if column != self.sort:
            return "none"
        if self.is_descending:
            return "descending"
        return "ascending"


def read_order(query: QueryParams) -> BoardOrder:
    """Return the order in an address; an unknown column means the rank."""
    sort = query.get("sort", "rank")
    if sort not in COLUMNS:
        sort = "rank"
    return BoardOrder(
        sort=sort,
        is_descending=query.get("descending") == "1",
        filter=query.get("filter", "").strip(),
        shows_all="all" in query,
    )


def describe_board(reader: Reader, run: int, order: BoardOrder) -> Variables:
    """Return the template variables for the leaderboard of a run."""
    reader.read_run(run)  # raises UndefinedObject if the run does not exist
    standings = reader.read_standings(run)
    texts = describe_by_template(standings)
    words = order.filter.casefold().split()
    matches: list[Standing] = []
    for standing in standings:
        text = texts[standing.mst_key].casefold()
        if _matches(standing, text, words):
            matches.append(standing)
    visible = sort_standings(matches, order)
    if not order.shows_all:
        visible = visible[:MAX_LINES]
    rows = [{**vars(standing), "differences": texts[standing.mst_key]} for standing in visible]
    first = next(iter(standings), None)
    best = None
    if first is not None and first.value is not None:
        best = first.mst_key
    return {
        "board": rows,
        "count": len(matches),
        "total": len(standings),
        "best": best,
        "first": first,
        "has_groups": any(standing.group_value is not None for standing in standings),
        "order": order,
        "run_id": run,
        "searched": reader.read_run_metrics(run).searched,
    }


def describe_by_template(standings: Sequence[Standing]) -> dict[int, str]:
    """Return by mst_key the parameters that not all configurations of the same template share.

    Templates have different parameters, so that a comparison of all would leave nothing out.
    """
    texts: dict[int, str] = {}
    for template in {standing.template for standing in standings}:
        texts |= describe_configs(
            [standing for standing in standings if standing.template == template]
        )
    return texts


def _matches(standing: Standing, text: str, words: Sequence[str]) -> bool:
    """Return whether a configuration contains all words of a filter."""
    parts = [text, f"#{standing.mst_key}"]
    for part in (standing.template, standing.status, standing.group_value):
        if part is not None:
            parts.append(part.casefold())
    description = " ".join(parts)
    return all(word in description for word in words)


def sort_standings(standings: Sequence[Standing], order: BoardOrder) -> list[Standing]:
    """Return configurations in an order; those without a value come last in both directions."""
    field = COLUMNS[order.sort]
    read_field = attrgetter(field)
    present = [standing for standing in standings if read_field(standing) is not None]
    missing = [standing for standing in standings if read_field(standing) is None]
    present.sort(key=read_field, reverse=order.is_descending)
    return [*present, *missing]


def read_compared(query: QueryParams) -> list[int]:
    """Return the configurations in an address, such as `?keys=3,7`.

    Raises:
        InvalidParameter: they are not two to MAX_COMPARED numbers.
    """
    text = query.get("keys", "")
    keys: list[int] = []
    if KEY_LIST.fullmatch(text):
        keys = list(dict.fromkeys(map(int, text.split(","))))
    if not 2 <= len(keys) <= MAX_COMPARED:
        raise InvalidParameter(
            f"the configurations to compare are {text[:80]!r}; "
            f"expected 2 to {MAX_COMPARED} numbers",
            hint="Tick them in the leaderboard.",
        )
    return keys


def describe_comparison(reader: Reader, run: int, keys: Sequence[int]) -> Variables:
    """Return the template variables for a comparison of configurations."""
    reader.read_run(run)  # raises UndefinedObject if the run does not exist
    standings = {standing.mst_key: standing for standing in reader.read_standings(run)}
    compared: list[Standing] = []
    for key in keys:
        if key not in standings:
            raise UndefinedObject(
                f"run {run} has no configuration {key}", hint="Tick others in the leaderboard."
            )
        compared.append(standings[key])
    differing, equal = compare_parameters(keys, reader.parameters(run))
    return {"configs": compared, "differing": differing, "equal": equal, "run_id": run}


Comparison = list[tuple[str, list[Any]]]
"""The values of each parameter, in the order of the configurations; None where it is missing."""


def compare_parameters(
    keys: Sequence[int], parameters: Sequence[Parameter]
) -> tuple[Comparison, Comparison]:
    """Return the parameters in which configurations differ, and those in which they do not."""
    values: dict[str, dict[int, Any]] = {}
    for parameter in parameters:
        if parameter.mst_key in keys:
            values.setdefault(parameter.name, {})[parameter.mst_key] = parameter.value
    differing: Comparison = []
    equal: Comparison = []
    for name, known_values in sorted(values.items()):
        row = [known_values.get(key) for key in keys]
        if len(set(map(repr, row))) > 1:
            differing.append((name, row))
        else:
            equal.append((name, row))
    return differing, equal
