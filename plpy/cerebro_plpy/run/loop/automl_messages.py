"""What a call of AutoML tells while it searches, in MADlib's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from cerebro_plpy.run.log.run_log import DecisionRow
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.scheduling.search.hyperband import Diagonals, Hyperband


class AutomlWords:
    """Tells by `info` what begins, and of each data set the lowest loss whenever that is another
    one.
    """

    def __init__(self, info: Callable[[str], None], request: FitRequest) -> None:
        rule = request.search.rule if request.search else None
        self._info, self._method = info, rule.hyperband if isinstance(rule, Diagonals) else None
        self._leaders: dict[str, Evaluation] = {}

    def decided(self, rows: Sequence[DecisionRow], evaluations: Iterable[Evaluation]) -> None:
        """What a rule has decided at once, and all that is known by then."""
        leaders: dict[str, Evaluation] = {}
        for each in sorted(evaluations, key=lambda each: (each.mst_key, each.epoch)):
            if each.loss == each.loss and (
                each.dataset not in leaders or each.loss < leaders[each.dataset].loss
            ):
                leaders[each.dataset] = each
        if leaders != self._leaders:
            self._leaders = leaders
            self._info("\n" + "".join(best_line(each) for _, each in sorted(leaders.items())))
        begun = [row for row in rows if row.action in ("start", "promote")]
        if begun:
            self._info(diagonal(self._method, begun) if self._method else suggested(len(begun)))


def best_line(best: Evaluation) -> str:
    """Who has the lowest loss over a data set."""
    return (
        f"Best {best.dataset} loss so far:\nmst_key={best.mst_key}: "
        f"metric={messages.metric_text(best)}, loss={best.loss}\n"
    )


def suggested(count: int) -> str:
    """So many configurations begin that were suggested."""
    return f"***Evaluating {count} newly suggested model configurations***"


def diagonal(method: Hyperband, rows: Sequence[DecisionRow]) -> str:
    """The rounds that begin together."""
    counts = Counter(method.locate(row.mst_key, row.last_epoch) for row in rows)
    (iterations,) = {each.iterations for each in method.schedule() if (each.s, each.i) in counts}
    told = ", ".join(
        f"{count} configs under bracket={s} & round={i}"
        for (s, i), count in sorted(counts.items(), reverse=True)
    )
    return f"*** Diagonally evaluating {told} with {iterations} iterations ***"
