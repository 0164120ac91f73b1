"""The candidates for members of a version: the best configurations of a run."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.refit.folds import may_fold
from cerebro_plpy.operations.refit.refit_plan import limit_candidates
from cerebro_plpy.operations.refit.refit_terms import RefitTerms
from cerebro_plpy.operations.register.final_metric import rank_candidates
from cerebro_plpy.operations.train.holdout_predictions import (
    HoldoutRequest,
    HoldoutRows,
    predict_in_parallel,
)
from cerebro_plpy.operations.train.run_results import RunResults
from cerebro_plpy.operations.train.train_ensemble import (
    Candidate,
    choose_places,
    choose_shares,
)
from cerebro_plpy.operations.train_budget import (
    MAX_MEMBERS,
    compute_max_candidates,
    compute_max_members,
)
from cerebro_plpy.preprocessing.scoring.scored_rows import NO_ROWS


def collect_candidates(results: RunResults, rows: HoldoutRows | None) -> list[Candidate]:
    """Return the configurations that may be members of a version, the best first.

    If a metric is computed at the end, they have predicted the rows that were held back.
    """
    train_spec = results.train_spec
    configs = results.read_configs()
    budget = train_spec.budget
    validation_rows = train_spec.split.validation_rows
    members = _count_members(results)
    if RefitTerms.from_spec(train_spec).is_possible and may_fold(results.context, train_spec):
        members = _count_members(results, limit_candidates(train_spec))
    count = members
    if train_spec.final_metric is not None:
        count = compute_max_candidates(budget, validation_rows)
    best = results.read_best(results.read_states())
    templates = [configs[result.mst_key]["template"] for result in best]
    candidates = []
    for place in choose_places(templates, count):
        result = best[place]
        config = configs[result.mst_key]
        network = results.make_network(result, config)
        candidates.append(Candidate(result, network, NO_ROWS, config["template"]))
    if not candidates:
        raise ObjectNotReady(
            f"run {results.run.run_id} has no model that could be compared with others",
            hint=f"SELECT * FROM cerebro.leaderboard WHERE run_id = {results.run.run_id};",
        )
    if rows is None:
        return candidates[:1]
    if train_spec.final_metric is not None:
        return rank_candidates(results, rows, candidates, members)
    return candidates


def _count_members(results: RunResults, limit: int = MAX_MEMBERS) -> int:
    """Return the largest number of configurations that an ensemble is chosen among."""
    train_spec = results.train_spec
    outputs = len(train_spec.classes) or 1
    rows = train_spec.split.validation_rows
    return compute_max_members(train_spec.ensemble, train_spec.budget, rows, outputs, limit)


def list_first_places(results: RunResults, library: Sequence[Candidate]) -> list[int]:
    """Return the places of the candidates among which the hold-out rows choose."""
    templates = [candidate.template for candidate in library]
    return choose_places(templates, _count_members(results))


def predict_candidates(
    results: RunResults,
    rows: HoldoutRows | None,
    library: Sequence[Candidate],
    places: Sequence[int],
) -> list[Candidate]:
    """Return the library, of which candidates at several places have predicted the hold-out rows.

    One alone needs no predictions to be chosen.
    """
    library = [*library]
    silent = [place for place in places if not library[place].scored_rows]
    if rows is None or len(places) < 2 or not silent:
        return library
    batches = [[HoldoutRequest(library[place].network)] for place in silent]
    for place, (scored_rows,) in zip(silent, predict_in_parallel(results.context, rows, batches)):
        library[place] = library[place]._replace(scored_rows=scored_rows)
    return library


def choose_holdout_shares(
    results: RunResults, library: Sequence[Candidate], places: Sequence[int]
) -> dict[int, float]:
    """Return the shares of a version's members by the hold-out rows, by place in the library.

    Args:
        places: of the candidates that have predicted these rows.
    """
    if len(places) < 2:
        return {0: 1.0}
    predictions = [library[place].scored_rows for place in places]
    shares = choose_shares(results.context, results.train_spec, predictions)
    return {places[position]: share for position, share in shares.items()}
