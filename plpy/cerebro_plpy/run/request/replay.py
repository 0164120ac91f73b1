"""Replay: the seed, the visit orders, forms and thread count of an earlier run, for the same bits
again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.run_spec import FitArguments, Ranking, read_copies, read_epochs_before
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import PATIENCE
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import (
    LIST_RUNS,
    DataCorrupted,
    FeatureNotSupported,
    InvalidParameter,
    NullNotAllowed,
    hidden_run,
)
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.request.run_request import BUDGET_OVER, CloneStart, Ending
from cerebro_plpy.scheduling.planning.run_plan import AVERAGE, AVERAGES, LATE
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING

Orders = dict[tuple[int, int], tuple[int, ...]]
Forms = dict[tuple[int, int, int], str]


class RecordedConfig(NamedTuple):
    """A configuration as the log has it: by what it was trained, from whose state it began if it
    did, where it comes from, what it is, how many visits had left that state, which older versions
    did not log, what became of it, and the layer on whose outputs it was trained, if it was."""

    mst_key: int
    backend: str
    warm_started_from: int | None
    source: str
    model_id: int
    compile_params: str
    fit_params: str
    warm_started_visits: int | None
    status: str
    cut: str | None


@dataclass(frozen=True)
class RunRecord:
    """What of an earlier run decides its bits, beside its data; its `configs` are those that its
    call named, and others that have joined. Some began `warm`, from states of others, of which
    `starts` are known."""

    run_id: int
    seed: int
    epochs: int
    segments: tuple[int, ...]
    orders: Orders
    forms: Forms
    threads: int | None
    dtype_policy: str | None
    backends: dict[int, str]
    functions: Mapping[str, str]
    epochs_before: Mapping[int, int]
    endings: Mapping[int, Ending]
    max_epochs: Mapping[int, int]
    warm_started: frozenset[int]
    configs: tuple[RecordedConfig, ...]
    clone_starts: Mapping[int, CloneStart]
    patience: EarlyStopping | None
    evaluate_epochs: tuple[int, ...]
    is_averaging: bool
    copies: int | None

    @property
    def call_keys(self) -> frozenset[int]:
        """The configurations that its call named."""
        return frozenset(each.mst_key for each in self.configs if each.source == "call")

    @property
    def added_configs(self) -> tuple[RecordedConfig, ...]:
        """Those that have joined."""
        return tuple(each for each in self.configs if each.source != "call")

    @property
    def completed_epochs(self) -> Mapping[int, int]:
        """How many epochs those trained that were completed, of which something was decided."""
        completed = {each.mst_key for each in self.configs if each.status == "completed"}
        return {key: self.max_epochs[key] for key in completed & self.max_epochs.keys()}

    @property
    def cut_layers(self) -> Mapping[int, str]:
        """The layers on whose outputs configurations were trained."""
        return {each.mst_key: each.cut for each in self.configs if each.cut is not None}

    def find_repeatable(self, mst_keys: Iterable[int], epochs: int) -> set[int]:
        """Those of these configurations that so many epochs can repeat: no clones of states that do
        not come.
        """
        wanted, reach = set(mst_keys), epochs * len(self.segments)
        found = wanted - self.warm_started
        starts = {
            key: self.clone_starts[key]
            for key in wanted & self.clone_starts.keys()
            if self.clone_starts[key].visits <= reach
        }
        while more := {key for key, start in starts.items() if start.parent in found} - found:
            found |= more
        return found


def read_run_record(control: Session, module: str, run_id: int | None) -> RunRecord:
    """The record of a run that the caller may see."""
    if run_id is None:
        raise NullNotAllowed(
            f"{module} error: schedule 'replay' needs replay_run, the id of the run to repeat.",
            hint=LIST_RUNS,
        )
    seed, epochs, segments, policy, schedule, copies, single, functions, before = _logged(
        control, module, run_id
    )
    visits = control.run(sql("run.recorded_visits"), (run_id,))
    threads = {row[3] for row in visits}
    _check_repeatable(module, run_id, threads, single=single)
    orders = {(row[0], row[1]): tuple(row[2]) for row in visits}
    configs = [RecordedConfig(*row) for row in control.run(sql("run.recorded_configs"), (run_id,))]
    patience, evaluated = _patience(control, module, run_id)
    return RunRecord(
        run_id=run_id,
        seed=seed,
        epochs=epochs,
        segments=tuple(segments),
        orders=orders,
        forms={
            (row[0], row[1], segment): form
            for row in visits
            for segment, form in zip(row[2], row[4])
        },
        threads=next(iter(threads), None),
        dtype_policy=policy,
        backends={each.mst_key: each.backend for each in configs},
        functions=json.loads(functions),
        epochs_before=_epochs_before(before),
        endings=compute_endings(
            orders, dict(control.run(sql("run.recorded_endings"), (run_id, run_id, BUDGET_OVER)))
        ),
        max_epochs=dict(control.run(sql("run.recorded_limits"), (run_id, run_id, run_id))),
        warm_started=frozenset(
            each.mst_key for each in configs if each.warm_started_from is not None
        ),
        configs=tuple(configs),
        clone_starts={each.mst_key: start for each in configs if (start := _start(each))},
        patience=patience,
        evaluate_epochs=evaluated,
        is_averaging=schedule == AVERAGING,
        copies=_copies(copies, segments),
    )


def _logged(control: Session, module: str, run_id: int) -> Sequence[Any]:
    """What the log has of the run itself."""
    runs = control.run(sql("run.recorded"), (run_id,))
    if not runs:
        raise hidden_run(run_id, module)
    return runs[0]


def _patience(
    control: Session, module: str, run_id: int
) -> tuple[EarlyStopping | None, tuple[int, ...]]:
    """What stopped configurations in a search by patience, which may be repeated itself, and when
    it was asked.
    """
    repeated: int | None = run_id
    while repeated is not None:
        rows = control.run(sql("run.recorded_search"), (repeated,))
        search, params, dataset, metric, descending, evaluated, repeated = (
            rows[0] if rows else (None,) * 7
        )
        if search == PATIENCE:
            rule = read_search_rule(module, search, params, None)
            return rule.make_early_stopping(
                Ranking(dataset, metric, descending)
            ) if rule else None, tuple(json.loads(evaluated))
    return None, ()


def _start(config: RecordedConfig) -> CloneStart | None:
    if config.warm_started_from is None or config.warm_started_visits is None:
        return None
    return CloneStart(config.warm_started_from, config.warm_started_visits)


def compute_endings(orders: Orders, ended: Mapping[int, int]) -> dict[int, Ending]:
    """Where a budget ended configurations that visited these orders; `ended` has their last epochs
    with metrics.

    >>> ends = compute_endings({(1, 1): (0, 1), (1, 2): (1,), (2, 1): (1,)}, {1: 1, 2: 1, 3: 0})
    >>> {mst_key: tuple(ending) for mst_key, ending in ends.items()}
    {1: (3, False), 2: (1, True), 3: (0, False)}
    """
    found = {}
    for mst_key, evaluated in ended.items():
        made = {epoch: len(order) for (key, epoch), order in orders.items() if key == mst_key}
        found[mst_key] = Ending(sum(made.values()), evaluated in made and evaluated == max(made))
    return found


def _epochs_before(logged: str) -> dict[int, int]:
    try:
        return read_epochs_before(json.loads(logged))
    except (TypeError, ValueError) as error:
        raise DataCorrupted(
            "the log of the run does not say how many epochs configurations were trained before",
            detail=f"{type(error).__name__}: {error}",
            hint="The column spec of cerebro.run was changed. Train again.",
        ) from error


def _copies(logged: float | None, segments: Sequence[int]) -> int | None:
    try:
        return read_copies(logged, len(segments))
    except ValueError as error:
        raise DataCorrupted(
            f"the log of the run says that {error}",
            hint="The column spec of cerebro.run was changed. Train again.",
        ) from error


def _check_repeatable(module: str, run_id: int, threads: set[int], *, single: bool) -> None:
    if single:
        raise InvalidParameter(
            f"{module} error: run {run_id} is one of madlib_fit(), which averages; no order of "
            "visits repeats it.",
            hint="The same call with the same seed repeats it.",
        )
    if len(threads) > 1:
        raise InvalidParameter(
            f"{module} error: the trainers of run {run_id} had different numbers of threads "
            f"({sorted(threads)}); it cannot be repeated to the bit.",
            hint="Its configurations can be trained again by a run of their own.",
        )


def complete_orders(
    module: str,
    recorded: RunRecord,
    epochs: int,
    segments: tuple[int, ...],
    mst_keys: Collection[int],
) -> Orders:
    """The orders for a run over these segments; what the earlier run did not do, it cannot tell."""
    known = (
        {key for key, _ in recorded.orders} | recorded.endings.keys() | recorded.max_epochs.keys()
    )
    missing = sorted(set(mst_keys) - known)
    if recorded.segments != segments or epochs > recorded.epochs or missing:
        raise InvalidParameter(
            f"{module} error: run {recorded.run_id} went over {recorded.epochs} iterations, "
            f"segments {list(recorded.segments)} and configurations {sorted(known)}; this call "
            f"asks for {epochs} iterations, segments {list(segments)} and configurations "
            f"{sorted(mst_keys)}.",
            hint="Replay with the packed table and the model selection table of that run.",
        )
    return {
        (key, epoch): complete_order(recorded.orders.get((key, epoch), ()), segments)
        for key in mst_keys
        for epoch in range(1, epochs + 1)
    }


def check_replay_arguments(module: str, arguments: FitArguments, recorded: RunRecord) -> None:
    """Raises InvalidParameter where a replay is asked for with other settings than the run that it
    repeats had, and FeatureNotSupported where that averaged until the time was over, of which no
    order tells."""
    asked = {
        "seed": (arguments.seed, recorded.seed),
        "dtype_policy": (arguments.dtype_policy, recorded.dtype_policy),
    }
    for name, (wanted, had) in asked.items():
        if wanted not in (None, had):
            raise InvalidParameter(
                f"{module} error: {name} is {wanted!r}, but run {recorded.run_id} had {name} "
                f"{had!r}.",
                hint=f"Leave {name} out: a replay takes that of the run it repeats.",
            )
    averaged = (AVERAGE if recorded.copies is None else LATE) if recorded.is_averaging else None
    if arguments.strategy in AVERAGES and arguments.strategy != averaged:
        did = f"had {averaged!r}" if averaged else "did not average"
        raise InvalidParameter(
            f"{module} error: strategy is {arguments.strategy!r}, but run {recorded.run_id} {did}.",
            hint="Leave strategy out: a replay takes that of the run it repeats.",
        )
    if recorded.is_averaging and recorded.endings:
        raise FeatureNotSupported(
            f"{module} error: run {recorded.run_id} averaged, and max_runtime ended "
            f"{sorted(recorded.endings)} before their last iteration.",
            hint="The same call with the same seed, and as many iterations as it came to, repeats "
            "it.",
        )


def check_clone_starts(
    module: str, recorded: RunRecord, epochs: int, mst_keys: Collection[int]
) -> None:
    """Raises FeatureNotSupported where configurations began from states to which this call does not
    come.
    """
    left = sorted(set(mst_keys) - recorded.find_repeatable(mst_keys, epochs))
    if left:
        raise FeatureNotSupported(
            f"{module} error: configurations {left} of run {recorded.run_id} began from states of "
            "others, to which this call does not come.",
            hint="Leave them out of the model selection table, or replay all configurations for "
            "all iterations.",
        )


def check_functions(module: str, recorded: RunRecord, functions: Mapping[str, str]) -> None:
    """Raises InvalidParameter where custom functions are not those that the earlier run had."""
    others = sorted(
        name for name, digest in functions.items() if recorded.functions.get(name) != digest
    )
    if others:
        raise InvalidParameter(
            f"{module} error: custom functions {', '.join(others)} are not what they were in run "
            f"{recorded.run_id}.",
            hint="A replay takes the sources that the run had: register them again under their "
            "names.",
        )


def complete_order(order: tuple[int, ...], segments: tuple[int, ...]) -> tuple[int, ...]:
    """An order with the segments that a configuration did not reach, because it failed, at its end.

    >>> complete_order((2, 0), (0, 1, 2))
    (2, 0, 1)
    """
    return (*order, *(segment for segment in segments if segment not in order))
