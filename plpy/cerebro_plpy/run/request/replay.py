"""The record of an earlier run that a replay repeats: seed, visit orders, modes and thread count.

A replay computes the same bits again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

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
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.request.run_request import BUDGET_OVER, RETURNED, CloneStart, Ending
from cerebro_plpy.scheduling.planning.run_plan import AVERAGE, AVERAGES, LATE
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING

Orders = dict[tuple[int, int], tuple[int, ...]]
"""Segments in the order of their visits, by (mst_key, epoch)."""
Forms = dict[tuple[int, int, int], str]
"""Execution modes of visits, by (mst_key, epoch, segment)."""
SPEC_CHANGED = "The column spec of cerebro.run was changed. Train again."


class RecordedConfig(NamedTuple):
    """A configuration in the log; the fields are the columns of the query `recorded_configs`."""

    mst_key: int
    backend: str
    warm_started_from: int | None  # mst_key of the configuration whose state it started from
    source: str  # its origin, "call" if the call named it
    model_id: int
    compile_params: str
    fit_params: str
    warm_started_visits: int | None  # visits that led to that state; None in logs of old versions
    status: str
    cut: str | None  # layer whose stored outputs it was trained on

    @property
    def clone_start(self) -> CloneStart | None:
        """The state that it started from, if it is known."""
        if self.warm_started_from is None or self.warm_started_visits is None:
            return None
        return CloneStart(self.warm_started_from, self.warm_started_visits)


class RecordedRun(NamedTuple):
    """A run in the log; the fields are the columns of the query `recorded`."""

    seed: int
    epochs: int
    segments: Sequence[int]
    dtype_policy: str | None
    schedule: str
    copies: float | None
    is_single: bool  # a run of madlib_fit()
    functions: str  # JSON
    epochs_before: str  # JSON


@dataclass(frozen=True)
class RunRecord:
    """Everything that decides the bits of an earlier run, apart from its data.

    Mappings without other keys are by mst_key.
    """

    run_id: int
    seed: int
    epochs: int  # last epoch
    segments: tuple[int, ...]  # of the packed table
    orders: Orders  # of completed training visits
    forms: Forms  # of the same visits
    threads: int | None  # threads of each trainer; None if nothing was trained
    dtype_policy: str | None
    backends: dict[int, str]  # frameworks
    functions: Mapping[str, str]  # digests of custom functions, by name
    epochs_before: Mapping[int, int]  # epochs of earlier runs
    endings: Mapping[int, Ending]  # configurations that the budget ended
    max_epochs: Mapping[int, int]  # last epochs, if anything was decided
    warm_started: frozenset[int]  # configurations that started from states of others
    configs: tuple[RecordedConfig, ...]  # named by the call or added to the run
    clone_starts: Mapping[int, CloneStart]  # the known ones of these states
    patience: EarlyStopping | None  # of a search by patience
    evaluate_epochs: tuple[int, ...]  # epochs after which that search had metrics
    is_averaging: bool  # states were averaged after each epoch
    copies: int | None  # copies of each state; None if there was one per segment

    @property
    def call_keys(self) -> frozenset[int]:
        """The configurations that the call named."""
        return frozenset(config.mst_key for config in self.configs if config.source == "call")

    @property
    def added_configs(self) -> tuple[RecordedConfig, ...]:
        """The configurations that were added to the run."""
        return tuple(config for config in self.configs if config.source != "call")

    @property
    def completed_epochs(self) -> Mapping[int, int]:
        """The epochs of completed configurations, if anything was decided."""
        completed = {config.mst_key for config in self.configs if config.status == "completed"}
        return {key: self.max_epochs[key] for key in completed & self.max_epochs.keys()}

    @property
    def cut_layers(self) -> Mapping[int, str]:
        """The layers whose stored outputs configurations were trained on."""
        return {config.mst_key: config.cut for config in self.configs if config.cut is not None}

    def find_repeatable(self, mst_keys: Iterable[int], epochs: int) -> set[int]:
        """Return the configurations that a replay of these epochs can repeat.

        A clone is repeatable if its parent is, and reaches the state that the clone starts from.
        """
        requested = set(mst_keys)
        max_visits = epochs * len(self.segments)
        parents = {
            key: self.clone_starts[key].parent
            for key in requested & self.clone_starts.keys()
            if self.clone_starts[key].visits <= max_visits
        }
        repeatable = requested - self.warm_started
        while clones := {key for key in parents if parents[key] in repeatable} - repeatable:
            repeatable |= clones
        return repeatable


def read_run_record(control: Session, module: str, run_id: int | None) -> RunRecord:
    """Return the record of a run of the caller.

    Raises:
        NullNotAllowed: `run_id` is missing.
        InvalidParameter: no order of visits repeats the run.
        DataCorrupted: the log was changed.
    """
    if run_id is None:
        raise NullNotAllowed(
            f"{module} error: schedule 'replay' needs replay_run, the id of the run to repeat.",
            hint=LIST_RUNS,
        )
    run = _read_run(control, module, run_id)
    visits = control.run(sql("run.recorded_visits"), (run_id,))
    threads = {row[3] for row in visits}
    _check_repeatable(module, run_id, threads, is_single=run.is_single)
    orders = {(mst_key, epoch): tuple(segments) for mst_key, epoch, segments, *_ in visits}
    forms = {
        (mst_key, epoch, segment): form
        for mst_key, epoch, segments, _, visit_forms in visits
        for segment, form in zip(segments, visit_forms)
    }
    configs = [RecordedConfig(*row) for row in control.run(sql("run.recorded_configs"), (run_id,))]
    patience, evaluate_epochs = _read_patience(control, module, run_id)
    evaluated_epochs: dict[int, int] = dict(
        control.run(sql("run.recorded_endings"), (run_id, run_id, BUDGET_OVER, RETURNED))
    )
    return RunRecord(
        run_id=run_id,
        seed=run.seed,
        epochs=run.epochs,
        segments=tuple(run.segments),
        orders=orders,
        forms=forms,
        threads=next(iter(threads), None),
        dtype_policy=run.dtype_policy,
        backends={config.mst_key: config.backend for config in configs},
        functions=json.loads(run.functions),
        epochs_before=_parse_epochs_before(run.epochs_before),
        endings=compute_endings(orders, evaluated_epochs),
        max_epochs=dict(control.run(sql("run.recorded_limits"), (run_id, run_id, run_id))),
        warm_started=frozenset(
            config.mst_key for config in configs if config.warm_started_from is not None
        ),
        configs=tuple(configs),
        clone_starts={config.mst_key: start for config in configs if (start := config.clone_start)},
        patience=patience,
        evaluate_epochs=evaluate_epochs,
        is_averaging=run.schedule == AVERAGING,
        copies=_parse_copies(run.copies, run.segments),
    )


def _read_run(control: Session, module: str, run_id: int) -> RecordedRun:
    rows = control.run(sql("run.recorded"), (run_id,))
    if not rows:
        raise hidden_run(run_id, module)
    return RecordedRun(*rows[0])


def _read_patience(
    control: Session, module: str, run_id: int
) -> tuple[EarlyStopping | None, tuple[int, ...]]:
    """Return the early stopping of a search by patience, and the epochs that it evaluated.

    If the run is a replay itself, the run that it repeated is read.
    """
    source_run: int | None = run_id
    while source_run is not None:
        rows = control.run(sql("run.recorded_search"), (source_run,))
        if not rows:
            break
        search, params, dataset, metric, descending, evaluate_epochs, source_run = rows[0]
        if search == PATIENCE:
            rule = read_search_rule(module, search, params, None)
            ranking = Ranking(dataset, metric, descending)
            stopping = rule.make_early_stopping(ranking) if rule else None
            return stopping, tuple(json.loads(evaluate_epochs))
    return None, ()


def compute_endings(orders: Orders, evaluated_epochs: Mapping[int, int]) -> dict[int, Ending]:
    """Return how the budget ended configurations.

    Args:
        orders: all visits of the run.
        evaluated_epochs: last epochs with metrics of these configurations, 0 without metrics.

    >>> endings = compute_endings({(1, 1): (0, 1), (1, 2): (1,), (2, 1): (1,)}, {1: 1, 2: 1, 3: 0})
    >>> {mst_key: tuple(ending) for mst_key, ending in endings.items()}
    {1: (3, False), 2: (1, True), 3: (0, False)}
    """
    endings = {}
    for mst_key, evaluated_epoch in evaluated_epochs.items():
        visits = {epoch: len(order) for (key, epoch), order in orders.items() if key == mst_key}
        is_evaluated = bool(visits) and evaluated_epoch == max(visits)
        endings[mst_key] = Ending(sum(visits.values()), is_evaluated)
    return endings


def _parse_epochs_before(logged: str) -> dict[int, int]:
    try:
        return read_epochs_before(json.loads(logged))
    except (TypeError, ValueError) as error:
        raise DataCorrupted(
            "the log of the run does not say how many epochs configurations were trained before",
            detail=f"{type(error).__name__}: {error}",
            hint=SPEC_CHANGED,
        ) from error


def _parse_copies(logged: float | None, segments: Sequence[int]) -> int | None:
    try:
        return read_copies(logged, len(segments))
    except ValueError as error:
        raise DataCorrupted(f"the log of the run says that {error}", hint=SPEC_CHANGED) from error


def _check_repeatable(module: str, run_id: int, threads: set[int], *, is_single: bool) -> None:
    if is_single:
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
    record: RunRecord,
    epochs: int,
    segments: tuple[int, ...],
    mst_keys: Collection[int],
) -> Orders:
    """Return the orders of all visits of a replay, also of those that the earlier run lacks.

    Raises:
        InvalidParameter: the earlier run had other segments, or fewer epochs or configurations.
    """
    recorded_keys = (
        {key for key, _ in record.orders} | record.endings.keys() | record.max_epochs.keys()
    )
    is_covered = recorded_keys.issuperset(mst_keys)
    if record.segments != segments or epochs > record.epochs or not is_covered:
        raise InvalidParameter(
            f"{module} error: run {record.run_id} went over "
            f"{count_nouns(record.epochs, 'iteration')}, "
            f"segments {list(record.segments)} and configurations {sorted(recorded_keys)}; this "
            f"call asks for {count_nouns(epochs, 'iteration')}, segments {list(segments)} and "
            f"configurations {sorted(mst_keys)}.",
            hint="Replay with the packed table and the model selection table of that run.",
        )
    return {
        (key, epoch): complete_order(record.orders.get((key, epoch), ()), segments)
        for key in mst_keys
        for epoch in range(1, epochs + 1)
    }


def check_replay_arguments(module: str, arguments: FitArguments, record: RunRecord) -> None:
    """Check that a replay has the settings of the run that it repeats.

    Raises:
        InvalidParameter: an argument differs.
        FeatureNotSupported: the run averaged until its time was over; no order repeats that.
    """
    for name, value, recorded in (
        ("seed", arguments.seed, record.seed),
        ("dtype_policy", arguments.dtype_policy, record.dtype_policy),
    ):
        if value not in (None, recorded):
            raise InvalidParameter(
                f"{module} error: {name} is {value!r}, but run {record.run_id} had {name} "
                f"{recorded!r}.",
                hint=f"Leave {name} out: a replay takes that of the run it repeats.",
            )
    strategy = None
    if record.is_averaging:
        strategy = AVERAGE if record.copies is None else LATE
    if arguments.strategy in AVERAGES and arguments.strategy != strategy:
        difference = f"had {strategy!r}" if strategy else "did not average"
        raise InvalidParameter(
            f"{module} error: strategy is {arguments.strategy!r}, but run {record.run_id} "
            f"{difference}.",
            hint="Leave strategy out: a replay takes that of the run it repeats.",
        )
    if record.is_averaging and record.endings:
        raise FeatureNotSupported(
            f"{module} error: run {record.run_id} averaged, and max_runtime ended "
            f"{sorted(record.endings)} before their last iteration.",
            hint="The same call with the same seed, and as many iterations as it came to, repeats "
            "it.",
        )


def check_clone_starts(
    module: str, record: RunRecord, epochs: int, mst_keys: Collection[int]
) -> None:
    """Check that a replay reaches all states from which its configurations start.

    Raises:
        FeatureNotSupported: it does not.
    """
    unreachable = sorted(set(mst_keys) - record.find_repeatable(mst_keys, epochs))
    if unreachable:
        raise FeatureNotSupported(
            f"{module} error: configurations {unreachable} of run {record.run_id} began from "
            "states of others, to which this call does not come.",
            hint="Leave them out of the model selection table, or replay all configurations for "
            "all iterations.",
        )


def check_functions(module: str, record: RunRecord, functions: Mapping[str, str]) -> None:
    """Check that custom functions are those of the earlier run.

    Args:
        functions: digests of their sources, by name.

    Raises:
        InvalidParameter: a source differs.
    """
    changed = sorted(
        name for name, digest in functions.items() if record.functions.get(name) != digest
    )
    if changed:
        raise InvalidParameter(
            f"{module} error: custom functions {', '.join(changed)} are not what they were in run "
            f"{record.run_id}.",
            hint="A replay takes the sources that the run had: register them again under their "
            "names.",
        )


def complete_order(order: tuple[int, ...], segments: tuple[int, ...]) -> tuple[int, ...]:
    """Return an order with the segments appended that a failed configuration did not visit.

    >>> complete_order((2, 0), (0, 1, 2))
    (2, 0, 1)
    """
    return (*order, *(segment for segment in segments if segment not in order))
