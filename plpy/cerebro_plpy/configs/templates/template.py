"""Templates and their fields, as records without a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Union

from cerebro_plpy.configs.params.keras_names import CYCLES, near_matches
from cerebro_plpy.configs.params.literals import to_finite_number
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution
from cerebro_plpy.configs.search_space.space import compile_text, fit_text
from cerebro_plpy.configs.templates.layers.model_io import Floats, Head, Table
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

Value = Union[int, float, str]
Params = Mapping[str, Value]

AUTO = "auto"
UNWEIGHTED = "none"
OTHER_NAMES: Mapping[str, Collection[str]] = {
    "lr": ("learningrate", "rate", "eta", "stepsize"),
    "batch_size": ("batch", "batchsize", "minibatchsize"),
    "width": ("units", "hidden", "hiddensize", "hiddendim", "neurons"),
    "depth": ("layers", "numlayers", "nlayers", "blocks"),
    "dropout": ("dropoutrate", "pdropout"),
    "weight_decay": ("decay", "wd", "l2", "weightdecay"),
    "beta_2": ("beta2", "betas"),
    "learning_rate": ("lr", "learningrate", "rate", "eta", "shrinkage", "stepsize"),
    "trees": (
        "nestimators",
        "niter",
        "numiterations",
        "numiteration",
        "numboostround",
        "numrounds",
        "numtrees",
        "iterations",
        "maxiter",
        "rounds",
    ),
    "leaves": ("numleaves", "maxleaves", "maxleafnodes", "maxdepth", "depth"),
    "min_rows": (
        "mindatainleaf",
        "mindata",
        "minchildsamples",
        "minsamplesleaf",
        "minchildweight",
    ),
    "l2": ("lambdal2", "reglambda", "lambda", "l2regularization", "l2leafreg"),
    "row_share": ("subsample", "baggingfraction", "bagging", "subrow", "samplerate"),
    "column_share": (
        "colsamplebynode",
        "colsamplebytree",
        "featurefractionbynode",
        "featurefraction",
        "subfeature",
        "maxfeatures",
        "colsample",
        "rsm",
    ),
    "splits": ("extratrees", "splitter"),
    "max_bins": ("maxbin", "maxbins", "bordercount", "bins"),
    "category_levels": ("maxcattoonehot", "onehotmaxsize", "maxcategories", "catlevels"),
}
"""Names of fields elsewhere, in lower case without underscores."""
BATCH_SIZES = ((1024, 64), (8192, 128), (30_000, 256), (100_000, 512))
"""Largest numbers of training rows with their batch sizes."""
LARGEST_BATCH_SIZE = 1024
"""Batch size for more rows."""


@dataclass(frozen=True)
class Field:
    """A parameter of a template."""

    name: str
    meaning: str
    default: Value
    distribution: Distribution  # of a search; a single choice is not searched
    limits: tuple[float, float] | None = None  # of a number
    is_whole: bool = False
    words: tuple[str, ...] = ()  # texts that the field may have
    floats: Value | None = None  # other default for float targets
    calibrated: Value | None = None  # other default if models are ranked by probabilities
    settled: bool = False  # other defaults are not searched
    for_skewed: bool = False  # it is searched for skewed float targets only

    def find_distribution(self, head: Head) -> Distribution:
        """Return the distribution of a search, unless the caller defines another one."""
        default = self.find_default(head)
        if self.for_skewed and not (isinstance(head, Floats) and head.is_skewed):
            return Choices((default,))
        if self.settled and default != self.default:
            return Choices((default,))
        return self.distribution

    def find_default(self, head: Head) -> Value:
        """Return the value, unless the caller defines another one."""
        default = None
        if isinstance(head, Floats):
            default = self.floats
        elif head.calibrated:
            default = self.calibrated
        if default is None:
            return self.default
        return default

    def check_value(self, value: object) -> Value:
        """Return the value if the field may have it.

        Raises:
            InvalidParameter: the field may not have it.
        """
        if isinstance(value, str) and value in self.words:
            return value
        number = to_finite_number(value)
        if number is None or not self._allows(number):
            raise InvalidParameter(
                f"{self.name} is {value!r}, expected {self._describe_values()}",
                hint=f"{self.meaning}.",
            )
        if self.is_whole:
            return int(number)
        return number

    def _allows(self, number: float) -> bool:
        if self.limits is None:
            return False
        low, high = self.limits
        return low <= number <= high and (not self.is_whole or number == int(number))

    def _describe_values(self) -> str:
        values = []
        if self.limits:
            noun = "a whole number" if self.is_whole else "a number"
            values.append(f"{noun} from {self.limits[0]:g} to {self.limits[1]:g}")
        values += map(repr, self.words)
        return " or ".join(values)


DEFAULT_OPTIMIZER: Mapping[str, str | float] = MappingProxyType(
    {"learning_rate": "lr", "weight_decay": "weight_decay"}
)
"""Fields, or constants, by the names of AdamW's arguments."""


def suggest_field(name: str, fields: Collection[str]) -> str:
    """Return a hint with the field that is meant by a name of Keras or of other libraries.

    >>> suggest_field("learning_rate", ["lr", "scale_rate"]), suggest_field("dept", ["lr", "depth"])
    ('Did you mean lr?', 'Did you mean depth?')
    """
    folded = name.lower().replace("_", "")
    for field, aliases in OTHER_NAMES.items():
        if field in fields and folded in aliases:
            return f"Did you mean {field}?"
    return near_matches(name, fields)


@dataclass(frozen=True)
class Template:
    """A family of models whose configurations differ in fields."""

    resumes_states: ClassVar[bool] = True
    """True if a configuration with other fields can begin from a state of another one."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    architecture: Callable[[Table, Head, Params], str]  # returns JSON; takes all fields
    starts: tuple[Params, ...] = ()  # first configurations of a search over many rows
    kind: str | None = None  # it is only for tables with a wide column of this kind
    skewed_starts: tuple[Params, ...] = ()  # further ones for skewed float targets

    def find_skewed_starts(self, head: Head) -> tuple[Params, ...]:
        """Return the configurations that a search tries second."""
        if isinstance(head, Floats) and head.is_skewed:
            return self.skewed_starts
        return ()

    @property
    def requirement(self) -> str:
        """The columns that a table must have, for messages."""
        return f"columns of kind {self.kind!r}"

    def suits(self, table: Table) -> bool:
        """Return whether a table has the columns that the template needs."""
        return self.kind is None or self.kind in {wide.kind for wide in table.wide}

    def build_architecture(self, table: Table, head: Head, params: Params, epochs: int) -> str:
        """Return the JSON of the architecture of a configuration.

        Args:
            epochs: epochs of its run.
        """
        return self.architecture(table, head, params)

    def params(self, head: Head, rows: int, values: Mapping[str, object]) -> dict[str, Value]:
        """Return the value of every field.

        Args:
            rows: number of training rows.
            values: values other than the defaults.

        Raises:
            InvalidParameter: there is no such field, or it may not have such a value.
        """
        fields = {field.name: field for field in self.fields}
        for name in values:
            if name not in fields:
                raise InvalidParameter(
                    f"template {self.name} has no field {name!r}",
                    hint=suggest_field(str(name), fields),
                )
        return {
            name: field.check_value(values[name]) if name in values else field.find_default(head)
            for name, field in fields.items()
        }

    def compile_params(
        self, head: Head, params: Params, metrics: Sequence[str] = (), rates: Rates | None = None
    ) -> str:
        """Return the compile parameters of a configuration as text.

        Args:
            rates: schedule of its learning rate; None for a constant one.
        """
        raise NotImplementedError

    def fit_params(
        self, params: Params, stopping: str | None = None, counts: Sequence[int] = ()
    ) -> str:
        """Return the fit parameters of a configuration as text.

        Args:
            stopping: callback that stops the configuration, as text.
            counts: training rows of each class.
        """
        arguments = {**self.list_fit_arguments(params), "epochs": 1}
        if counts and params["class_weight"] == AUTO:
            arguments["class_weight"] = balance_classes(counts)
        if stopping is not None:
            arguments["callbacks"] = _Call(f"[{stopping}]")
        return fit_text(arguments)

    def list_fit_arguments(self, params: Params) -> dict[str, object]:
        """Return the fit parameters that only this family has."""
        return {}


@dataclass(frozen=True)
class NetworkTemplate(Template):
    """A family of networks, which an optimizer trains batch by batch."""

    optimizer: Mapping[str, str | float] = DEFAULT_OPTIMIZER

    def params(self, head: Head, rows: int, values: Mapping[str, object]) -> dict[str, Value]:
        params = super().params(head, rows, values)
        if params["batch_size"] == AUTO:
            params["batch_size"] = choose_batch_size(rows)
        return params

    def compile_params(
        self, head: Head, params: Params, metrics: Sequence[str] = (), rates: Rates | None = None
    ) -> str:
        """Return the compile parameters of a configuration as text.

        The optimizer is AdamW, or Adam if weights do not decay. Without `rates`, its learning rate
        is constant.
        """
        arguments: dict[str, object] = {
            name: params[source] if isinstance(source, str) else source
            for name, source in self.optimizer.items()
        }
        if rates:
            arguments["learning_rate"] = rates.make_schedule(arguments["learning_rate"])
        optimizer = "AdamW"
        if not arguments.get("weight_decay"):
            optimizer = "Adam"
            arguments.pop("weight_decay", None)
        return compile_text(
            {"optimizer": optimizer, **arguments, "loss": head.loss, "metrics": list(metrics)}
        )

    def list_fit_arguments(self, params: Params) -> dict[str, object]:
        return {"batch_size": params["batch_size"]}


class Cycles(NamedTuple):
    """Cycles of a learning rate."""

    first: int  # epoch at which the first cycle ends
    factor: int  # by which each cycle but the last ends later than the one before it
    number: int  # of cycles; the last one ends with the run


class Rates(NamedTuple):
    """Schedule of a learning rate, which rises and falls once or in cycles.

    Rates rise first, because an optimizer's first steps are the wildest. If configurations are
    compared before their last epoch, rates have fallen by then: metrics at a high rate say little
    about the final ones.
    """

    steps: int  # per epoch
    epochs: int
    cycles: Cycles | None = None

    def make_schedule(self, peak: object) -> dict[str, object]:
        """Return the schedule in the form of compile parameters.

        Args:
            peak: highest learning rate.

        >>> Rates(10, 27, Cycles(1, 3, 4)).make_schedule(0.1)["config"]
        {'warmup_target': 0.1, 'decay_steps': 270, 'first_decay_steps': 10, 't_mul': 3, 'cycles': 4}
        """
        config: dict[str, object] = {
            "warmup_target": peak,
            "decay_steps": self.steps * self.epochs,
        }
        if self.cycles:
            config["first_decay_steps"] = self.steps * self.cycles.first
            config["t_mul"] = self.cycles.factor
            config["cycles"] = self.cycles.number
        return {"class_name": CYCLES, "config": config}


class _Call(str):
    """A call within parameters, which is not quoted like other texts."""

    def __repr__(self) -> str:
        return str(self)


def balance_classes(counts: Sequence[int]) -> dict[int, float]:
    """Return class weights with which all classes have the same influence.

    The sum over all rows is the same as without weights.

    Args:
        counts: training rows of each class.

    >>> balance_classes([30, 10])
    {0: 0.666667, 1: 2.0}

    The weight of a class without rows in a group does not matter:

    >>> balance_classes([30, 0, 10])
    {0: 0.666667, 1: 20.0, 2: 2.0}
    """
    present = sum(count > 0 for count in counts)
    share = sum(counts) / max(1, present)
    return {number: round(share / max(1, count), 6) for number, count in enumerate(counts)}


def choose_batch_size(rows: int) -> int:
    """Return the batch size for a number of training rows.

    >>> [choose_batch_size(rows) for rows in (5, 1024, 1025, 10_000, 100_000, 100_001)]
    [64, 64, 128, 256, 512, 1024]
    """
    for max_rows, batch_size in BATCH_SIZES:
        if rows <= max_rows:
            return batch_size
    return LARGEST_BATCH_SIZE


BATCH_SIZE = Field(
    "batch_size",
    f"Rows in a batch; {AUTO!r} goes by the rows of the table",
    AUTO,
    Choices((AUTO,)),
    limits=(1, 2**31 - 1),
    is_whole=True,
    words=(AUTO,),
)
CLASS_WEIGHT = Field(
    "class_weight",
    f"How much the rows of a class count in training; with {AUTO!r} all classes count alike",
    UNWEIGHTED,
    Choices((UNWEIGHTED,)),
    words=(UNWEIGHTED, AUTO),
)
"""The field of every template."""
FIT_FIELDS = (BATCH_SIZE, CLASS_WEIGHT)
"""The same fields in every template of networks."""
