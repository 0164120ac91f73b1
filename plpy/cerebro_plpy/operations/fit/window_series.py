"""Cuts long series into windows: the arguments are checked here, and one statement makes the
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database.call_checks import check_positive
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.database.sql.identifiers import quote_identifier, split_columns
from cerebro_plpy.errors import DatatypeMismatch, DuplicateColumn, InvalidParameter, NullNotAllowed
from cerebro_plpy.packing.packed_columns import NUMBERS, suggest_numeric_view
from cerebro_plpy.records import dataclass, replace

OWN_COLUMNS = ("window_id", "first", "last", "x")
RULES = ("all", "last", "majority")
FLOATS = ("float4", "float8")
TIMESPANS = "T"


@dataclass(frozen=True)
class WindowArguments:
    """The arguments, as they came."""

    source: str | None
    output: str | None
    id: str | None
    ts: str | None
    columns: str | None
    width: int | None
    stride: int | None
    label: str | None
    label_rule: str | None
    max_gap: str | None


@dataclass(frozen=True)
class Clock:
    """How times are compared: as what they are subtracted, of which type steps are, which samples
    have a place.
    """

    time: str
    step: str
    placed: str


@dataclass(frozen=True)
class Series:
    """The series that are cut, by columns that exist; `rule` is None where windows have no
    label.
    """

    source: Table
    output: Relation
    id: str
    ts: str
    columns: tuple[str, ...]
    width: int
    stride: int
    label: str | None
    rule: str | None
    clock: Clock

    def clauses(self) -> dict[str, str]:
        """What the statements have in common."""
        return {
            "source": self.source.quoted, "id": quote_identifier(self.id),
            "ts": quote_identifier(self.ts),
            "time": self.clock.time, "step": self.clock.step, "placed": self.clock.placed,
        }  # fmt: skip


def make_windows(db: Database, given: WindowArguments) -> None:
    """Make the table of windows; nothing of it stays where there is none."""
    catalog = Catalog(db, "window_series")
    series = find_series(catalog, given)
    with caller_rows(db, db.reading, {}) as rows:
        named = [series.id, series.ts, *series.columns, *([series.label] if series.label else [])]
        opened = replace(series, source=rows.open_table(series.source, list(dict.fromkeys(named))))
        gap = (
            given_gap(catalog, opened, given.max_gap)
            if given.max_gap is not None
            else usual_gap(db, opened)
        )
        db.rows(windows(opened, db), gap)
    if not db.value(sql("read.has_rows", table=series.output.quoted)):
        raise InvalidParameter(
            f"window_series error: there is no window of {series.width} samples in "
            f"'{series.source.spelling}'{' that has one label' if series.rule == 'all' else ''}.",
            hint="Samples that have a missing value or the time of another one, and gaps, end a "
            "stretch. Try a smaller width, a longer max_gap, or another label_rule.",
        )
    db.rows(sql("series.key", output=series.output.quoted))


def find_series(catalog: Catalog, given: WindowArguments) -> Series:
    """The tables and columns of the call; raises where one is not as it must be."""
    width, stride = _positive("width", given.width), given.stride
    check_positive(catalog.module, "stride", stride)
    rule = label_rule(given)
    source = catalog.resolve_input(given.source, "source")
    wait_for_source(catalog.db, LocalSession(catalog.db), source, read_wait_limit(catalog.db))
    output = catalog.reserve_output(given.output)
    columns = split_columns(_named("columns", given.columns))
    for name in columns:
        _check_number(catalog, source, catalog.read_column(source, name))
    identity, ts = (
        _column(catalog, source, "id", given.id),
        _column(catalog, source, "ts", given.ts),
    )
    label = _column(catalog, source, "label", given.label)["name"] if rule else None
    _check_names([*OWN_COLUMNS, identity["name"], *([label] if label else [])])
    return Series(
        source=source,
        output=output,
        id=identity["name"],
        ts=ts["name"],
        columns=columns,
        width=width,
        stride=width if stride is None else stride,
        label=label,
        rule=rule,
        clock=clock(source, identity, ts),
    )


def label_rule(given: WindowArguments) -> str | None:
    """By which rule a window has its label; None where windows have none."""
    if given.label is None and given.label_rule is None:
        return None
    if given.label is None:
        raise NullNotAllowed(
            f"window_series error: label_rule is {given.label_rule!r}, and label is NULL.",
            hint="Name the column of labels.",
        )
    rule = RULES[0] if given.label_rule is None else given.label_rule.strip().lower()
    if rule not in RULES:
        raise InvalidParameter(
            f"window_series error: label_rule is {given.label_rule!r}; expected one of "
            f"{', '.join(RULES)}."
        )
    return rule


def clock(source: Relation, identity: Row, ts: Row) -> Clock:
    """How the times of a column are compared: numbers, dates, timestamps or intervals."""
    column, series = f"t.{quote_identifier(ts['name'])}", f"t.{quote_identifier(identity['name'])}"
    if ts["category"] == NUMBERS:
        step = "double precision" if ts["base"] in FLOATS else "numeric"
        time, finite = f"{column}::{step}", f"{column}::{step} - {column}::{step} = '0'::{step}"
    elif ts["category"] == TIMESPANS or ts["base"] in ("date", "timestamp", "timestamptz"):
        own = {TIMESPANS: "interval"}.get(
            ts["category"], "timestamp" if ts["base"] == "date" else ts["base"]
        )
        time, step = f"{column}::{own}", "interval"
        finite = f"pg_catalog.isfinite({column})"
    else:
        raise DatatypeMismatch(
            f"window_series error: column '{ts['name']}' of table '{source.spelling}' is of type "
            f"{ts['type']}; ts expects numbers, dates, timestamps or intervals."
        )
    return Clock(time, step, f"{series} IS NOT NULL AND {finite}")


def usual_gap(db: Database, series: Series) -> str | None:
    """The longest step that is no gap, where nobody has said it; whoever calls is told."""
    gap: str | None = db.value(sql("series.usual_gap", **series.clauses()))
    if gap is not None:
        db.info(f"window_series: a step of more than {gap} is a gap (max_gap)")
    return gap


def given_gap(catalog: Catalog, series: Series, given: str) -> str:
    """The longest step that is no gap, as it is given."""
    step = series.clock.step
    if not catalog.db.skip_invalid_values(
        lambda: catalog.db.value(sql("series.is_gap", step=step), given)
    ):
        raise InvalidParameter(
            f"window_series error: max_gap is {given!r}; expected "
            f"{'an interval' if step == 'interval' else 'a number'} that is not negative, as steps "
            f"of column '{series.ts}' are."
        )
    return given


def windows(series: Series, db: Database) -> str:
    """The statement that makes the table of windows."""
    values = [f"t.{quote_identifier(name)}::real" for name in series.columns]
    whole = [f"{value} - {value} = '0'::real" for value in values]
    label = quote_identifier(series.label) if series.label else None
    if label:
        whole.append(f"t.{label} IS NOT NULL")
    return sql(
        "series.windows",
        output=series.output.quoted,
        x=f"ARRAY[{', '.join(values)}]",
        whole=f"coalesce({' AND '.join(whole)}, false)",
        width=str(series.width),
        stride=str(series.stride),
        label_column=f", w.label AS {label}" if label else "",
        label_of_sample=f", t.{label} AS label" if label else "",
        label_of_window=f", {_label(series)} AS label" if label else "",
        same_label=sql("series.one_label") if series.rule == "all" else "",
        **series.clauses(),
        **db.platform.clauses,
    )


def _label(series: Series) -> str:
    """The label of a window, as an aggregate of its samples."""
    if series.rule == "last":
        return sql("series.last_label", width=str(series.width), stride=str(series.stride))
    return sql("series.usual_label")


def _positive(name: str, value: int | None) -> int:
    if value is None:
        raise NullNotAllowed(
            f"window_series error: {name} is NULL; expected a positive whole number."
        )
    check_positive("window_series", name, value)
    return value


def _named(name: str, text: str | None) -> str:
    if text is None or not text.strip():
        raise NullNotAllowed(
            f"window_series error: {name} is NULL or empty; expected the name of a column."
        )
    return text


def _column(catalog: Catalog, source: Relation, name: str, text: str | None) -> dict[str, Any]:
    """The one column that an argument names."""
    columns = split_columns(_named(name, text))
    if len(columns) != 1:
        raise InvalidParameter(
            f"window_series error: {name} is {text!r}; expected the name of one column."
        )
    return catalog.read_column(source, columns[0])


def _check_number(catalog: Catalog, source: Relation, found: Row) -> None:
    if found["category"] != NUMBERS:
        raise DatatypeMismatch(
            f"{catalog.module} error: column '{found['name']}' of table '{source.spelling}' is of "
            f"type {found['type']}; columns expects numbers.",
            hint=suggest_numeric_view(source, found).replace("Pack", "Take"),
        )


def _check_names(names: Sequence[str]) -> None:
    """Raises where the table of windows would have two columns of one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DuplicateColumn(
            f"window_series error: the table of windows would have {', '.join(twice)} twice.",
            hint=f"It has columns {', '.join(OWN_COLUMNS)}, and those of id and label. Take a view "
            "with other names.",
        )
