"""What a run is asked, as its log keeps it: made once, when the call has been checked, and never
changed.

Resume, replay, output tables and searches read it from here. The names in JSON are those of the
first version, which views and runs that are in the log already rely on; what an older version did
not log has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.prior_trials import EarlierTrial
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.limits import EPOCHS
from cerebro_plpy.records import Field, asdict, dataclass, field, fields
from cerebro_plpy.scheduling.schedule.placement import divide_segments
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING

MAX_ATTEMPTS = 3
SINGLE = "one"  # in JSON: the model of a call that trains a single one


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
    """The arguments of a fit call as they came, None for NULL; `single` where it is one of a single
    model.
    """

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
    single: SingleModel | None = None

    def to_json(self) -> dict[str, Any]:
        """What JSON can hold of them."""
        values = asdict(self)
        return {**values, SINGLE: values.pop("single")}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FitArguments:
        """The arguments that `to_json` gave, here or in an older version."""
        single = values.get(SINGLE)
        named = {
            each.name: _typed(each, values.get(each.name))
            for each in fields(cls)
            if each.name != "single"
        }
        return cls(**named, single=SingleModel(**single) if single else None)


def _typed(argument: Field[Any], value: Any) -> Any:
    """An argument that JSON held; TypeError where it is none of its kind."""
    kind = {"str | None": str, "int | None": int, "bool | None": bool}[str(argument.type)]
    if value is not None and type(value) is not kind:
        raise TypeError(f"{argument.name} is {value!r:.80}; expected {kind.__name__}")
    return value


@dataclass(frozen=True)
class DataSpec:
    """A packed table as a run found it: its name as it was given, its rows, its columns and their
    classes.

    `class_values` has the classes of each target, None where it came encoded or is a float.
    `target_shapes` is None where an older version logged none.
    """

    table: str
    rows: int
    dependent: tuple[str, ...]
    independent: tuple[str, ...]
    dependent_types: tuple[str, ...]
    class_values: tuple[tuple[str | None, ...] | None, ...]
    class_types: tuple[str, ...]
    normalizing_const: float
    float_targets: tuple[bool, ...]
    target_shapes: tuple[tuple[int, ...], ...] | None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DataSpec:
        """What `asdict` gave; version 0.1.0 knew one target."""
        shapes = values.get("target_shapes")
        return cls(
            table=str(values["table"]),
            rows=values["rows"],
            dependent=tuple(values["dependent"]),
            independent=tuple(values["independent"]),
            dependent_types=tuple(values["dependent_types"]),
            class_values=tuple(
                None if found is None else tuple(found) for found in values["class_values"]
            ),
            class_types=tuple(values["class_types"]),
            normalizing_const=float(values["normalizing_const"]),
            float_targets=tuple(
                values["float_targets"] if "float_targets" in values else [values["float_target"]]
            ),
            target_shapes=None if shapes is None else tuple(tuple(shape) for shape in shapes),
        )

    def differing(self, other: DataSpec) -> list[str]:
        """In what another table differs, but for its name; what one of the two does not know is
        passed by.
        """
        pairs = {
            each.name: (getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
        }
        return sorted(
            n
            for n, pair in pairs.items()
            if n != "table" and None not in pair and pair[0] != pair[1]
        )


@dataclass(frozen=True)
class Ranking:
    """What ranks the configurations of a run: a metric over a data set, and whether larger is
    better.
    """

    dataset: str
    metric: str
    descending: bool


@dataclass(frozen=True)
class SearchSpec:
    """How a call of AutoML named its search. Its runs of versions before 0.3.0 were each a `stage`
    of one.
    """

    automl_method: str
    automl_params: str
    random_state: int | None
    stage: str = ""


@dataclass(frozen=True)
class Spec:
    """What a run is asked. `arguments` are those of the call; what it left open is settled in the
    other fields.

    `frequency` says after how many epochs metrics are computed, `evaluate_epochs` after which, and
    `training_epochs` after which of them over the rows that were trained on as well, where that is
    not after all; `functions` are the custom functions that configurations name, with the digests
    of their sources; `tables` are the quoted names of the call's tables, by what they are for it;
    `epochs_before` are those that configurations were trained by earlier calls, by mst_key;
    `version` is that of the package; `train` is what a call of `cerebro.train` adds. Of
    `earlier_trials` a search that learns was told when it began. One that averages has so many
    `copies` of each configuration, one for each segment where that is None.
    """

    arguments: FitArguments
    epochs: int
    frequency: int
    evaluate_epochs: tuple[int, ...]
    seed: int
    schedule: str
    dtype_policy: str | None
    model_arch_table: str | None
    object_table: str | None
    segments: tuple[int, ...]
    source: DataSpec
    validation: DataSpec | None
    ranking: Ranking
    version: str
    functions: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    search: SearchSpec | None = None
    epochs_before: Mapping[int, int] = field(default_factory=dict)
    train: TrainSpec | None = None
    earlier_trials: tuple[EarlierTrial, ...] = ()
    training_epochs: tuple[int, ...] | None = None
    copies: int | None = None

    @property
    def averaged(self) -> tuple[tuple[int, ...], ...]:
        """The segments of each copy of a configuration, where copies are averaged: none where
        configurations hop.
        """
        averages = self.schedule == AVERAGING
        return divide_segments(self.segments, self.copies or len(self.segments)) if averages else ()

    def evaluates_training(self, epoch: int) -> bool:
        """Whether an evaluation after this epoch goes over the rows that were trained on."""
        return self.training_metrics and (
            self.training_epochs is None or epoch in self.training_epochs or epoch > self.epochs
        )

    def evaluated_until(self, epochs: int) -> tuple[int, ...]:
        """The epochs after which metrics are computed, where somebody has let configurations train
        for so many.
        """
        if not self.evaluate_epochs or epochs <= self.epochs:
            return self.evaluate_epochs
        more = metrics_iterations(epochs, self.frequency)
        return (*self.evaluate_epochs, *(each for each in more if each > self.epochs))

    @property
    def is_automl(self) -> bool:
        """Whether the run is the whole search of a call of AutoML."""
        return bool(self.search and self.arguments.search)

    @property
    def training_metrics(self) -> bool:
        """Whether the training set is evaluated too."""
        return self.arguments.training_metrics is not False

    @property
    def warm_start(self) -> bool:
        """Whether configurations go on from the states of an earlier call."""
        return bool(self.arguments.warm_start)

    @property
    def max_attempts(self) -> int:
        """How often a visit is tried."""
        return self.arguments.max_attempts or MAX_ATTEMPTS

    def to_json(self) -> dict[str, Any]:
        """What the log keeps."""
        return {
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
            **(asdict(self.search) if self.search else {}),
            **({"train": self.train.to_json()} if self.train else {}),
            **({} if self.training_epochs is None else {"training_epochs": self.training_epochs}),
            **({} if self.copies is None else {"copies": self.copies}),
            **(
                {"earlier_trials": [list(each) for each in self.earlier_trials]}
                if self.earlier_trials
                else {}
            ),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Spec:
        """What a log has kept; raises DataCorrupted where it holds something else, for its owner
        may change it.
        """
        try:
            return cls._parsed(values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataCorrupted(
                "the log of the run does not say what the run was asked",
                detail=f"{type(error).__name__}: {error}",
                hint="The column spec of cerebro.run was changed. Train again.",
            ) from error

    @classmethod
    def _parsed(cls, values: Mapping[str, Any]) -> Spec:
        search = {each.name: values.get(each.name) for each in fields(SearchSpec)}
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
            epochs_before=epochs_before(values.get("epochs_before")),
            search=SearchSpec(**search) if search["automl_method"] else None,  # type: ignore[arg-type]
            train=TrainSpec.from_json(values["train"]) if values.get("train") else None,
            earlier_trials=tuple(
                EarlierTrial.from_json(each) for each in values.get("earlier_trials", ())
            ),
            training_epochs=None
            if (training := values.get("training_epochs")) is None
            else tuple(training),
            copies=logged_copies(values.get("copies"), len(values["segments"])),
        )


def epochs_before(logged: Mapping[str, Any] | None) -> dict[int, int]:
    """The epochs of earlier calls by mst_key, from JSON; none where an older version logged
    none.
    """
    return {int(key): int(epochs) for key, epochs in (logged or {}).items()}


def logged_copies(logged: float | None, segments: int) -> int | None:
    """In how many copies configurations trained, as a log has it; ValueError where there cannot
    have been as many.
    """
    if logged is not None and not 1 <= logged <= segments:
        raise ValueError(f"configurations trained in {logged:g} copies, on {segments} segments")
    return None if logged is None else int(logged)


def _epochs(values: Mapping[str, Any], name: str) -> int:
    number = int(values[name])
    if not 1 <= number <= EPOCHS.most:
        raise ValueError(f"{name} is {number}; expected 1 to {EPOCHS.most}")
    return number


def _text(values: Mapping[str, Any], name: str) -> str:
    if not isinstance(values[name], str):
        raise ValueError(f"{name} is {values[name]!r}; expected a text")
    return str(values[name])


def metrics_iterations(epochs: int, frequency: int) -> tuple[int, ...]:
    """Every frequency-th epoch, and always the last.

    >>> metrics_iterations(7, 2)
    (2, 4, 6, 7)
    """
    usual = range(frequency, epochs + 1, frequency)
    return tuple(usual) if epochs in usual else (*usual, epochs)
