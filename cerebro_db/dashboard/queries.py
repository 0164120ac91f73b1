"""What the pages read of the database, all of it by views in which the role sees what it may
see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from cerebro_db import records
from cerebro_db.driver import parse_url, translate_errors
from cerebro_db.errors import ConnectionFailure, ServerGone, UndefinedObject
from cerebro_db.records import Standing
from cerebro_db.run_reader import RunReader, unknown_run_error

# Plans of these short statements take less time than their compilation would.
OPTIONS = "-c jit=off -c application_name=cerebro-db-dashboard"
RUNS = 50
"""So many of the newest runs are listed."""

Row = Mapping[str, Any]


def _view(name: str, columns: str, schema: str = "cerebro") -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns.split()), schema=schema)


CONFIG = _view(
    "config",
    "run_id mst_key status reason epochs template source cloned_from warm_started_from best_epoch "
    "ended_by group_value",
)
PARAMETER = _view("parameter", "run_id mst_key name value")
DECISION = _view("decision", "run_id decision_no time mst_key action epoch rule reason act_id")
ACT = _view("act", "act_id run_id time actor action mst_key change status reason done_at")
MODEL = _view(
    "model",
    "model owner version task target source metric value deployed_at template training_rows "
    "validation_rows versions",
)
VERSION = _view(
    "model_version",
    "model owner version deployed created_at run_id mst_key template params task target source "
    "metric value training_rows validation_rows group_by",
)
GROUP = _view("model_group", "model owner version group_value template value training_rows")
FEATURE = _view(
    "feature", "model owner version place column kind reason constants importance importance_error"
)
GRANT = _view("model_grant", "model owner version outline")
RELATION = _view(
    "pg_class", "oid relname relnamespace relkind relispartition reltuples", "pg_catalog"
)
ATTRIBUTE = _view(
    "pg_attribute", "attrelid attname atttypid atttypmod attnum attisdropped", "pg_catalog"
)
DEPENDENCY = _view("pg_depend", "objid deptype", "pg_catalog")
OWN_SCHEMAS = ("information_schema", "cerebro", "cerebro_state", "cerebro_optuna")


def _quoted(name: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """The name in quotes, as the log writes all names."""
    return sa.literal('"').concat(sa.func.replace(name, '"', '""')).concat('"')


def _source(spec: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """What a run was trained on: the raw table of a model by name, else the packed one."""
    raw = spec.op("->")("train").op("->>")("relation")
    return sa.func.coalesce(raw, spec.op("->>")("source_table")).label("source")


def engine(url: str) -> sa.Engine:
    """Connections of the pages: few, for all are of one person."""
    parsed = parse_url(url)
    options = parsed.query.get("options", "")
    own = options if isinstance(options, str) else " ".join(options)
    reading = parsed.update_query_dict({"options": f"{own} {OPTIONS}".strip()})
    # Nothing but single statements is read: to begin and end transactions around them would cost as
    # much as they do.
    return sa.create_engine(reading, pool_size=3, max_overflow=3, isolation_level="AUTOCOMMIT")


class Reader(RunReader):
    """Rows for the pages. Every method raises a class of cerebro_db.errors when the server refuses.

    `spent` hears how many seconds the server took for each query.
    """

    def __init__(
        self, engine: sa.Engine, spent: Callable[[float], None] = lambda seconds: None
    ) -> None:
        super().__init__(engine)
        self._spent = spent

    def rows(self, query: sa.Select[Any]) -> list[Row]:  # type: ignore[override]
        """The rows of a query by the names of its columns."""
        names = [column.name for column in query.selected_columns]
        return [dict(zip(names, row, strict=True)) for row in self.tuples(query)]

    def tuples(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query as tuples, of which there may be very many: those that the driver has
        made.

        A connection that the server has ended meanwhile is replaced once.
        """
        try:
            return self._fetched(query)
        except (ConnectionFailure, ServerGone):
            return self._fetched(query)

    def _fetched(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        with translate_errors(), self.engine.connect() as connection:
            begun = time.monotonic()
            found = connection.execute(query).cursor
            self._spent(time.monotonic() - begun)
            return [] if found is None else list(found.fetchall())

    def advance(self, run_id: int) -> Row:
        """How far one run is, without the best configuration, which is dear; UndefinedObject
        without such a run.
        """
        progress = [column for column in records.PROGRESS.c if not column.name.startswith("best_")]
        found = self.rows(sa.select(*progress).where(records.PROGRESS.c.run_id == run_id))
        if not found:
            raise unknown_run_error(run_id)
        return found[0]

    def role(self) -> Row:
        """Who reads, where, and whether the extension is there and may be used."""
        extension = sa.exists(
            sa.select(records.EXTENSION).where(records.EXTENSION.c.extname == "cerebro_db")
        )
        schema = (
            sa.select(records.NAMESPACE.c.oid)
            .where(records.NAMESPACE.c.nspname == "cerebro")
            .scalar_subquery()
        )
        role = sa.literal_column("current_user::text", sa.Text)
        query = sa.select(
            role.label("role"),
            sa.func.quote_literal(sa.func.quote_ident(role)).label("literal"),
            sa.func.current_database().label("database"),
            extension.label("extension"),
            sa.func.coalesce(sa.func.has_schema_privilege(schema, "USAGE"), False).label("usage"),
        )
        return self.rows(query)[0]

    def runs_of(self, run_ids: Sequence[int]) -> list[Row]:
        """What these runs have come to."""
        run, progress = records.RUN, records.PROGRESS
        query = (
            sa.select(progress, run.c.started_at, run.c.error, _source(run.c.spec))
            .join_from(progress, run, run.c.run_id == progress.c.run_id)
            .where(progress.c.run_id.in_(run_ids))
        )
        return self.rows(query) if run_ids else []

    def mark_of_runs(self) -> list[tuple[int, str]]:
        """What must change where the list of runs is another one."""
        run = records.RUN.c
        query = sa.select(run.run_id, run.status).order_by(run.run_id.desc()).limit(RUNS)
        return [(row["run_id"], row["status"]) for row in self.rows(query)]

    def run(self, run_id: int) -> Row:
        """When a run began, on what, which model it has made, and why it failed, if so;
        UndefinedObject without one.
        """
        run, version = records.RUN.c, VERSION.c
        facts = sa.select(
            run.status,
            run.started_at,
            run.error,
            _source(run.spec),
            version.owner,
            version.model,
            version.version,
        ).outerjoin_from(records.RUN, VERSION, version.run_id == run.run_id)
        found = self.rows(facts.where(run.run_id == run_id))
        if not found:
            raise unknown_run_error(run_id)
        return found[0]

    def standings(self, run_id: int) -> list[Standing]:
        """The leaderboard without what is dear in it, the times of visits."""
        board = records.LEADERBOARD.c
        cheap = [column for column in board if column.name not in ("training_time", "seconds")]
        query = sa.select(*cheap).where(board.run_id == run_id).order_by(board.rank, board.mst_key)
        return [Standing(**row, training_time=None) for row in self.rows(query)]

    def config(self, run_id: int, mst_key: int) -> Row | None:
        """One configuration, with its parameters by name."""
        found = self.rows(
            sa.select(CONFIG).where(CONFIG.c.run_id == run_id, CONFIG.c.mst_key == mst_key)
        )
        if not found:
            return None
        parameter = PARAMETER.c
        query = sa.select(parameter.name, parameter.value).where(
            parameter.run_id == run_id, parameter.mst_key == mst_key
        )
        return {
            **found[0],
            "params": {
                row["name"]: row["value"] for row in self.rows(query.order_by(parameter.name))
            },
        }

    def decisions(self, run_id: int, count: int) -> list[Row]:
        """The newest decisions of a search, newest first."""
        decision = DECISION.c
        query = (
            sa.select(DECISION)
            .where(decision.run_id == run_id)
            .order_by(decision.decision_no.desc())
        )
        return self.rows(query.limit(count))

    def acts(self, run_id: int, count: int) -> list[Row]:
        """What people asked of a run last, newest first."""
        return self.rows(
            sa.select(ACT).where(ACT.c.run_id == run_id).order_by(ACT.c.act_id.desc()).limit(count)
        )

    def models(self) -> list[Row]:
        """Models by name that the role may use."""
        return self.rows(sa.select(MODEL).order_by(MODEL.c.model, MODEL.c.owner))

    def model(self, owner: str, model: str) -> Row:
        """One of them; UndefinedObject where the role may not use it, or there is none such."""
        found = self._of(MODEL, owner, model, MODEL.c.model)
        if not found:
            raise UndefinedObject(
                f"model {model!r} of {owner!r} does not exist, or you may not use it",
                hint="The page of models lists those that you may use.",
            )
        return found[0]

    def versions(self, owner: str, model: str) -> list[Row]:
        """The versions of a model, newest first; none of one that was granted."""
        return self._of(VERSION, owner, model, VERSION.c.version.desc())

    def features(self, owner: str, model: str, version: int) -> list[Row]:
        """What a version learned of each column, in their order."""
        query = self._chosen(FEATURE, owner, model).where(FEATURE.c.version == version)
        return self.rows(query.order_by(FEATURE.c.place))

    def groups(self, owner: str, model: str, version: int) -> list[Row]:
        """The models of groups of rows that a version has."""
        query = self._chosen(GROUP, owner, model).where(GROUP.c.version == version)
        return self.rows(query.order_by(GROUP.c.group_value))

    def granted(self, owner: str, model: str) -> Row | None:
        """What of a granted model may be known."""
        found = self._of(GRANT, owner, model, GRANT.c.model)
        return found[0]["outline"] if found else None

    def tables(self) -> list[Row]:
        """Tables and views that the role may read, but for those of the system and of
        extensions.
        """
        relation, schema = RELATION.c, records.NAMESPACE.c
        member = sa.exists().where(DEPENDENCY.c.objid == relation.oid, DEPENDENCY.c.deptype == "e")
        query = (
            sa.select(
                sa.func.format("%I.%I", schema.nspname, relation.relname).label("name"),
                _quoted(schema.nspname)
                .concat(".")
                .concat(_quoted(relation.relname))
                .label("quoted"),
                sa.func.nullif(relation.reltuples, -1).label("rows"),
            )
            .join_from(RELATION, records.NAMESPACE, schema.oid == relation.relnamespace)
            .where(
                relation.relkind.in_(("r", "p", "v", "m", "f")),
                sa.not_(relation.relispartition),
                schema.nspname.not_in(OWN_SCHEMAS),
                sa.not_(schema.nspname.startswith("pg_", autoescape=True)),
                sa.func.has_table_privilege(relation.oid, "SELECT"),
                sa.not_(member),
            )
            .order_by(schema.nspname, relation.relname)
        )
        return self.rows(query)

    def columns(self, source: str) -> list[Row]:
        """The columns of a table in their order, with their types as PostgreSQL writes them."""
        if not source:
            return []
        column = ATTRIBUTE.c
        query = (
            sa.select(
                column.attname.label("name"),
                sa.func.format_type(column.atttypid, column.atttypmod).label("type"),
            )
            .where(
                column.attrelid == sa.func.to_regclass(source),
                column.attnum > 0,
                sa.not_(column.attisdropped),
            )
            .order_by(column.attnum)
        )
        return self.rows(query)

    def _of(
        self, view: sa.TableClause, owner: str, model: str, order: sa.ColumnElement[Any]
    ) -> list[Row]:
        return self.rows(self._chosen(view, owner, model).order_by(order))

    def _chosen(self, view: sa.TableClause, owner: str, model: str) -> sa.Select[Any]:
        return sa.select(view).where(view.c.owner == owner, view.c.model == model)
