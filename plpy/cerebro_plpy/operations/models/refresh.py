"""A model that learns of the rows that have come since: from its weights on, by the recipe that it
has.

Nothing is looked for anew: neither what columns are nor which configuration is the best. So it
takes a small part of the time of the call that trained the version. Whether what comes out predicts
is decided as for any new version.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import list_metric_epochs
from cerebro_plpy.configs.search_space.space import compile_text
from cerebro_plpy.configs.templates.budget import choose_frequency, choose_training_epochs
from cerebro_plpy.configs.templates.template import Rates
from cerebro_plpy.configs.train_spec import BaseVersion, TrainSpec
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, transaction
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import SourceRows, is_evaluated
from cerebro_plpy.errors import DatatypeMismatch, ObjectNotReady
from cerebro_plpy.limits import no_poll
from cerebro_plpy.operations.fit.drop_run_tables import drop_data
from cerebro_plpy.operations.fit.fit_request import make_request
from cerebro_plpy.operations.fit.input_tables import Models
from cerebro_plpy.operations.models.deployment import own
from cerebro_plpy.operations.predict.prediction_source import make_reading
from cerebro_plpy.operations.train.incremental_packing import Before, can_add, extend
from cerebro_plpy.operations.train.model_lineage import (
    Made,
    begun_from,
    custom_again,
    read_made,
    refuse_groups,
    sources,
)
from cerebro_plpy.operations.train.pack_training_data import Preparation, Prepared, packed, prepare
from cerebro_plpy.operations.train.register_version import register
from cerebro_plpy.operations.train.train import SCHEDULE
from cerebro_plpy.operations.train.train_request import deadline
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, Newer, RawTable, known_table
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.rows.weight_column import find_column, read_column_name
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.families import BYTES, JSON
from cerebro_plpy.records import replace
from cerebro_plpy.run.lifecycle import Audience, completing, reserve_run, train
from cerebro_plpy.run.request.run_request import FitRequest, Repeat
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.template_configs import count_steps
from cerebro_plpy.trainer_client import settings

MODULE = "refresh"
PART = 10
"""As large a part of the epochs of the first run, rounded up."""
RATE_SHARE = 0.3
"""Of the learning rate of then: weights that are good already are not to be shaken."""


def refresh(
    db: Database, gd: dict[str, Any], model: str | None, since: str | None, version: str
) -> list[Row]:
    """Train the version that predicts on the rows of now; a row about the new version, none where
    no rows are new.
    """
    began = time.monotonic()
    check_transaction(db, MODULE)
    db.platform.check_process(MODULE)
    made = read_made(db, MODULE, model, own(db, MODULE, model)["deployed"])
    refuse_groups(MODULE, made)
    settings.choose_gpus(settings.read(db), made.spec.arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    source, held = sources(catalog, made)
    tables = [each for each in (source, held) if each]
    custom = custom_again(db, made, tables)
    with open_context(db, gd, [source], made.spec.arguments.workers, custom) as workplace:
        for each in tables:
            wait_for_source(db, workplace.control, each, read_wait_limit(db))
        look = Look(workplace.control, made, (source, held), since, newest_run(db, made))
        if not look.grown():
            db.notice(
                f"{source.spelling} has no rows that the newest version of model {model!r} has not "
                "seen"
            )
            return []
        run_id = reserve_run(db, workplace)
        with packed(
            workplace, run_id, lambda: look.prepare(catalog, workplace, run_id)
        ) as prepared:
            if workplace.control.run(sql("refresh.known"), (model, prepared.fingerprint))[0][0]:
                drop_data(workplace.control, run_id)
                db.notice(
                    f"{source.spelling} has the rows that a version of model {model!r} was trained "
                    "on"
                )
                return []
            request = build_request(catalog, workplace, made, prepared, version)
            train(db, workplace, request, None, Audience(), run_id)
    with completing(db, gd, run_id):
        register(db, gd, run_id, began + made.asked.budget)
    return db.peek(sql("refresh.version"), run_id)


def newest_run(db: Database, made: Made) -> Before | None:
    """The run that the newest version of a model is of, if the log has it."""
    for row in db.peek(sql("refresh.newest"), made.version.model):
        spec = logged_run.read_run(db, row["run_id"]).spec
        if spec.train is not None:
            return Before(row["run_id"], spec, spec.train)
    return None


class Look:
    """The source as a version learned of it, with the rows of now, or those that its newest version
    has not seen.
    """

    def __init__(
        self,
        session: Session,
        made: Made,
        tables: tuple[Relation, Relation | None],
        since: str | None,
        before: Before | None,
    ) -> None:
        self._session, self._made, self._before = session, made, before
        self._source, self._held = tables
        column = None if since is None else _growing(session, self._source, since)
        self._newer = (
            None
            if column is None
            else Newer(column, before.train.newest.get(column) if before else None)
        )

    def grown(self) -> bool:
        """Whether there may be rows that are new."""
        if (
            self._newer is None
            or self._newer.value is None
            or is_evaluated(self._session, self._source)
        ):
            return True  # the source is read once, when it is packed
        with transaction(self._session):
            self._session.run(sql("session.configure"), (json.dumps(SETTINGS),))
            columns = read_columns(self._session, self._source.oid)
            later = compare(
                find_column(MODULE, columns, self._newer.column, "since"), ">", self._newer.value
            )
            statement = sql("refresh.grown", source=self._source.quoted, later=later.text)
            return bool(self._session.run(statement, later.values)[0][0])

    def prepare(self, catalog: Catalog, workplace: CallContext, run_id: int) -> Prepared:
        """Pack the new rows beside those that the newest version was made of, or all rows where
        that cannot be.
        """
        before, newer = self._before, self._newer
        version = self._made.version
        reading = make_reading(catalog.db, self._source, version)
        of = Preparation(self._source, reading, read_wait_limit(catalog.db), version.model)
        if (
            before
            and newer
            and self._held is None
            and can_add(self._session, before, self._made.asked, newer.column)
        ):
            return extend(catalog, workplace, partial(self._table, newer), run_id, (before, of))
        everything = None if newer is None else Newer(newer.column, None)
        return prepare(catalog, workplace, partial(self._table, everything), run_id, of)

    def _table(self, newer: Newer | None, rows: SourceRows) -> RawTable:
        """The table, in the snapshot in which it is packed."""
        return known_table(rows, MODULE, self._source, self._made.asked, self._held, newer)


def _growing(reader: Reader, source: Relation, since: str) -> str:
    """The name of a column whose values can be compared."""
    columns = {column.name: column for column in read_columns(reader, source.oid)}
    name = read_column_name(MODULE, columns, since, "since", source.spelling)
    if columns[name].family in (None, BYTES, JSON):
        raise DatatypeMismatch(
            f"{MODULE} error: since names column {name!r} of type {columns[name].type}; expected "
            "one that grows.",
            hint="For example a number that counts rows, or the time at which they were entered.",
        )
    return name


def build_request(
    catalog: Catalog, workplace: CallContext, made: Made, prepared: Prepared, version: str
) -> FitRequest:
    """What the run is asked: one configuration, from the weights of the version on."""
    key, before, data = made.version.mst_key, made.spec, prepared.data
    check_classes(made, prepared)
    first = made.asked.start.epochs if made.asked.start else before.epochs
    epochs = -(-first // PART)
    trained = before.epochs_before.get(key, 0) + (made.configs[key]["best_epoch"] or before.epochs)
    models, evaluated = (
        models_of(made, prepared, epochs),
        list_metric_epochs(epochs, choose_frequency(epochs)),
    )
    arguments = replace(
        before.arguments,
        source_table=prepared.inputs.source.table.quoted,
        validation_table=prepared.inputs.validation.table.quoted
        if prepared.inputs.validation
        else None,
        replay_run=None,
        workers=None,
        search=None,
        search_params=None,
    )
    spec = replace(
        before,
        arguments=arguments,
        epochs=epochs,
        frequency=choose_frequency(epochs),
        evaluate_epochs=evaluated,
        training_epochs=choose_training_epochs(evaluated),
        schedule=SCHEDULE,
        segments=data.source.segments,
        source=data.source.spec(),
        validation=data.validation.spec() if data.validation else None,
        version=version,
        tables={name: found.quoted for name, found in prepared.inputs.relations().items()},
        epochs_before={key: trained},
        train=train_spec(made, prepared, first),
    )
    request = make_request(catalog, workplace, spec, data, models, Repeat())
    assert spec.train is not None
    begun = begun_from(workplace.platform, spec.train)
    ends = deadline(made.asked.budget, 0.0, spec.train.ensemble, spec.train.validation_rows)
    return replace(request, warm_states=begun, deadline=ends)


def check_classes(made: Made, prepared: Prepared) -> None:
    """Raises ObjectNotReady where the network of the version does not fit what the rows of now come
    to.
    """
    differing = [
        name
        for name in prepared.data.source.spec().list_differences(made.spec.source)
        if name != "rows"
    ]
    if differing:
        raise ObjectNotReady(
            f"{MODULE} error: the training rows of now are of another kind than those of then: "
            f"{', '.join(differing)} differ.",
            detail="Such as where a class has no rows any more.",
            hint="Train the model again.",
        )


def models_of(made: Made, prepared: Prepared, epochs: int) -> Models:
    """The network of the version as one configuration, with learning rates that rise and fall
    anew.
    """
    key, source = made.version.mst_key, prepared.data.source
    config, fitted = made.configs[key], made.configs[key]["fit_params"]
    parsed = parse_fit_params(fitted)
    compiled = compile_again(
        config["compile_params"], Rates(count_steps(source, parsed.batch_size), epochs), made
    )
    texts = compiled, fitted, parse_compile_params(compiled, None), parsed
    architectures = {
        config["model_id"]: StoredModel(config["model_id"], made.version.architecture, False)
    }
    fields = made.template, made.params
    named = name_metrics(
        [Config(key, config["model_id"], *texts, (), *fields)], architectures, source, no_poll
    )
    return Models(named, architectures, None, {key: config["backend"]})


def compile_again(text: str, rates: Rates, made: Made) -> str:
    """The compile parameters of before by other rates; a version that was refreshed has the gentle
    rate already.
    """
    before = parse_compile_params(text, None)
    settings = dict(before.optimizer.config)
    rate: Any = settings.pop("learning_rate")
    highest = float(rate["config"]["warmup_target"] if isinstance(rate, dict) else rate)
    gentle = highest * (1.0 if made.asked.start else RATE_SHARE)
    optimizer = {
        "optimizer": before.optimizer.class_name,
        **settings,
        "learning_rate": rates.make_schedule(gentle),
    }
    return compile_text({**optimizer, "loss": before.loss, "metrics": list(before.metrics)})


def train_spec(made: Made, prepared: Prepared, epochs: int) -> TrainSpec:
    """What the log keeps: what it kept of the version, with the rows of now."""
    table, key = prepared.table, made.version.mst_key
    return replace(
        made.asked,
        bound=table.bound,
        recipe=table.recipe.to_json(),
        identity=table.identity,
        reading=prepared.reading,
        training_rows=table.rows,
        validation_rows=table.validation_rows,
        templates={key: made.template},
        params={key: made.params},
        ensemble=1,
        fingerprint=prepared.fingerprint,
        profile=prepared.profile.to_json(),
        newest=table.newest,
        hashes=prepared.hashes,
        additions=prepared.additions,
        start=BaseVersion(made.version.run_id, key, epochs),
        compared=prepared.compared,
    )
