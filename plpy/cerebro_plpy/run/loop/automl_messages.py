"""The messages of AutoML during a search, in MADlib's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.run.log.step_log import DecisionRow
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.scheduling.search.hyperband import Diagonals, Hyperband


class AutomlMessages:
    """Messages about starts, and about each data set's lowest loss whenever it changes."""

    def __init__(self, info: Callable[[str], None], request: FitRequest) -> None:
        self._info = info
        self._hyperband: Hyperband | None = None
        if request.search and isinstance(request.search.rule, Diagonals):
            self._hyperband = request.search.rule.hyperband
        self._leaders: dict[str, Evaluation] = {}

    def report_decisions(
        self, rows: Sequence[DecisionRow], evaluations: Iterable[Evaluation]
    ) -> None:
        """Report decisions that were made at once, and all evaluations so far."""
        leaders = find_leaders(evaluations)
        if leaders != self._leaders:
            self._leaders = leaders
            lines = [describe_leader(best) for _, best in sorted(leaders.items())]
            self._info("\n" + "".join(lines))
        starts = [row for row in rows if row.action in ("start", "promote")]
        if starts and self._hyperband:
            self._info(describe_diagonal(self._hyperband, starts))
        elif starts:
            self._info(f"***Evaluating {len(starts)} newly suggested model configurations***")


def find_leaders(evaluations: Iterable[Evaluation]) -> dict[str, Evaluation]:
    """Return the evaluation with the lowest loss of each data set; NaN never leads."""
    leaders: dict[str, Evaluation] = {}
    for evaluation in sorted(evaluations, key=attrgetter("mst_key", "epoch")):
        leader = leaders.get(evaluation.dataset)
        if evaluation.loss == evaluation.loss and (not leader or evaluation.loss < leader.loss):
            leaders[evaluation.dataset] = evaluation
    return leaders


def describe_leader(best: Evaluation) -> str:
    """Return the message about the lowest loss over a data set."""
    return (
        f"Best {best.dataset} loss so far:\nmst_key={best.mst_key}: "
        f"metric={messages.format_metric(best)}, loss={best.loss}\n"
    )


def describe_diagonal(hyperband: Hyperband, rows: Sequence[DecisionRow]) -> str:
    """Return the message about rounds of brackets that begin together."""
    counts = Counter(hyperband.locate(row.mst_key, row.last_epoch) for row in rows)
    (iterations,) = {
        round_.iterations for round_ in hyperband.schedule() if (round_.s, round_.i) in counts
    }
    rounds = ", ".join(
        f"{count_nouns(count, 'config')} under bracket={s} & round={i}"
        for (s, i), count in sorted(counts.items(), reverse=True)
    )
    return f"*** Diagonally evaluating {rounds} with {count_nouns(iterations, 'iteration')} ***"
