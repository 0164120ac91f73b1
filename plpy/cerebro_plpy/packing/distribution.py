"""Which segments of Greenplum a packed table is spread over: by default all, else as the user's rules say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerebro_plpy.database.caller import Row
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady, UndefinedColumn, WrongObjectType

KEY = "__dist_key__"
ALL, GPUS = "all_segments", "gpu_segments"
RULES = (ALL, GPUS)


@dataclass(frozen=True)
class Distribution:
    """Keys that lie on different segments, and the database and content ids of these where they are not all."""

    keys: tuple[int, ...]
    dbids: tuple[int, ...] | None = None
    contents: tuple[int, ...] | None = None

    def told(self) -> tuple[str | list[int], str | list[int]]:
        """What the summary tells: as MADlib does, of all segments by name, else by database and content ids."""
        if self.dbids is None or self.contents is None:
            return ALL, ALL
        return sorted(self.dbids), sorted(self.contents)

    def first(self, count: int) -> Distribution:
        """Only the first of these segments: a packed table may have fewer rows than there are segments."""
        if count >= len(self.keys):
            return self
        return Distribution(
            self.keys[:count], self.dbids and self.dbids[:count], self.contents and self.contents[:count]
        )


def choose(catalog: Catalog, rules: str | None, wanted: int | None) -> Distribution:
    """The segments that the rules name, or so many of them."""
    every = catalog.db.rows(sql("spread.segments"))
    found = _named(catalog, every, rules)
    if wanted is not None and wanted > len(found):
        raise InvalidParameter(
            f"{catalog.module} error: n_segments is {wanted}; expected at most {len(found)}, the segments of"
            f" Greenplum that distribution_rules {rules or ALL!r} leaves to choose from.",
            hint="Leave n_segments out to use them all: a segment trains one configuration at a time.",
        )
    return _over(found[:wanted], len(every))


def following(catalog: Catalog, keys: Sequence[int], rules: str | None) -> Distribution:
    """The segments of a training table; the caller is told where rules name others."""
    rows = catalog.db.rows(sql("spread.segments_of"), list(keys))
    every = catalog.db.rows(sql("spread.segments"))
    contents = {row["content"] for row in rows}
    if rules is not None and contents != {row["content"] for row in _named(catalog, every, rules)}:
        catalog.db.notice(
            f"distribution_rules is {rules!r}; the rows go to the segments of the training table instead."
        )
    return _over(rows, len(every))


def _over(rows: Sequence[Row], segments: int) -> Distribution:
    """These of so many segments."""
    keys = tuple(row["key"] for row in rows)
    if len({row["content"] for row in rows}) == segments:
        return Distribution(keys)
    return Distribution(keys, tuple(row["dbid"] for row in rows), tuple(row["content"] for row in rows))


def _named(catalog: Catalog, every: Sequence[Row], rules: str | None) -> list[Row]:
    if rules in (None, ALL):
        return list(every)
    if rules == GPUS:
        with catalog.db.configured(optimizer="off"):
            found = {row["content"] for row in catalog.db.rows(sql("spread.gpu_segments"))}
        if not found:
            raise ObjectNotReady(
                f"{catalog.module}: No GPUs configured on hosts.",
                hint="Leave distribution_rules out to use all segments. An administrator can name devices in"
                " cerebro.setting: INSERT INTO cerebro.setting VALUES ('gpus', '0,1').",
            )
        return [row for row in every if row["content"] in found]
    dbids = _dbids(catalog, rules)
    known = {row["dbid"] for row in every}
    for dbid in dbids:
        if dbid not in known:
            raise InvalidParameter(
                f"{catalog.module}: invalid dbid:{'NULL' if dbid is None else dbid} in the distribution rules table.",
                detail=f"Primary segments have dbid {', '.join(map(str, sorted(known)))}.",
                hint="SELECT dbid FROM gp_segment_configuration WHERE content >= 0 AND role = 'p'",
            )
    return [row for row in every if row["dbid"] in dbids]


def _dbids(catalog: Catalog, rules: str | None) -> list[int | None]:
    table = catalog.relation(rules, "distribution rules")
    if "dbid" not in catalog.columns(table):
        raise UndefinedColumn(
            f"{catalog.module}: distribution rules table must contain dbid column",
            hint="Make it of rows of gp_segment_configuration, or pass 'all_segments' or 'gpu_segments'.",
        )
    dbids = [row["dbid"] for row in catalog.db.rows(sql("spread.named_segments", table=table.quoted))]
    if len(set(dbids)) != len(dbids):
        raise InvalidParameter(
            f"{catalog.module}: distribution rules table contains duplicate dbids", detail=f"Received {dbids}."
        )
    if not dbids:
        raise InvalidParameter(
            f"{catalog.module}: distribution rules table '{table.given}' is empty; expected the dbid of one segment"
            " or more."
        )
    return dbids


def check_table(catalog: Catalog, reader: Session, relation: Relation) -> None:
    """Greenplum has to find the rows of a segment on one of its own, by their key alone."""
    by = reader.run(sql("greenplum.distributed_by"), (relation.oid,))
    if by != [(KEY,)]:
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.given}' is not DISTRIBUTED BY ({KEY}), by which Greenplum finds the"
            " rows of a segment.",
            hint="Pack the table again with training_preprocessor_dl() or validation_preprocessor_dl().",
        )


def check_keys(catalog: Catalog, reader: Session, relation: Relation, segments: tuple[int, ...]) -> None:
    """Only of keys that this table lists is known where their rows lie."""
    unknown = [row[0] for row in reader.run(sql("greenplum.unknown_keys"), (list(segments),))]
    if unknown:
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.given}' has values of {KEY} that are not in cerebro.segment_key:"
            f" {', '.join(map(str, unknown[:10]))}.",
            hint="Pack the table again with training_preprocessor_dl() or validation_preprocessor_dl().",
        )
