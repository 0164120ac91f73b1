"""The request of a run as its log stores it: created once, after the checks of the call.

Resume, replay, output tables and searches read it. Views and logged runs depend on the keys in
JSON, which are those of the first version. Fields that an older version did not log have defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cerebro_plpy.configs.json_arguments import JsonObject
from cerebro_plpy.configs.prior_trials import PriorTrial
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.limits import EPOCHS
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import Field, asdict, dataclass, field, fields
from cerebro_plpy.scheduling.schedule.placement import divide_segments
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING

MAX_ATTEMPTS = 3
SINGLE = "one"  # key in JSON of the model of a call that trains a single one


@dataclass(frozen=True)
class SingleModel:
    """The arguments that name one model instead of a table of configurations."""

    model_arch_table: str | None
    model_id: int | None
    compile_params: str | None
    fit_params: str | None
    object_table: str | None


@dataclass(frozen=True)
class FitArguments:
    """The arguments of a fit call, None for NULL; sql/50-training.sql has the help of each."""

    source_table: str | None
    model_output_table: str | None
    model_selection_table: str | None
    num_iterations: int | None
    use_gpus: bool | None
    validation_table: str | None
    metrics_compute_frequency: int | None
    warm_start: bool | None
    name: str | None
    description: str | None
    use_caching: bool | None
    seed: int | None
    schedule: str | None
    workers: int | None
    replay_run: int | None
    training_metrics: bool | None
    dtype_policy: str | None
    backend: str | None
    max_attempts: int | None
    max_runtime: str | None
    keep_states: bool | None
    search: str | None = None
    search_params: str | None = None
    feature_budget: int | None = None
    strategy: str | None = None
    single: SingleModel | None = None  # of a call that trains a single model

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as JSON."""
        values = asdict(self)
        return {**values, SINGLE: values.pop("single")}

    @classmethod
    def from_json(cls, values: JsonObject) -> FitArguments:
        """Read the arguments that `to_json` returned, in this or an older version."""
        single = values.get(SINGLE)
        arguments = {
            argument.name: _check_type(argument, values.get(argument.name))
            for argument in fields(cls)
            if argument.name != "single"
        }
        return cls(**arguments, single=SingleModel(**single) if single else None)


def _check_type(argument: Field[Any], value: Any) -> Any:
    """Return the value of an argument.

    Raises:
        TypeError: the value has another type than the argument.
    """
    kind = {"str | None": str, "int | None": int, "bool | None": bool}[str(argument.type)]
    if value is not None and type(value) is not kind:
        raise TypeError(f"{argument.name} is {value!r:.80}; expected {kind.__name__}")
    return value


@dataclass(frozen=True)
class DataSpec:
    """A packed table at the beginning of a run."""

    table: str  # name as in the call
    rows: int
    dependent: tuple[str, ...]
    independent: tuple[str, ...]
    dependent_types: tuple[str, ...]
    class_values: tuple[tuple[str | None, ...] | None, ...]
    """Classes of each target; None for one that came encoded or is a float."""
    class_types: tuple[str, ...]
    normalizing_const: float
    float_targets: tuple[bool, ...]
    target_shapes: tuple[tuple[int, ...], ...] | None  # None in logs of older versions

    @classmethod
    def from_json(cls, values: JsonObject) -> DataSpec:
        """Read a record that `asdict` returned; version 0.1.0 had a single target."""
        shapes = values.get("target_shapes")
        if shapes is not None:
            shapes = tuple(map(tuple, shapes))
        float_targets = values.get("float_targets")
        if float_targets is None:
            float_targets = [values["float_target"]]
        return cls(
            table=str(values["table"]),
            rows=values["rows"],
            dependent=tuple(values["dependent"]),
            independent=tuple(values["independent"]),
            dependent_types=tuple(values["dependent_types"]),
            class_values=tuple(map(_to_tuple, values["class_values"])),
            class_types=tuple(values["class_types"]),
            normalizing_const=float(values["normalizing_const"]),
            float_targets=tuple(float_targets),
            target_shapes=shapes,
        )

    def list_differences(self, another: DataSpec) -> list[str]:
        """Return the fields that differ in another table, except for names and unknown values."""
        differences = []
        for name in sorted(column.name for column in fields(self)):
            values = (getattr(self, name), getattr(another, name))
            if name != "table" and None not in values and values[0] != values[1]:
                differences.append(name)
        return differences


@dataclass(frozen=True)
class Ranking:
    """The metric that ranks the configurations of a run."""

    dataset: str
    metric: str
    descending: bool  # larger values are better


@dataclass(frozen=True)
class SearchSpec:
    """The search arguments of a call of AutoML."""

    automl_method: str
    automl_params: str
    random_state: int | None
    stage: str = ""  # of the search; before version 0.3.0, a search had a run for each stage


@dataclass(frozen=True)
class RunSpec:
    """The request of a run: the arguments of the call, and values of those that it left open."""

    arguments: FitArguments
    epochs: int
    frequency: int  # metrics are computed after this number of epochs
    evaluate_epochs: tuple[int, ...]  # epochs after which metrics are computed
    seed: int
    schedule: str
    dtype_policy: str | None
    model_arch_table: str | None
    object_table: str | None
    segments: tuple[int, ...]
    source: DataSpec
    validation: DataSpec | None
    ranking: Ranking
    version: str  # of the package
    functions: Mapping[str, str] = field(default_factory=dict)
    """Digests of the sources of custom functions, by name."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Quoted names of the call's tables, by their role."""
    search: SearchSpec | None = None
    epochs_before: Mapping[int, int] = field(default_factory=dict)
    """Epochs trained by earlier calls, by mst_key."""
    train: TrainSpec | None = None  # of a call of cerebro.train
    prior_trials: tuple[PriorTrial, ...] = ()  # from which a search learns at its beginning
    training_epochs: tuple[int, ...] | None = None
    """Epochs after which the training rows are evaluated, too; None for all `evaluate_epochs`."""
    copies: int | None = None  # of a configuration, to be averaged; None for one per segment
    tree_period: int = 1  # boosted trees learn from each buffer whose id is a multiple of this

    @property
    def copy_segments(self) -> tuple[tuple[int, ...], ...]:
        """Return the segments of each averaged copy of a configuration; empty if configs hop."""
        if self.schedule != AVERAGING:
            return ()
        return divide_segments(self.segments, self.copies or len(self.segments))

    @property
    def target_scale(self) -> JsonObject | None:
        """Return the scale of the labels, as JSON; None if they are packed as they are."""
        return None if self.train is None else self.train.target_scale

    def evaluates_training(self, epoch: int) -> bool:
        """Return True if the training rows are evaluated after an epoch, too."""
        if not self.training_metrics:
            return False
        if self.training_epochs is None or epoch > self.epochs:
            return True
        return epoch in self.training_epochs

    def list_evaluations_until(self, epochs: int) -> tuple[int, ...]:
        """Return the epochs after which metrics are computed if a user has extended the run."""
        if not self.evaluate_epochs or epochs <= self.epochs:
            return self.evaluate_epochs
        extended = list_metric_epochs(epochs, self.frequency)
        return (*self.evaluate_epochs, *(epoch for epoch in extended if epoch > self.epochs))

    @property
    def is_automl(self) -> bool:
        """Return True if the run is the complete search of a call of AutoML."""
        return bool(self.search and self.arguments.search)

    @property
    def training_metrics(self) -> bool:
        """Return True if the training rows are evaluated."""
        return self.arguments.training_metrics is not False

    @property
    def warm_start(self) -> bool:
        """Return True if configurations continue from the states of an earlier call."""
        return bool(self.arguments.warm_start)

    @property
    def max_attempts(self) -> int:
        """Return how often a visit is tried."""
        return self.arguments.max_attempts or MAX_ATTEMPTS

    def to_json(self) -> dict[str, Any]:
        """Return the request as the log stores it."""
        values = {
            **self.arguments.to_json(),
            "num_iterations": self.epochs,
            "metrics_compute_frequency": self.frequency,
            "evaluate_epochs": self.evaluate_epochs,
            "seed": self.seed,
            "schedule": self.schedule,
            "dtype_policy": self.dtype_policy,
            "warm_start": self.warm_start,
            "model_arch_table": self.model_arch_table,
            "object_table": self.object_table,
            "segments": self.segments,
            "source": asdict(self.source),
            "validation": self.validation and asdict(self.validation),
            "rank_dataset": self.ranking.dataset,
            "rank_metric": self.ranking.metric,
            "rank_descending": self.ranking.descending,
            "version": self.version,
            "functions": dict(self.functions),
            "tables": dict(self.tables),
            "epochs_before": {str(key): epochs for key, epochs in self.epochs_before.items()},
        }
        if self.search:
            values.update(asdict(self.search))
        if self.train:
            values["train"] = self.train.to_json()
        if self.training_epochs is not None:
            values["training_epochs"] = self.training_epochs
        if self.copies is not None:
            values["copies"] = self.copies
        if self.tree_period != 1:
            values["tree_period"] = self.tree_period
        if self.prior_trials:
            values["earlier_trials"] = [list(trial) for trial in self.prior_trials]
        return values

    @classmethod
    def from_json(cls, values: JsonObject) -> RunSpec:
        """Read a request that the log has stored.

        Raises:
            DataCorrupted: the values are malformed; the owner of the log may change it.
        """
        try:
            return cls._parse(values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataCorrupted(
                "the log of the run does not say what the run was asked",
                detail=f"{type(error).__name__}: {error}",
                hint="The column spec of cerebro.run was changed. Train again.",
            ) from error

    @classmethod
    def _parse(cls, values: JsonObject) -> RunSpec:
        search = {entry.name: values.get(entry.name) for entry in fields(SearchSpec)}
        validation = values.get("validation")
        return cls(
            arguments=FitArguments.from_json(values),
            epochs=_epochs(values, "num_iterations"),
            frequency=_epochs(values, "metrics_compute_frequency"),
            evaluate_epochs=tuple(values["evaluate_epochs"]),
            seed=int(values["seed"]),
            schedule=str(values["schedule"]),
            dtype_policy=values.get("dtype_policy"),
            model_arch_table=values.get("model_arch_table"),
            object_table=values.get("object_table"),
            segments=tuple(values["segments"]),
            source=DataSpec.from_json(values["source"]),
            validation=DataSpec.from_json(validation) if validation else None,
            ranking=Ranking(
                _text(values, "rank_dataset"),
                _text(values, "rank_metric"),
                bool(values["rank_descending"]),
            ),
            version=str(values["version"]),
            functions=dict(values.get("functions") or {}),
            tables=dict(values["tables"]),
            epochs_before=read_epochs_before(values.get("epochs_before")),
            search=SearchSpec(**search) if search["automl_method"] else None,  # type: ignore[arg-type]
            train=TrainSpec.from_json(values["train"]) if values.get("train") else None,
            prior_trials=tuple(
                PriorTrial.from_json(trial) for trial in values.get("earlier_trials", ())
            ),
            training_epochs=_to_tuple(values.get("training_epochs")),
            copies=read_copies(values.get("copies"), len(values["segments"])),
            tree_period=_read_period(values.get("tree_period", 1)),
        )


def _read_period(logged: Any) -> int:
    """Return the period of sampled buffers.

    Raises:
        ValueError: it is not a positive integer.
    """
    if type(logged) is not int or logged < 1:
        raise ValueError(f"tree_period is {logged!r:.80}; expected a positive integer")
    return logged


def read_epochs_before(logged: JsonObject | None) -> dict[int, int]:
    """Return the epochs of earlier calls by mst_key, from JSON; empty if the log lacks them."""
    return {int(key): int(epochs) for key, epochs in (logged or {}).items()}


def read_copies(logged: float | None, segments: int) -> int | None:
    """Return the logged number of copies of a configuration.

    Raises:
        ValueError: the number is impossible.
    """
    if logged is None:
        return None
    if not 1 <= logged <= segments:
        raise ValueError(
            f"configurations trained in {count_nouns(logged, 'copy')}, on "
            f"{count_nouns(segments, 'segment')}"
        )
    return int(logged)


def _to_tuple(values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    if values is None:
        return None
    return tuple(values)


def _epochs(values: JsonObject, name: str) -> int:
    number = int(values[name])
    if not 1 <= number <= EPOCHS.maximum:
        raise ValueError(f"{name} is {number}; expected 1 to {EPOCHS.maximum}")
    return number


def _text(values: JsonObject, name: str) -> str:
    if not isinstance(values[name], str):
        raise ValueError(f"{name} is {values[name]!r}; expected a text")
    return str(values[name])


def list_metric_epochs(epochs: int, frequency: int) -> tuple[int, ...]:
    """Return every frequency-th epoch, and the last one.

    >>> list_metric_epochs(7, 2)
    (2, 4, 6, 7)
    """
    regular = range(frequency, epochs + 1, frequency)
    if epochs in regular:
        return tuple(regular)
    return (*regular, epochs)
