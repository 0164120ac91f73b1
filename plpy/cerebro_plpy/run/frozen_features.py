"""What frozen layers at the front of networks give is computed once for all rows, and what lies behind trained on that.

Trainers tell where networks can be cut; `hopping.cuts` chooses, by what a run would take; trainers then fill tables
beside the packed ones: the same segments, buffers and order of rows, with what a layer gives as their inputs. These go
with the states of the run. A run that goes on, or is repeated, has the cuts that its log names, and fills them anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

from cerebro_plpy.configs.config import Config
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.dispatch import Dispatcher, Steps
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.platform import KEY
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError, ConfigFailure, ObjectNotReady
from cerebro_plpy.hopping.cuts import Cut, Means, Wish, choose
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.job import Dataset, Filling, Job, StateSource
from cerebro_plpy.platform.protocol import Worker
from cerebro_plpy.platform.state_tables import SIDES, STATE_SCHEMA, features_table
from cerebro_plpy.platform.statements import megabytes
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.records import replace
from cerebro_plpy.run import visits
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import Features, FitRequest
from cerebro_plpy.run.tasks import PASSING
from cerebro_plpy.run.timings import digest
from cerebro_plpy.run.training import ConfigTraining, Past
from cerebro_plpy.run.workers import Crew

T = TypeVar("T")
FROZEN = re.compile(r'"trainable"\s*:\s*false')
MEGABYTE = 1 << 20
DISK_FULL = "53100"
LARGEST_VALUE = 256 << 20
"""Bytes of a buffer's features: a value of the table, which a backend holds several times."""


class Site(NamedTuple):
    """Where features are computed: the workers of a run, and its log."""

    workplace: Workplace
    crew: Crew
    log: RunLog


class Candidate(NamedTuple):
    """A configuration with frozen layers, and the state from which it goes on."""

    config: Config
    state: StateSource
    cuts: tuple[Cut, ...] = ()


def with_features(site: Site, request: FitRequest, past: Mapping[int, Past]) -> FitRequest:
    """The request where configurations train on features, which are stored by now."""
    repeated = request.repeat.cuts
    if repeated is None and request.spec.arguments.feature_budget == 0:
        return request
    wanted = [each for each in _candidates(site, request, past) if repeated is None or each.config.mst_key in repeated]
    found, why = [], _obstacle(site, wanted)
    try:
        found = [] if why else _cut(site, request, wanted)
        chosen = _chosen(request, found) if repeated is None else _repeated(found, wanted, repeated, why)
        if chosen:
            return _stored(site, request, found, chosen)
    except CerebroError as error:
        if repeated is not None or not (isinstance(error, (*PASSING, ConfigFailure)) or error.sqlstate == DISK_FULL):
            raise
        for worker in site.crew.workers:
            worker.memory.forget()
        site.workplace.db.notice(f"what frozen layers give is computed again in each iteration: {error.message}")
        return request
    if request.spec.arguments.feature_budget is not None and repeated is None:
        site.workplace.db.notice(f"feature_budget is not used: {why or _reason(found)}.")
    return request


def _obstacle(site: Site, wanted: Sequence[Candidate]) -> str:
    """Why nothing can be stored; empty where something may be."""
    if not wanted:
        return "no configuration has layers that are not trained"
    if site.workplace.local:
        return "the tables are seen only by the caller's own session"
    if not site.workplace.platform.stores_features:
        return f"{site.workplace.platform.name} stores nothing that a trainer gives"
    return ""


def _reason(found: Sequence[Candidate]) -> str:
    """Why nothing was chosen."""
    if any(each.cuts for each in found):
        return "the run would take no less time by what fits into it"
    return "no network can be cut behind layers that are not trained, nor random"


def _candidates(site: Site, request: FitRequest, past: Mapping[int, Past]) -> Iterator[Candidate]:
    """The configurations that have frozen layers, and something left to do; TensorBoard is shown whole networks."""
    for config in request.configs:
        frozen = FROZEN.search(request.architectures[config.model_id].json)
        if not frozen or config.fit.callbacks.board or config.mst_key in request.repeat.starts:
            continue
        training = ConfigTraining.after(past.get(config.mst_key, Past()), request, config, site.log.run_id)
        if not (training.released or training.completed()):
            yield Candidate(config, training.state)


def _cut(site: Site, request: FitRequest, wanted: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with their cuts; trainers tell them, of each state and network once."""
    keys = [_key(request, each) for each in wanted]
    first = dict(reversed([*zip(keys, wanted)]))
    asked: dict[Worker, list[tuple[object, Candidate]]] = {worker: [] for worker in site.crew.workers}
    for number, (key, each) in enumerate(sorted(first.items(), key=lambda item: item[1].config.mst_key)):
        able = _able(site, request, each)
        asked[able[number % len(able)]].append((key, each))
    told = _side_by_side(site, {worker: _told(site, request, worker, some) for worker, some in asked.items()})
    known = {key: cuts for some in told for key, cuts in some}
    return [each._replace(cuts=known[key]) for key, each in zip(keys, wanted)]


def _key(request: FitRequest, candidate: Candidate) -> object:
    """What decides where a network can be cut, and what its layers give."""
    state = candidate.state
    seed = state.seed if state.source == "new" else None
    program = digest(visits.whole_program(request, candidate.config))
    return program, state.source, state.sql, state.values, state.stored, seed


def _told(
    site: Site, request: FitRequest, worker: Worker, asked: Sequence[tuple[object, Candidate]]
) -> Steps[list[tuple[object, tuple[Cut, ...]]]]:
    """What a worker tells of networks."""
    found = []
    for key, each in asked:
        job = Job("cuts", visits.whole_program(request, each.config), each.state.key)
        try:
            told = (yield from site.crew.visits.told(worker, each.state, job))["cuts"]
        except ConfigFailure:
            told = []  # its first visit says why
        cuts = (Cut(cut["layer"], cut["digest"], tuple(cut["shape"]), cut["flops"]) for cut in told)
        found.append((key, tuple(cuts)))
    return found


def _able(site: Site, request: FitRequest, candidate: Candidate) -> list[Worker]:
    """The workers that have the framework of a configuration."""
    framework = request.backends[candidate.config.mst_key]
    return [worker for worker in site.crew.workers if worker.framework == framework]


def _side_by_side(site: Site, steps: Mapping[Worker, Steps[T]]) -> list[T]:
    """What the steps of workers come to; where one fails the others come to their ends before that is raised."""
    dispatcher: Dispatcher[T] = Dispatcher(site.workplace.check)
    for number, (worker, its) in enumerate(steps.items()):
        dispatcher.begin(number, worker.session, its)
    found, errors = list[T](), []
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is None:
                found.append(cast(T, outcome.value))
            else:
                errors.append(outcome.error)
    if errors:
        raise errors[0]
    return found


def _chosen(request: FitRequest, found: Sequence[Candidate]) -> dict[int, Cut]:
    """The cuts that the run takes least with."""
    tables = [table for table in (request.source, request.validation) if table]
    most = LARGEST_VALUE // max(table.buffer_size for table in tables)
    evaluations = len(request.spec.evaluate_epochs)
    wishes = [
        Wish(each.config.mst_key, cuts, request.spec.epochs * each.config.fit.passes + evaluations)
        for each in found
        if (cuts := tuple(cut for cut in each.cuts if cut.nbytes <= most))
    ]
    budget, rows = request.spec.arguments.feature_budget, sum(table.rows for table in tables)
    decoded = sum(table.decoded_bytes for table in tables)
    means = Means(rows, decoded // rows, decoded)
    if budget is not None:  # who names one has said that it is worth a moment
        means = means._replace(budget=budget * MEGABYTE, overhead=0)
    return choose(wishes, means)


def _repeated(
    found: Sequence[Candidate], wanted: Sequence[Candidate], repeated: Mapping[int, str], why: str
) -> dict[int, Cut]:
    """The cuts at the layers that the log names."""
    cuts = {each.config.mst_key: {cut.layer: cut for cut in each.cuts} for each in found}
    missing = sorted(key for key in (each.config.mst_key for each in wanted) if repeated[key] not in cuts.get(key, {}))
    if missing:
        raise ObjectNotReady(
            f"configurations {missing} were trained on what frozen layers give, which cannot be stored now:"
            f" {why or 'their networks cannot be cut there'}",
            hint="COMMIT what the tables were made by, or train anew.",
        )
    return {key: cuts[key][repeated[key]] for key in cuts}


def _stored(site: Site, request: FitRequest, found: Sequence[Candidate], chosen: Mapping[int, Cut]) -> FitRequest:
    """The request with these features, which workers compute side by side."""
    first = {chosen[each.config.mst_key].digest: each for each in reversed(found) if each.config.mst_key in chosen}
    numbers = {name: number for number, name in enumerate(sorted(first), 1)}
    users = Counter(cut.digest for cut in chosen.values())
    made, work = {}, []
    for name, each in sorted(first.items()):
        cut = chosen[each.config.mst_key]
        sides = [(side, table) for side, table in zip(SIDES, (request.source, request.validation)) if table]
        names = [features_table(site.log.run_id, numbers[name], side) for side, _ in sides]
        tables = [_table(site, table, cut, quoted) for (_, table), quoted in zip(sides, names)]
        fillings = [
            Filling(Dataset(table, segment), cut.layer, cut.shape, stored.relation.quoted)
            for (_, table), stored in zip(sides, tables)
            for segment in table.segments
        ]
        work.append((each, fillings))
        made[name] = Features(cut.layer, tables[0], tables[1] if tables[1:] else None)
        size = sum(table.rows for _, table in sides) * cut.nbytes
        site.workplace.db.info(
            f"run {site.log.run_id}: what layer {cut.layer} gives is computed once for {users[name]} configurations"
            f" ({megabytes(size)} MB)"
        )
    _side_by_side(site, {worker: _fill(site, request, work, worker) for worker in site.crew.workers})
    for features in made.values():
        for stored in (features.source, *([features.validation] if features.validation else [])):
            site.workplace.control.run(sql("pack.index", output=stored.relation.quoted))
    site.log.cuts({key: cut.layer for key, cut in chosen.items()})
    # Layers of different networks may give the same under different names.
    own = {key: made[cut.digest]._replace(layer=cut.layer) for key, cut in chosen.items()}
    return replace(request, features=own)


def _table(site: Site, table: PackedTable, cut: Cut, name: str) -> PackedTable:
    """A new table for the features of a packed one."""
    weight = (table.weight,) if table.weight else ()
    names = [quote_identifier(column) for column in (table.independent[0], *table.dependent, *weight)]
    shapes = [quote_identifier(f"{column}_shape") for column in (table.independent[0], *table.dependent, *weight)]
    made = sql(
        "pack.table",
        output=name,
        columns=", ".join(f"{column} bytea NOT NULL" for column in names),
        shapes=", ".join(f"{shape} integer[] NOT NULL" for shape in shapes),
        **site.workplace.platform.clauses,
    )
    external = [sql("pack.external", output=name, column=column) for column in names]
    text = sql("run.features_table", features=name, table="; ".join([made, *external]), literal=f"'{name}'")
    ((oid,),) = site.workplace.control.run(text)
    relation = Relation(f"features of {table.relation.spelling}", STATE_SCHEMA, name, oid, name)
    key = f"t.{quote_identifier(KEY)}"
    return replace(table, relation=relation, independent=table.independent[:1], input_shapes=(cut.shape,), key=key)


def _fill(
    site: Site, request: FitRequest, work: Sequence[tuple[Candidate, Sequence[Filling]]], worker: Worker
) -> Steps[None]:
    """Let a worker fill the tables with some of the partitions."""
    for each, fillings in work:
        able = _able(site, request, each)
        own = [filling for number, filling in enumerate(fillings) if able[number % len(able)] is worker]
        if own:
            job = Job("predict", visits.whole_program(request, each.config), each.state.key)
            yield from site.crew.visits.store_features(worker, each.state, job, own)
