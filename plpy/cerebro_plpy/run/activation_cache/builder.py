"""Storing the outputs of frozen layers once for all rows, so that only the rest is trained on them.

Trainers fill tables next to the packed ones, with the same segments, buffers and order of rows, and
with a layer's outputs as inputs. Tables that an earlier run has left are reused. At the end of the
run they are stored for later ones, or dropped with its states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.call_status import STORING
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.platform_protocol import KEY
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Steps
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError, ConfigFailure
from cerebro_plpy.nouns import count_nouns
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
    run_concurrently,
    select_cuts,
)
from cerebro_plpy.run.activation_cache.store import ActivationCache
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import Activations, CacheKey, FitRequest
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.state.limits import NEVER
from cerebro_plpy.run.workers.tasks import RETRYABLE_ERRORS
from cerebro_plpy.scheduling.planning.activation_cuts import Cut

DISK_FULL = "53100"
SECOND_NUMBERS = 1_000_000
"""Added to the number of a table whose name is taken; a run has fewer tables."""


class UnfilledTable(NamedTuple):
    """A new table for the outputs of a layer."""

    table: PackedTable  # the rows
    filled: PackedTable  # the new table


class Target(NamedTuple):
    """The outputs of a layer that are to be stored."""

    candidate: Candidate  # a configuration with that layer
    cut: Cut
    number: int  # of the tables of the run


def build_activations(
    build: BuildContext, request: FitRequest, histories: Mapping[int, ConfigHistory]
) -> FitRequest:
    """Store layer outputs if that is worth it; return the request that trains on them."""
    is_replay = request.replay.cut_layers is not None
    cache = ActivationCache(build, request)
    try:
        selection = select_cuts(build, request, histories, cache.is_cached)
        if selection.cuts:
            remaining = (request.deadline or NEVER).end
            build.log.enter_phase(build.call.db, STORING, remaining)
            return _store_outputs(build, request, selection, cache)
    except CerebroError as error:
        if is_replay or not _is_tolerable(error):
            raise
        _continue_without(build, error)
        return request
    if request.spec.arguments.feature_budget and not is_replay:
        build.call.db.notice(f"feature_budget is not used: {selection.reason}.")
    return request


def plan_activations(build: BuildContext, request: FitRequest) -> FitRequest:
    """Return the request with the layer outputs that would be stored, without creating tables."""
    cache = ActivationCache(build, request)
    try:
        selection = select_cuts(build, request, {}, cache.is_cached)
    except CerebroError as error:
        if not _is_tolerable(error):
            raise
        _continue_without(build, error)
        return request
    activations = {
        mst_key: Activations(
            cut,
            _replace_inputs(request.source, cut),
            request.validation and _replace_inputs(request.validation, cut),
            exists=cut.digest in selection.existing,
        )
        for mst_key, cut in selection.cuts.items()
    }
    return replace(request, activations=activations)


def _is_tolerable(error: CerebroError) -> bool:
    """Return whether a run can continue without stored outputs."""
    return isinstance(error, (*RETRYABLE_ERRORS, ConfigFailure)) or error.sqlstate == DISK_FULL


def _continue_without(build: BuildContext, error: CerebroError) -> None:
    for worker in build.worker_set.workers:
        worker.memory.forget()
    build.call.db.notice(
        f"the outputs of frozen layers are computed again in each epoch: {error.message}"
    )


def _store_outputs(
    build: BuildContext, request: FitRequest, selection: Selection, cache: ActivationCache
) -> FitRequest:
    """Compute the chosen outputs that are not stored yet; return the request that uses them."""
    by_digest: dict[str, Activations] = {}
    unfilled: list[UnfilledTable] = []
    work: list[tuple[Candidate, list[Filling]]] = []
    for number, (candidate, cut) in enumerate(_list_distinct_cuts(selection), 1):
        target = Target(candidate, cut, number)
        activations, new_tables = _prepare_tables(build, request, cache, target)
        by_digest[cut.digest] = activations
        unfilled += new_tables
        work.append((candidate, _list_fillings(new_tables, cut)))
        _report(build, selection, activations)
    workers = build.worker_set.workers
    run_concurrently(build, {worker: _fill(build, request, work, worker) for worker in workers})
    for worker in workers:
        worker.memory.lose_state()  # at best, it is that of a whole network
    for new in unfilled:
        build.call.control.run(sql("pack.index", output=new.filled.relation.quoted))
    changed = {new.filled.relation.oid for new in unfilled if not cache.is_unchanged(*new)}
    build.log.write_cuts({mst_key: cut.layer for mst_key, cut in selection.cuts.items()})
    activations_by_key = {}
    for mst_key, cut in selection.cuts.items():
        activations = by_digest[cut.digest]
        # Equal layers of different networks may have different names.
        activations_by_key[mst_key] = activations._replace(
            cut=cut, cache_keys=_list_valid_keys(activations, changed)
        )
    return replace(request, activations=activations_by_key)


def _list_valid_keys(
    activations: Activations, changed: Collection[int]
) -> tuple[CacheKey | None, ...]:
    """Return the keys of tables, with None for those whose rows were changed meanwhile."""
    pairs = zip(activations.cache_keys, activations.tables)
    return tuple(None if table.relation.oid in changed else key for key, table in pairs)


def _report(build: BuildContext, selection: Selection, activations: Activations) -> None:
    cut = activations.cut
    users = sum(other_cut.digest == cut.digest for other_cut in selection.cuts.values())
    size = format_megabytes(sum(table.rows for table in activations.tables) * cut.nbytes)
    verb = "an earlier run has computed for" if activations.exists else "is computed once for"
    configurations = count_nouns(users, "configuration")
    build.call.db.info(
        f"run {build.log.run_id}: what layer {cut.layer} gives {verb} {configurations} ({size} MB)"
    )


def _list_distinct_cuts(selection: Selection) -> list[tuple[Candidate, Cut]]:
    """Return the cuts with different outputs, by digest, each with its first configuration."""
    cuts: dict[str, tuple[Candidate, Cut]] = {}
    for candidate in selection.candidates:
        cut = selection.cuts.get(candidate.config.mst_key)
        if cut:
            cuts.setdefault(cut.digest, (candidate, cut))
    return [cuts[digest] for digest in sorted(cuts)]


def _prepare_tables(
    build: BuildContext, request: FitRequest, cache: ActivationCache, target: Target
) -> tuple[Activations, list[UnfilledTable]]:
    """Claim or create the tables for outputs; return also those that are to be filled."""
    tables: list[PackedTable] = []
    unfilled: list[UnfilledTable] = []
    keys: list[CacheKey | None] = []
    for side, table in zip(SPLITS, request.row_tables):
        name = features_name(build.log.run_id, target.number, side)
        quoted = features_table(name)
        key = cache.make_key(target.candidate, target.cut, table)
        oid = cache.claim(key, quoted, quote_identifier(name))
        if oid is None:
            filled = _create_table(build, table, target, side)
            unfilled.append(UnfilledTable(table, filled))
        else:
            filled = _describe_outputs(table, target.cut, quoted, oid)
        tables.append(filled)
        keys.append(key)
    validation = tables[1] if len(tables) > 1 else None
    activations = Activations(target.cut, tables[0], validation, not unfilled, tuple(keys))
    return activations, unfilled


def _create_table(
    build: BuildContext, table: PackedTable, target: Target, side: str
) -> PackedTable:
    """Create a table for the outputs for a packed table.

    It has another number if the table of an earlier attempt is being read, for example by a backup.
    """
    run_id = build.log.run_id
    try:
        name = features_name(run_id, target.number, side)
        return _create_named_table(build, table, target.cut, features_table(name))
    except CerebroError as error:
        if error.sqlstate != LOCK_NOT_AVAILABLE:
            raise
    name = features_name(run_id, target.number + SECOND_NUMBERS, side)
    return _create_named_table(build, table, target.cut, features_table(name))


def _create_named_table(
    build: BuildContext, table: PackedTable, cut: Cut, name: str
) -> PackedTable:
    columns = [table.independent[0], *table.dependent]
    if table.weight:
        columns.append(table.weight)
    names = [quote_identifier(column) for column in columns]
    shapes = [quote_identifier(f"{column}_shape") for column in columns]
    create = sql(
        "pack.table",
        output=name,
        literal=literal(name),
        columns=", ".join(f"{column} bytea NOT NULL" for column in names),
        shapes=", ".join(f"{shape} integer[] NOT NULL" for shape in shapes),
        **build.call.platform.clauses,
    )
    external = [sql("pack.external", output=name, column=column) for column in names]
    statements = "; ".join([create, *external])
    text = sql("run.features_table", features=name, table=statements, literal=f"'{name}'")
    ((oid,),) = build.call.control.run(text)
    return _describe_outputs(table, cut, name, oid)


def _list_fillings(tables: Sequence[UnfilledTable], cut: Cut) -> list[Filling]:
    """Return the partitions that are to be computed."""
    return [
        Filling(Dataset(new.table, segment), cut.layer, cut.shape, new.filled.relation.quoted)
        for new in tables
        for segment in new.table.segments
    ]


def _describe_outputs(table: PackedTable, cut: Cut, name: str, oid: int) -> PackedTable:
    """Return the table with a layer's outputs for a packed table."""
    relation = Relation(f"features of {table.relation.spelling}", STATE_SCHEMA, name, oid, name)
    key = f"t.{quote_identifier(KEY)}"
    return replace(_replace_inputs(table, cut), relation=relation, key=key)


def _replace_inputs(table: PackedTable, cut: Cut) -> PackedTable:
    """Return a packed table with a layer's outputs in place of its inputs."""
    return replace(table, independent=table.independent[:1], input_shapes=(cut.shape,))


def _fill(
    build: BuildContext,
    request: FitRequest,
    work: Sequence[tuple[Candidate, Sequence[Filling]]],
    worker: Worker,
) -> Steps[None]:
    """Let a worker fill its share of the partitions."""
    for candidate, fillings in work:
        workers = build.worker_set.list_with(request.backends[candidate.config.mst_key])
        share = [
            filling
            for number, filling in enumerate(fillings)
            if workers[number % len(workers)] is worker
        ]
        if share:
            program = visit_jobs.describe_whole_program(request, candidate.config)
            job = Job("predict", program, candidate.state.key)
            yield from build.worker_set.visits.store_features(worker, candidate.state, job, share)
