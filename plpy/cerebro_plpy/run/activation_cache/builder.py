"""What frozen layers at the front of networks give is computed once for all rows, and what lies
behind trained on that.

Trainers fill tables beside the packed ones: the same segments, buffers and order of rows, with what
a layer gives as their inputs, unless an earlier run has left them. They are kept for a later one,
or go with the states of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.platform_protocol import KEY
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Steps
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError, ConfigFailure
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.job import Dataset, Filling, Job
from cerebro_plpy.platform.state_tables import SPLITS, STATE_SCHEMA, features_name, features_table
from cerebro_plpy.platform.statements import format_megabytes
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.selection import (
    BuildContext,
    Candidate,
    Selection,
    able_workers,
    select,
    side_by_side,
)
from cerebro_plpy.run.activation_cache.store import ActivationCache
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import Activations, CacheKey, FitRequest
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.workers.tasks import RETRYABLE_ERRORS
from cerebro_plpy.scheduling.planning.activation_cuts import Cut

DISK_FULL = "53100"
OTHERS = 1_000_000
"""More than a run has tables of features."""


def build_activations(
    site: BuildContext, request: FitRequest, past: Mapping[int, ConfigHistory]
) -> FitRequest:
    """The request where configurations train on features, which are stored by now."""
    repeats, memory = request.replay.cut_layers is not None, ActivationCache(site, request)
    try:
        selection = select(site, request, past, memory.has)
        if selection.chosen:
            return _stored(site, request, selection, memory)
    except CerebroError as error:
        if repeats or not _bearable(error):
            raise
        _give_up(site, error)
        return request
    if request.spec.arguments.feature_budget and not repeats:
        site.context.db.notice(f"feature_budget is not used: {selection.why}.")
    return request


def plan_activations(site: BuildContext, request: FitRequest) -> FitRequest:
    """The request with the features that would be stored, of which there are no tables yet."""
    try:
        selection = select(site, request, {}, ActivationCache(site, request).has)
    except CerebroError as error:
        if not _bearable(error):
            raise
        _give_up(site, error)
        return request
    planned = {
        key: Activations(
            cut,
            _shaped(request.source, cut),
            request.validation and _shaped(request.validation, cut),
            exists=cut.digest in selection.kept,
        )
        for key, cut in selection.chosen.items()
    }
    return replace(request, activations=planned)


def _bearable(error: CerebroError) -> bool:
    """Whether a run can go on without features."""
    return isinstance(error, (*RETRYABLE_ERRORS, ConfigFailure)) or error.sqlstate == DISK_FULL


def _give_up(site: BuildContext, error: CerebroError) -> None:
    for worker in site.worker_set.workers:
        worker.memory.forget()
    site.context.db.notice(
        f"what frozen layers give is computed again in each iteration: {error.message}"
    )


class _New(NamedTuple):
    """A table that is to be filled with what a layer gives for a packed one."""

    table: PackedTable
    filled: PackedTable


def _stored(
    site: BuildContext, request: FitRequest, selection: Selection, memory: ActivationCache
) -> FitRequest:
    """The request with these features, which workers compute side by side, as far as they are not
    kept.
    """
    made, work = dict[str, Activations](), list[tuple[Candidate, list[Filling]]]()
    anew = list[_New]()
    for number, (each, cut) in enumerate(_first(selection), 1):
        made[cut.digest], new = _made(site, request, memory, Place(each, cut, number))
        work.append((each, [filling for one in new for filling in _fillings(one, cut)]))
        anew += new
        _tell(site, selection, made[cut.digest])
    side_by_side(
        site, {worker: _fill(site, request, work, worker) for worker in site.worker_set.workers}
    )
    for worker in site.worker_set.workers:  # it has states of whole networks, at best
        worker.memory.lose_state()
    for one in anew:
        site.context.control.run(sql("pack.index", output=one.filled.relation.quoted))
    changed = {one.filled.relation.oid for one in anew if not memory.unchanged(*one)}
    site.log.write_cuts({key: cut.layer for key, cut in selection.chosen.items()})
    # Layers of different networks may give the same under different names.
    own = {
        key: made[cut.digest]._replace(cut=cut, cache_keys=_valid(made[cut.digest], changed))
        for key, cut in selection.chosen.items()
    }
    return replace(request, activations=own)


def _valid(features: Activations, changed: Collection[int]) -> tuple[CacheKey | None, ...]:
    """Fingerprints of tables whose rows were not changed while they were filled."""
    pairs = zip(features.cache_keys, features.tables)
    return tuple(None if table.relation.oid in changed else found for found, table in pairs)


def _tell(site: BuildContext, selection: Selection, features: Activations) -> None:
    cut = features.cut
    users = sum(chosen.digest == cut.digest for chosen in selection.chosen.values())
    size = format_megabytes(sum(table.rows for table in features.tables) * cut.nbytes)
    once = "an earlier run has computed for" if features.exists else "is computed once for"
    what = f"what layer {cut.layer} gives {once} {users} configurations ({size} MB)"
    site.context.db.info(f"run {site.log.run_id}: {what}")


def _first(selection: Selection) -> list[tuple[Candidate, Cut]]:
    """The first configuration with each of the cuts that give different things, by their
    digests.
    """
    found = dict[str, tuple[Candidate, Cut]]()
    for each in selection.found:
        cut = selection.chosen.get(each.config.mst_key)
        if cut:
            found.setdefault(cut.digest, (each, cut))
    return [pair for _, pair in sorted(found.items())]


class Place(NamedTuple):
    """Where what the layer of a cut gives for a configuration is stored: in the tables of that
    number.
    """

    candidate: Candidate
    cut: Cut
    number: int


def _made(
    site: BuildContext, request: FitRequest, memory: ActivationCache, place: Place
) -> tuple[Activations, list[_New]]:
    """The tables for what the layer of a cut gives, and those of them that are still to be
    filled.
    """
    made, new, prints = list[PackedTable](), list[_New](), list[Optional[CacheKey]]()
    for side, table in zip(SPLITS, (request.source, request.validation)):
        if table is None:
            continue
        name = features_name(site.log.run_id, place.number, side)
        prints.append(memory.print(place.candidate, place.cut, table))
        oid = memory.take(prints[-1], features_table(name), quote_identifier(name))
        if oid is None:
            made.append(_new_table(site, table, place, side))
            new.append(_New(table, made[-1]))
        else:
            made.append(_placed(table, place.cut, features_table(name), oid))
    validation = made[1] if made[1:] else None
    return Activations(place.cut, made[0], validation, not new, tuple(prints)), new


def _new_table(site: BuildContext, table: PackedTable, place: Place, side: str) -> PackedTable:
    """Make a table for what the layer of a cut gives for a packed one.

    It has another number if somebody, such as a backup, holds the table that an earlier attempt has
    made.
    """
    names = [
        features_name(site.log.run_id, number, side)
        for number in (place.number, place.number + OTHERS)
    ]
    try:
        return _table(site, table, place.cut, features_table(names[0]))
    except CerebroError as error:
        if error.sqlstate != LOCK_NOT_AVAILABLE:
            raise
    return _table(site, table, place.cut, features_table(names[1]))


def _fillings(new: _New, cut: Cut) -> list[Filling]:
    """What is to be computed for a table, partition by partition."""
    quoted = new.filled.relation.quoted
    return [
        Filling(Dataset(new.table, segment), cut.layer, cut.shape, quoted)
        for segment in new.table.segments
    ]


def _table(site: BuildContext, table: PackedTable, cut: Cut, name: str) -> PackedTable:
    """A new table for the features of a packed one."""
    weight = (table.weight,) if table.weight else ()
    names = [
        quote_identifier(column) for column in (table.independent[0], *table.dependent, *weight)
    ]
    shapes = [
        quote_identifier(f"{column}_shape")
        for column in (table.independent[0], *table.dependent, *weight)
    ]
    made = sql(
        "pack.table",
        output=name,
        literal=literal(name),
        columns=", ".join(f"{column} bytea NOT NULL" for column in names),
        shapes=", ".join(f"{shape} integer[] NOT NULL" for shape in shapes),
        **site.context.platform.clauses,
    )
    external = [sql("pack.external", output=name, column=column) for column in names]
    text = sql(
        "run.features_table", features=name, table="; ".join([made, *external]), literal=f"'{name}'"
    )
    ((oid,),) = site.context.control.run(text)
    return _placed(table, cut, name, oid)


def _placed(table: PackedTable, cut: Cut, name: str, oid: int) -> PackedTable:
    """A table with features of a packed one."""
    relation = Relation(f"features of {table.relation.spelling}", STATE_SCHEMA, name, oid, name)
    return replace(_shaped(table, cut), relation=relation, key=f"t.{quote_identifier(KEY)}")


def _shaped(table: PackedTable, cut: Cut) -> PackedTable:
    """A packed table with what the layer of a cut gives in place of its inputs."""
    return replace(table, independent=table.independent[:1], input_shapes=(cut.shape,))


def _fill(
    site: BuildContext,
    request: FitRequest,
    work: Sequence[tuple[Candidate, Sequence[Filling]]],
    worker: Worker,
) -> Steps[None]:
    """Let a worker fill the tables with some of the partitions."""
    for each, fillings in work:
        able = able_workers(site, request, each)
        own = [
            filling for number, filling in enumerate(fillings) if able[number % len(able)] is worker
        ]
        if own:
            job = Job(
                "predict", visit_jobs.describe_whole_program(request, each.config), each.state.key
            )
            yield from site.worker_set.visits.store_features(worker, each.state, job, own)
