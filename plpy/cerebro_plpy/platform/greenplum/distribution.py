"""Which segments of Greenplum a packed table is spread over: by default all, else as the user's
rules say.
"""

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
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady, UndefinedColumn, WrongObjectType

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(db: Caller, module: str, rules: Rules, wanted: int | None) -> Distribution:
    """The segments that the rules name, or so many of them."""
    every = db.rows(sql("spread.segments"))
    found = _named(db, module, every, rules)
    if wanted is not None and wanted > len(found):
        raise InvalidParameter(
            f"{module} error: n_segments is {wanted}; expected at most {len(found)}, the segments "
            f"of Greenplum that distribution_rules {_given(rules)!r} leaves to choose from.",
            hint="Leave n_segments out to use them all: a segment trains one configuration at a "
            "time.",
        )
    return _over(found[:wanted], len(every))


def following(db: Caller, module: str, keys: Sequence[int], rules: Rules) -> Distribution:
    """The segments of a training table; the caller is told where rules name others."""
    rows = db.rows(sql("spread.segments_of"), list(keys))
    every = db.rows(sql("spread.segments"))
    contents = {row["content"] for row in rows}
    if rules is not None and contents != {
        row["content"] for row in _named(db, module, every, rules)
    }:
        db.notice(
            f"distribution_rules is {_given(rules)!r}; the rows go to the segments of the training "
            "table instead."
        )
    return _over(rows, len(every))


def _over(rows: Sequence[Row], segments: int) -> Distribution:
    """These of so many segments."""
    keys = tuple(row["key"] for row in rows)
    if len({row["content"] for row in rows}) == segments:
        return Distribution(keys)
    return Distribution(
        keys, tuple(row["dbid"] for row in rows), tuple(row["content"] for row in rows)
    )


def _given(rules: Rules) -> str:
    """The rules as the user wrote them."""
    return ALL if rules is None else rules if isinstance(rules, str) else rules.spelling


def _named(db: Caller, module: str, every: Sequence[Row], rules: Rules) -> list[Row]:
    if rules in (None, ALL):
        return list(every)
    if rules == GPUS:
        with db.configured(optimizer="off"):
            found = {row["content"] for row in db.rows(sql("spread.gpu_segments"))}
        if not found:
            raise ObjectNotReady(
                f"{module}: No GPUs configured on hosts.",
                hint="Leave distribution_rules out to use all segments. An administrator can name "
                "devices in cerebro.setting: INSERT INTO cerebro.setting VALUES ('gpus', '0,1').",
            )
        return [row for row in every if row["content"] in found]
    assert rules is not None and not isinstance(rules, str)  # what is no word is a table
    dbids = _dbids(db, module, rules)
    known = {row["dbid"] for row in every}
    for dbid in dbids:
        if dbid not in known:
            raise InvalidParameter(
                f"{module}: invalid dbid:{'NULL' if dbid is None else dbid} in the distribution "
                "rules table.",
                detail=f"Primary segments have dbid {', '.join(map(str, sorted(known)))}.",
                hint="SELECT dbid FROM gp_segment_configuration WHERE content >= 0 AND role = 'p'",
            )
    return [row for row in every if row["dbid"] in dbids]


def _dbids(db: Caller, module: str, table: Table) -> list[int | None]:
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


def check_table(reader: Reader, module: str, relation: Table) -> None:
    """Greenplum has to find the rows of a segment on one of its own, by their key alone."""
    by = reader.run(sql("greenplum.distributed_by"), (relation.oid,))
    if by != [(KEY,)]:
        raise WrongObjectType(
            f"{module}: table '{relation.spelling}' is not DISTRIBUTED BY ({KEY}), by which "
            "Greenplum finds the rows of a segment.",
            hint="Pack the table again with training_preprocessor_dl() or "
            "validation_preprocessor_dl().",
        )


def check_keys(reader: Reader, module: str, relation: Table, segments: Sequence[int]) -> None:
    """Only of keys that this table lists is known where their rows lie."""
    unknown = [row[0] for row in reader.run(sql("greenplum.unknown_keys"), (list(segments),))]
    if unknown:
        raise WrongObjectType(
            f"{module}: table '{relation.spelling}' has values of {KEY} that are not in "
            f"cerebro.segment_key: {', '.join(map(str, unknown[:10]))}.",
            hint="Pack the table again with training_preprocessor_dl() or "
            "validation_preprocessor_dl().",
        )
