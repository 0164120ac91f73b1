"""Read the database for the pages, through views that show a role what it may see."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from cerebro_db.dashboard.metric_names import LOG_LOSS, LOSS, TRAIN_NAMES, RunMetrics, choose_names
from cerebro_db.driver import Rows as Tuples
from cerebro_db.driver import parse_url, translate_errors
from cerebro_db.errors import ConnectionFailure, ServerGone, UndefinedObject
from cerebro_db.records import (
    EXTENSION,
    FEATURE,
    GRANT,
    GROUP,
    LEADERBOARD,
    MEMBER,
    NAMESPACE,
    PARAMETER,
    PROGRESS,
    RUN,
    VERSION,
    Standing,
    declare_table,
)
from cerebro_db.run_reader import RunReader, unknown_run_error

# Compiling these short statements would take longer than their plans do.
OPTIONS = "-c jit=off -c application_name=cerebro-db-dashboard"
MAX_RUNS = 50
"""Number of runs in the list, the newest ones."""

Row = Mapping[str, Any]


CONFIG = declare_table(
    "config",
    "run_id mst_key status reason epochs template source cloned_from warm_started_from best_epoch "
    "ended_by group_value",
)
DECISION = declare_table(
    "decision", "run_id decision_no time mst_key action epoch rule reason act_id"
)
ACT = declare_table("act", "act_id run_id time actor action mst_key change status reason done_at")
MODEL = declare_table(
    "model",
    "model owner version task target source metric value deployed_at template training_rows "
    "validation_rows versions",
)
VISIT_ERROR = declare_table("visit", "run_id segment_id mst_key kind status started_at error")
EVALUATION_ERROR = declare_table("evaluation", "run_id segment_id mst_key status started_at error")


def _read_source(spec: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return SQL for the raw table that a run was trained on, or else for its packed table."""
    raw_table = spec.op("->")("train").op("->>")("relation")
    return sa.func.coalesce(raw_table, spec.op("->>")("source_table")).label("source")


def _read_task(spec: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return SQL for the task of a run of cerebro.train; NULL for other runs."""
    return spec.op("->")("train").op("->>")("task")


def _read_metric(run: Any) -> sa.ColumnElement[Any]:
    """Return SQL for the metric that ranks the configurations of a run at this time."""
    final_metric = run.spec.op("->")("train").op("->")("final_metric").op("->>")(0)
    final_metric = sa.case((run.status == "completed", final_metric))
    rank_metric = run.spec.op("->>")("rank_metric")
    names = {**TRAIN_NAMES, LOSS: LOG_LOSS}
    train_name = sa.case(names, value=rank_metric, else_=rank_metric)
    call_name = sa.case((_read_task(run.spec).is_not(None), train_name), else_=rank_metric)
    return sa.func.coalesce(final_metric, call_name).label("metric")


def make_engine(url: str) -> sa.Engine:
    """Return an engine with a few connections: all pages are those of one person."""
    # The pages read single statements. Transactions around them would cost as much as they do.
    return sa.create_engine(
        add_options(url, OPTIONS), pool_size=3, max_overflow=3, isolation_level="AUTOCOMMIT"
    )


def add_options(url: str | sa.URL, options: str) -> sa.URL:
    """Return a URL with more command-line options for the server session."""
    parsed = parse_url(url)
    existing = parsed.query.get("options", "")
    if not isinstance(existing, str):
        existing = " ".join(existing)
    return parsed.update_query_dict({"options": f"{existing} {options}".strip()})


class Reader(RunReader):
    """The queries of the pages; a refusal of the server raises a class of cerebro_db.errors.

    Args:
        add_cost: receives the seconds that the server took for each query.
    """

    def __init__(
        self, engine: sa.Engine, add_cost: Callable[[float], None] = lambda seconds: None
    ) -> None:
        super().__init__(engine)
        self._add_cost = add_cost
        self._metrics: dict[int, RunMetrics] = {}  # by run_id

    def read_rows(self, query: sa.Select[Any]) -> list[Row]:
        """Return the rows of a query as mappings from column names to values."""
        names = [column.name for column in query.selected_columns]
        return [dict(zip(names, row, strict=True)) for row in self.read_tuples(query)]

    def read_tuples(self, query: sa.Select[Any]) -> Tuples:
        """Return the rows of a query as the driver's own tuples, because there may be very many.

        If the server has ended the connection, the query is repeated once on a new one.
        """
        try:
            return self._execute(query)
        except (ConnectionFailure, ServerGone):
            return self._execute(query)

    def _execute(self, query: sa.Select[Any]) -> Tuples:
        with translate_errors(), self.engine.connect() as connection:
            start = time.monotonic()
            cursor = connection.execute(query).cursor
            self._add_cost(time.monotonic() - start)
            if cursor is None:
                return []
            return list(cursor.fetchall())

    def read_progress(self, run_id: int) -> Row:
        """Return the progress of a run without the best configuration, which is expensive.

        Raises:
            UndefinedObject: there is no such run.
        """
        view = PROGRESS
        columns = [column for column in view.c if not column.name.startswith("best_")]
        return self._read_row_of_run(run_id, sa.select(*columns).where(view.c.run_id == run_id))

    def _read_row_of_run(self, run_id: int, query: sa.Select[Any]) -> Row:
        rows = self.read_rows(query)
        if not rows:
            raise unknown_run_error(run_id)
        return rows[0]

    def read_role(self) -> Row:
        """Return the role and the database, and if the extension exists and may be used."""
        extension = sa.exists(sa.select(EXTENSION).where(EXTENSION.c.extname == "cerebro_db"))
        schema = (
            sa.select(NAMESPACE.c.oid).where(NAMESPACE.c.nspname == "cerebro").scalar_subquery()
        )
        role = sa.literal_column("current_user::text", sa.Text)
        query = sa.select(
            role.label("role"),
            sa.func.quote_literal(sa.func.quote_ident(role)).label("literal"),
            sa.func.current_database().label("database"),
            extension.label("extension"),
            sa.func.coalesce(sa.func.has_schema_privilege(schema, "USAGE"), False).label("usage"),
        )
        return self.read_rows(query)[0]

    def read_help(self, function: str) -> str:
        """Return the section of the SQL reference about a function, as text."""
        query = sa.select(sa.func.cerebro.help(function, "usage"))
        rows = self.read_tuples(query)
        return str(rows[0][0])

    def read_runs(self, run_ids: Sequence[int]) -> list[Row]:
        """Return the progress of runs, with their start, error and source."""
        if not run_ids:
            return []
        run = RUN
        progress = PROGRESS
        query = (
            sa.select(
                progress,
                run.c.started_at,
                run.c.error,
                _read_source(run.c.spec),
                _read_metric(run.c),
            )
            .join_from(progress, run, run.c.run_id == progress.c.run_id)
            .where(progress.c.run_id.in_(run_ids))
        )
        return self.read_rows(query)

    def read_run_statuses(self) -> list[tuple[int, str]]:
        """Return the ids and the statuses of the newest runs; a change means another list."""
        run = RUN.c
        query = sa.select(run.run_id, run.status).order_by(run.run_id.desc()).limit(MAX_RUNS)
        return [(row["run_id"], row["status"]) for row in self.read_rows(query)]

    def find_runs(self, search: str) -> list[int]:
        """Return the ids of the newest runs whose description contains all words of a search.

        The description has the id, the name, the source, the owner, the status and the metric.
        """
        run = RUN.c
        texts = (
            sa.cast(run.run_id, sa.Text),
            run.name,
            _read_source(run.spec),
            sa.cast(run.owner, sa.Text),
            run.status,
            _read_metric(run),
        )
        description = sa.func.lower(sa.func.concat_ws(" ", *texts))
        query = sa.select(run.run_id)
        query = query.order_by(run.run_id.desc())
        query = query.limit(MAX_RUNS)
        for word in search.lower().split():
            query = query.where(description.contains(word, autoescape=True))
        return [row["run_id"] for row in self.read_rows(query)]

    def read_run(self, run_id: int) -> Row:
        """Return the status, start, error, source and model version of a run.

        Raises:
            UndefinedObject: there is no such run.
        """
        run = RUN.c
        version = VERSION.c
        query = (
            sa.select(
                run.status,
                run.started_at,
                run.error,
                run.hint,
                _read_source(run.spec),
                version.owner,
                version.model,
                version.version,
            )
            .outerjoin_from(RUN, VERSION, version.run_id == run.run_id)
            .where(run.run_id == run_id)
        )
        return self._read_row_of_run(run_id, query)

    def read_run_metrics(self, run_id: int) -> RunMetrics:
        """Return the names of a run's metrics, which never change."""
        if run_id not in self._metrics:
            spec = RUN.c.spec
            query = sa.select(
                _read_task(spec).label("task"), spec.op("->>")("rank_metric").label("rank_metric")
            )
            for row in self.read_rows(query.where(RUN.c.run_id == run_id)):
                self._metrics[run_id] = choose_names(row["task"], row["rank_metric"])
        return self._metrics.get(run_id, RunMetrics())

    def read_train_call(self, run_id: int, names: Sequence[str]) -> Row | None:
        """Return what the log has of a call of cerebro.train; None for runs of other functions."""
        train = RUN.c.spec.op("->")("train")
        query = sa.select(*(train.op("->")(name).label(name) for name in names))
        is_train = _read_task(RUN.c.spec).is_not(None)
        rows = self.read_rows(query.where(RUN.c.run_id == run_id, is_train))
        return next(iter(rows), None)

    def read_standings(self, run_id: int) -> list[Standing]:
        """Return the leaderboard without the times of visits, which are expensive."""
        metrics = self.read_run_metrics(run_id)
        board = LEADERBOARD.c
        columns = [column for column in board if column.name not in ("training_time", "seconds")]
        query = (
            sa.select(*columns).where(board.run_id == run_id).order_by(board.rank, board.mst_key)
        )
        standings: list[Standing] = []
        for row in self.read_rows(query):
            renamed = {**row, "metric": metrics.rename(row["metric"])}
            standings.append(Standing(**renamed, training_time=None))
        return standings

    def read_config(self, run_id: int, mst_key: int) -> Row | None:
        """Return one configuration with its parameters by name; None if it does not exist."""
        config = CONFIG.c
        query = sa.select(CONFIG).where(config.run_id == run_id, config.mst_key == mst_key)
        rows = self.read_rows(query)
        if not rows:
            return None
        parameter = PARAMETER.c
        query = (
            sa.select(parameter.name, parameter.value)
            .where(parameter.run_id == run_id, parameter.mst_key == mst_key)
            .order_by(parameter.name)
        )
        params = {row["name"]: row["value"] for row in self.read_rows(query)}
        return {**rows[0], "params": params}

    def read_newest(self, number: sa.ColumnClause[Any], run_id: int, count: int) -> list[Row]:
        """Return the newest commands for a run, or decisions of its search, newest first.

        Args:
            number: column that numbers the rows of the view.
        """
        view: Any = number.table
        query = sa.select(view).where(view.c.run_id == run_id).order_by(number.desc())
        return self.read_rows(query.limit(count))

    def read_models(self) -> list[Row]:
        """Return the models by name that the role may use."""
        return self.read_rows(sa.select(MODEL).order_by(MODEL.c.model, MODEL.c.owner))

    def read_model(self, owner: str, model: str) -> Row:
        """Return one model.

        Raises:
            UndefinedObject: there is no such model, or the role may not use it.
        """
        rows = self.read_rows(_select_model(MODEL, owner, model))
        if not rows:
            raise UndefinedObject(
                f"model {model!r} of {owner!r} does not exist, or you may not use it",
                hint="The page of models lists those that you may use.",
            )
        return rows[0]

    def read_versions(self, owner: str, model: str) -> list[Row]:
        """Return the versions of a model, newest first; a granted model shows none."""
        query = _select_model(VERSION, owner, model)
        return self.read_rows(query.order_by(VERSION.c.version.desc()))

    def read_features(self, owner: str, model: str, version: int) -> list[Row]:
        """Return the features of a version in the order of their columns."""
        query = _select_version(FEATURE, owner, model, version)
        return self.read_rows(query.order_by(FEATURE.c.place))

    def read_groups(self, owner: str, model: str, version: int) -> list[Row]:
        """Return the models that a version has for groups of rows."""
        query = _select_version(GROUP, owner, model, version)
        return self.read_rows(query.order_by(GROUP.c.group_value))

    def read_members(self, owner: str, model: str, version: int) -> list[Row]:
        """Return the members of a version's model of all rows."""
        query = _select_version(MEMBER, owner, model, version)
        query = query.where(MEMBER.c.group_value.is_(None))
        return self.read_rows(query.order_by(MEMBER.c.position))

    def read_granted_features(self, owner: str, model: str) -> list[Row]:
        """Return the visible features of a granted model; none if it is not granted."""
        features: list[Row] = []
        for row in self.read_rows(_select_model(GRANT, owner, model))[:1]:
            for feature in row["outline"]["recipe"]["features"]:
                # Stored JSON has another name than the view cerebro.feature.
                features.append({**feature, "column_name": feature["column"]})
        return features


def _select_version(view: sa.TableClause, owner: str, model: str, version: int) -> sa.Select[Any]:
    return _select_model(view, owner, model).where(view.c.version == version)


def _select_model(view: sa.TableClause, owner: str, model: str) -> sa.Select[Any]:
    return sa.select(view).where(view.c.owner == owner, view.c.model == model)
