"""Windows of long series: the arguments are checked, and one statement creates the table."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.call_checks import check_positive
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import DatatypeMismatch, DuplicateColumn, InvalidParameter, NullNotAllowed
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.packed_columns import NUMBERS, suggest_numeric_view
from cerebro_plpy.records import dataclass, replace

OUTPUT_COLUMNS = ("window_id", "first", "last", "x")
RULES = ("all", "last", "majority")
FLOATS = ("float4", "float8")
TIMESPANS = "T"  # category of intervals
LABEL_CLAUSES = ("label_column", "label_of_sample", "label_of_window", "same_label")
"""Clauses of the statement that are empty if windows have no label."""


@dataclass(frozen=True)
class WindowArguments:
    """The unchecked arguments of a call."""

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
class TimeExpressions:
    """SQL expressions that compare the times of samples."""

    time: str  # in a type that can be subtracted
    step: str  # type of the difference of two times
    placed: str  # condition: the sample has a series and a finite time


@dataclass(frozen=True)
class Series:
    """The series to cut, with columns that exist."""

    source: Table
    output: Relation
    id: str
    ts: str
    columns: tuple[str, ...]
    width: int
    stride: int
    label: str | None
    rule: str | None  # None if windows have no label
    expressions: TimeExpressions

    def clauses(self) -> dict[str, str]:
        """Return the clauses that the statements share."""
        return {
            "source": self.source.quoted,
            "id": quote_identifier(self.id),
            "ts": quote_identifier(self.ts),
            **vars(self.expressions),
        }

    def list_columns(self) -> list[str]:
        """Return the different columns of the source that the statements read."""
        columns = [self.id, self.ts, *self.columns]
        if self.label:
            columns.append(self.label)
        return list(dict.fromkeys(columns))


def make_windows(db: Database, arguments: WindowArguments) -> None:
    """Create the table of windows.

    Raises:
        InvalidParameter: there are no windows.
    """
    catalog = Catalog(db, "window_series")
    series = _find_series(catalog, arguments)
    with caller_rows(db, db.reading, {}) as rows:
        opened = replace(series, source=rows.open_table(series.source, series.list_columns()))
        if arguments.max_gap is None:
            gap = compute_usual_gap(db, opened)
        else:
            gap = _check_gap(catalog, opened, arguments.max_gap)
        db.rows(build_query(db, opened), gap)
    if not db.value(sql("read.has_rows", table=series.output.quoted)):
        raise InvalidParameter(
            f"window_series error: there is no window of {count_nouns(series.width, 'sample')} in "
            f"'{series.source.spelling}'{' that has one label' if series.rule == 'all' else ''}.",
            hint="Samples that have a missing value or the time of another one, and gaps, end a "
            "stretch. Try a smaller width, a longer max_gap, or another label_rule.",
        )
    db.rows(sql("series.key", output=series.output.quoted))


def _find_series(catalog: Catalog, arguments: WindowArguments) -> Series:
    """Find the tables and columns of a call, and check them."""
    width = _check_width(arguments.width)
    stride = arguments.stride
    check_positive(catalog.module, "stride", stride)
    rule = _choose_label_rule(arguments)
    source = catalog.resolve_input(arguments.source, "source")
    wait_for_source(catalog.db, LocalSession(catalog.db), source, read_wait_limit(catalog.db))
    output = catalog.reserve_output(arguments.output)
    columns = catalog.split_list(source, "columns", _require_name("columns", arguments.columns))
    for name in columns:
        _check_number(catalog, source, catalog.read_column(source, name))
    identity = _find_column(catalog, source, "id", arguments.id)
    ts = _find_column(catalog, source, "ts", arguments.ts)
    names = [*OUTPUT_COLUMNS, identity["name"]]
    label = None
    if rule:
        label = _find_column(catalog, source, "label", arguments.label)["name"]
        names.append(label)
    _check_names(names)
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
        expressions=make_time_expressions(source, identity, ts),
    )


def _choose_label_rule(arguments: WindowArguments) -> str | None:
    """Return the rule that labels windows; None if they have no label."""
    if arguments.label is None and arguments.label_rule is None:
        return None
    if arguments.label is None:
        raise NullNotAllowed(
            f"window_series error: label_rule is {arguments.label_rule!r}, and label is NULL.",
            hint="Name the column of labels.",
        )
    if arguments.label_rule is None:
        return RULES[0]
    rule = arguments.label_rule.strip().lower()
    if rule not in RULES:
        raise InvalidParameter(
            f"window_series error: label_rule is {arguments.label_rule!r}; expected one of "
            f"{', '.join(RULES)}."
        )
    return rule


def make_time_expressions(source: Table, identity: Row, ts: Row) -> TimeExpressions:
    """Return the expressions for a column of numbers, dates, timestamps or intervals."""
    column = f"t.{quote_identifier(ts['name'])}"
    if ts["category"] == NUMBERS:
        step = "double precision" if ts["base"] in FLOATS else "numeric"
        time = f"{column}::{step}"
        finite = f"{time} - {time} = '0'::{step}"
    else:
        step = "interval"
        time = f"{column}::{_choose_time_type(source, ts)}"
        finite = f"pg_catalog.isfinite({column})"
    placed = f"t.{quote_identifier(identity['name'])} IS NOT NULL AND {finite}"
    return TimeExpressions(time, step, placed)


def _choose_time_type(source: Table, ts: Row) -> str:
    """Return the type in which times are subtracted."""
    base = str(ts["base"])
    if ts["category"] == TIMESPANS:
        return "interval"
    if base == "date":
        return "timestamp"
    if base in ("timestamp", "timestamptz"):
        return base
    raise DatatypeMismatch(
        f"window_series error: column '{ts['name']}' of table '{source.spelling}' is of type "
        f"{ts['type']}; ts expects numbers, dates, timestamps or intervals."
    )


def compute_usual_gap(db: Database, series: Series) -> str | None:
    """Return the default of the longest step that is not a gap, and report it to the caller."""
    gap: str | None = db.value(sql("series.usual_gap", **series.clauses()))
    if gap is not None:
        db.info(f"window_series: a step of more than {gap} is a gap (max_gap)")
    return gap


def _check_gap(catalog: Catalog, series: Series, max_gap: str) -> str:
    """Check that a text is a step of the series."""
    step = series.expressions.step
    query = sql("series.is_gap", step=step)
    if not catalog.db.skip_invalid_values(lambda: catalog.db.value(query, max_gap)):
        expected = "an interval" if step == "interval" else "a number"
        raise InvalidParameter(
            f"window_series error: max_gap is {max_gap!r}; expected {expected} that is not "
            f"negative, as steps of column '{series.ts}' are."
        )
    return max_gap


def build_query(db: Database, series: Series) -> str:
    """Return the statement that creates the table of windows."""
    values = [f"t.{quote_identifier(name)}::real" for name in series.columns]
    conditions = [f"{value} - {value} = '0'::real" for value in values]
    label_clauses = dict.fromkeys(LABEL_CLAUSES, "")
    if series.label:
        label = quote_identifier(series.label)
        conditions.append(f"t.{label} IS NOT NULL")
        label_clauses["label_column"] = f", w.label AS {label}"
        label_clauses["label_of_sample"] = f", t.{label} AS label"
        label_clauses["label_of_window"] = f", {_aggregate_label(series)} AS label"
    if series.rule == "all":
        label_clauses["same_label"] = sql("series.one_label")
    return sql(
        "series.windows",
        output=series.output.quoted,
        x=f"ARRAY[{', '.join(values)}]",
        whole=f"coalesce({' AND '.join(conditions)}, false)",
        width=str(series.width),
        stride=str(series.stride),
        **label_clauses,
        **series.clauses(),
        **db.platform.clauses,
    )


def _aggregate_label(series: Series) -> str:
    """Return the label of a window as an aggregate of its samples."""
    if series.rule == "last":
        return sql("series.last_label", width=str(series.width), stride=str(series.stride))
    return sql("series.usual_label")


def _check_width(width: int | None) -> int:
    if width is None:
        raise NullNotAllowed(
            "window_series error: width is NULL; expected a positive whole number."
        )
    check_positive("window_series", "width", width)
    return width


def _require_name(argument: str, text: str | None) -> str:
    if text is None or not text.strip():
        raise NullNotAllowed(
            f"window_series error: {argument} is NULL or empty; expected the name of a column."
        )
    return text


def _find_column(catalog: Catalog, source: Relation, argument: str, text: str | None) -> Row:
    """Return the single column that an argument names."""
    columns = catalog.split_list(source, argument, _require_name(argument, text))
    if len(columns) != 1:
        raise InvalidParameter(
            f"window_series error: {argument} is {text!r}; expected the name of one column."
        )
    return catalog.read_column(source, columns[0])


def _check_number(catalog: Catalog, source: Relation, column: Row) -> None:
    if column["category"] != NUMBERS:
        raise DatatypeMismatch(
            f"{catalog.module} error: column '{column['name']}' of table '{source.spelling}' is of "
            f"type {column['type']}; columns expects numbers.",
            hint=suggest_numeric_view(source, column).replace("Pack", "Take"),
        )


def _check_names(names: Sequence[str]) -> None:
    """Check that the columns of the table of windows have different names."""
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise DuplicateColumn(
            f"window_series error: the table of windows would have {', '.join(duplicates)} twice.",
            hint=f"It has columns {', '.join(OUTPUT_COLUMNS)}, and those of id and label. Take a "
            "view with other names.",
        )
