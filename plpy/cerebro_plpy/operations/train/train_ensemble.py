"""Several configurations of a run as one model, where they predict better together than the best of
them alone.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cerebro_plpy.configs.run_spec import Ranking
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
from cerebro_plpy.preprocessing.scoring.metrics import SCORES, ScoredRow
from cerebro_plpy.run.workers.workers import open_scoring_workers
from cerebro_plpy.tables.models.model_registry import Ensemble, RunResult


class Candidate(NamedTuple):
    """What a run has come to: a network, and what it says of the rows that are held back, as far as
    it was asked.
    """

    result: RunResult
    network: Network
    scored_rows: list[ScoredRow]
    template: str | None = None


def build_ensemble(
    workplace: CallContext, train: TrainSpec, ranking: Ranking, library: list[Candidate]
) -> Candidate:
    """The best that can be made of these, the best first: one of them, or several together."""
    score = SCORES[train.metric]
    counts = select_greedily(
        [each.scored_rows for each in library],
        score,
        ranking.descending,
        train.ensemble,
        workplace.check,
    )
    if len(counts) < 2:
        return library[next(iter(counts), 0)]
    members = [(library[place], count) for place, count in sorted(counts.items())]
    best, total = members[0][0], sum(counts.values())
    shares = [(each, count / total) for each, count in members]
    networks = [Member(each.network.architecture, share) for each, share in shares]
    text = ensemble.build_architecture(networks, len(train.classes) or 1)
    network = join_states(workplace, [each for each, _ in members], text)
    assert network.state.stored is not None
    told = average_rows([(each.scored_rows, count) for each, count in members])
    listed = [
        {"mst_key": each.result.mst_key, "template": each.template, "share": share}
        for each, share in shares
    ]
    described = Ensemble(ensemble.NAME, {"members": listed}, text, COMPILE_PARAMS)
    result = RunResult(
        best.result.run_id, best.result.mst_key, score(told), None, network.state.stored, described
    )
    return Candidate(result, network, told)


def join_states(workplace: CallContext, members: list[Candidate], text: str) -> Network:
    """The network of that architecture, its state made of those of its members."""
    first, of = members[0], tuple((each.network.state, 1) for each in members)
    run_id, mst_key, place = (
        first.result.run_id,
        first.result.mst_key,
        first.result.state.segment_id,
    )
    assert place is not None, "a state of a run's log is that of a visit"
    key = f"{run_id}/{mst_key}/joined"
    state = StateSource("joined", key, 0, of=of)
    crew = open_scoring_workers(workplace, first.network.backend, False, (place,))
    job = Job(
        "restore", describe_program(json.loads(text), COMPILE_PARAMS, first.network.classes), key
    )
    state_of_all = JoinedState(run_id, mst_key, state, joined_table(run_id, mst_key), place)
    stored = drive(crew.workers[0].session, crew.visits.join(crew.workers[0], state_of_all, job))
    kept = StateSource("weights_of_chunks", key, 0, stored=stored)
    return first.network._replace(architecture=text, compile_params=COMPILE_PARAMS, state=kept)
