"""Ensembles: several configurations of a run as one model, if they predict better together."""

from __future__ import annotations

import json
from typing import NamedTuple

from cerebro_plpy.configs.templates.networks import ensemble
from cerebro_plpy.configs.templates.networks.ensemble import Member
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.operations.predict.model_predictor import COMPILE_PARAMS, describe_program
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Job, StateSource
from cerebro_plpy.platform.state_tables import joined_table
from cerebro_plpy.platform.visit_protocol import JoinedState
from cerebro_plpy.preprocessing.scoring.ensemble_selection import average_rows, select_greedily
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER, SCORES, ScoredRow
from cerebro_plpy.run.workers.workers import open_scoring_workers
from cerebro_plpy.tables.models.model_registry import Ensemble, RunResult


class Candidate(NamedTuple):
    """A network that may become a version."""

    result: RunResult
    network: Network
    scored_rows: list[ScoredRow]  # predictions for the hold-out rows; empty if not computed
    template: str | None = None


def build_ensemble(
    context: CallContext, train_spec: TrainSpec, library: list[Candidate]
) -> Candidate:
    """Return the best model that some of the candidates make, alone or together.

    Args:
        library: the candidates, the best one first.
    """
    score = SCORES[train_spec.metric]
    counts = select_greedily(
        [candidate.scored_rows for candidate in library],
        score,
        train_spec.metric in LARGER_IS_BETTER,
        train_spec.ensemble,
        context.check,
    )
    if len(counts) < 2:
        return library[next(iter(counts), 0)]
    total = sum(counts.values())
    members = [(library[index], count) for index, count in sorted(counts.items())]
    shares = [(candidate, count / total) for candidate, count in members]
    architecture = ensemble.build_architecture(
        [Member(candidate.network.architecture, share) for candidate, share in shares],
        len(train_spec.classes) or 1,
    )
    network = join_states(context, [candidate for candidate, _ in members], architecture)
    scored_rows = average_rows([(candidate.scored_rows, count) for candidate, count in members])
    params = [
        {"mst_key": candidate.result.mst_key, "template": candidate.template, "share": share}
        for candidate, share in shares
    ]
    best = members[0][0].result
    assert network.state.stored is not None
    result = RunResult(
        run_id=best.run_id,
        mst_key=best.mst_key,
        value=score(scored_rows),
        margin=None,
        state=network.state.stored,
        ensemble=Ensemble(ensemble.NAME, {"members": params}, architecture, COMPILE_PARAMS),
    )
    return Candidate(result, network, scored_rows)


def join_states(context: CallContext, members: list[Candidate], architecture: str) -> Network:
    """Return the network of an ensemble, with a state joined from those of its members."""
    first = members[0]
    run_id = first.result.run_id
    mst_key = first.result.mst_key
    segment = first.result.state.segment_id
    assert segment is not None, "a visit has stored the state of a logged configuration"
    key = f"{run_id}/{mst_key}/joined"
    parts = tuple((member.network.state, 1) for member in members)
    state = JoinedState(
        run_id,
        mst_key,
        StateSource("joined", key, 0, of=parts),
        joined_table(run_id, mst_key),
        segment,
    )
    program = describe_program(json.loads(architecture), COMPILE_PARAMS, first.network.classes)
    workers = open_scoring_workers(context, first.network.backend, False, (segment,))
    worker = workers.workers[0]
    stored = drive(worker.session, workers.visits.join(worker, state, Job("restore", program, key)))
    return first.network._replace(
        architecture=architecture,
        compile_params=COMPILE_PARAMS,
        state=StateSource("weights_of_chunks", key, 0, stored=stored),
    )
