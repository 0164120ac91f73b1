"""The Greenplum segments that a packed table is spread over: all, or those of the user's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerebro_plpy.database.platform_protocol import (
    ALL,
    GPUS,
    KEY,
    Caller,
    Distribution,
    Reader,
    Row,
    Rules,
    Table,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.literals import show_value
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady, UndefinedColumn, WrongObjectType

if TYPE_CHECKING:
    from collections.abc import Sequence


class SegmentDistribution:
    """The methods of `Greenplum` about the segments of packed tables."""

    def choose_distribution(
        self, db: Caller, module: str, rules: Rules, segments: int | None
    ) -> Distribution:
        """Return the segments that the rules name, or only the first of them."""
        rows = db.rows(sql("spread.segments"))
        eligible = _select_segments(db, module, rows, rules)
        if segments is not None and segments > len(eligible):
            raise InvalidParameter(
                f"{module} error: n_segments is {segments}; expected at most {len(eligible)}, the "
                f"segments of Greenplum that distribution_rules {_spell(rules)!r} leaves to choose "
                "from.",
                hint="Leave n_segments out to use them all: a segment trains one configuration at "
                "a time.",
            )
        return _build_distribution(eligible[:segments], len(rows))

    def follow_distribution(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """Return the segments of a training table; a NOTICE reports rules that name others."""
        rows = db.rows(sql("spread.segments_of"), list(keys))
        segments = db.rows(sql("spread.segments"))
        if rules is not None:
            contents = {row["content"] for row in rows}
            eligible = _select_segments(db, module, segments, rules)
            if contents != {row["content"] for row in eligible}:
                db.notice(
                    f"distribution_rules is {_spell(rules)!r}; the rows go to the segments of the "
                    "training table instead."
                )
        return _build_distribution(rows, len(segments))

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Refuse a table that is not distributed by KEY.

        Greenplum must find the rows of a segment on one of its own segments by their key alone.
        """
        distribution_columns = session.run(sql("greenplum.distributed_by"), (table.oid,))
        if distribution_columns != [(KEY,)]:
            raise WrongObjectType(
                f"{module}: table '{table.spelling}' is not DISTRIBUTED BY ({KEY}), by which "
                "Greenplum finds the rows of a segment.",
                hint="Pack the table again with training_preprocessor_dl() or "
                "validation_preprocessor_dl().",
            )

    def check_keys(
        self, session: Reader, module: str, table: Table, segments: Sequence[int]
    ) -> None:
        """Refuse keys that cerebro.segment_key does not list: it locates the rows of a key."""
        unknown = [row[0] for row in session.run(sql("greenplum.unknown_keys"), (list(segments),))]
        if unknown:
            raise WrongObjectType(
                f"{module}: table '{table.spelling}' has values of {KEY} that are not in "
                f"cerebro.segment_key: {', '.join(map(str, unknown[:10]))}.",
                hint="Pack the table again with training_preprocessor_dl() or "
                "validation_preprocessor_dl().",
            )


def _build_distribution(rows: Sequence[Row], segments: int) -> Distribution:
    """Return the distribution over some of the cluster's segments.

    Args:
        segments: number of all segments.
    """
    keys = tuple(row["key"] for row in rows)
    contents = tuple(row["content"] for row in rows)
    if len(set(contents)) == segments:
        return Distribution(keys)
    return Distribution(keys, tuple(row["dbid"] for row in rows), contents)


def _spell(rules: Rules) -> str:
    """Return the rules as the user wrote them."""
    if rules is None:
        return ALL
    return rules if isinstance(rules, str) else rules.spelling


def _select_segments(db: Caller, module: str, segments: Sequence[Row], rules: Rules) -> list[Row]:
    """Return the segments that the rules name."""
    if rules in (None, ALL):
        return list(segments)
    if rules == GPUS:
        with db.configured(optimizer="off"):
            with_gpus = {row["content"] for row in db.rows(sql("spread.gpu_segments"))}
        if not with_gpus:
            raise ObjectNotReady(
                f"{module}: No GPUs configured on hosts.",
                hint="Leave distribution_rules out to use all segments. An administrator can name "
                "devices: SELECT cerebro.set('gpus', '0,1');",
            )
        return [row for row in segments if row["content"] in with_gpus]
    assert rules is not None and not isinstance(rules, str)  # other rules are tables
    dbids = _read_dbids(db, module, rules)
    primary_dbids = {row["dbid"] for row in segments}
    for dbid in dbids:
        if dbid not in primary_dbids:
            raise InvalidParameter(
                f"{module}: invalid dbid:{show_value(dbid)} in the distribution rules table.",
                detail=f"Primary segments have dbid {', '.join(map(str, sorted(primary_dbids)))}.",
                hint="SELECT dbid FROM gp_segment_configuration WHERE content >= 0 AND role = 'p'",
            )
    return [row for row in segments if row["dbid"] in dbids]


def _read_dbids(db: Caller, module: str, table: Table) -> list[int | None]:
    """Return the dbids in a distribution rules table."""
    if "dbid" not in {row["name"] for row in db.rows(sql("read.columns"), table.oid)}:
        raise UndefinedColumn(
            f"{module}: distribution rules table must contain dbid column",
            hint="Make it of rows of gp_segment_configuration, or pass 'all_segments' or "
            "'gpu_segments'.",
        )
    dbids = [row["dbid"] for row in db.rows(sql("spread.named_segments", table=table.quoted))]
    if len(set(dbids)) != len(dbids):
        raise InvalidParameter(
            f"{module}: distribution rules table contains duplicate dbids",
            detail=f"Received {dbids}.",
        )
    if not dbids:
        raise InvalidParameter(
            f"{module}: distribution rules table '{table.spelling}' is empty; expected the dbid of "
            "one segment or more."
        )
    return dbids
