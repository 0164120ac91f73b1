"""What programs share, whatever framework runs Keras: variables in order, fresh states, loss and
metrics.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from cerebro_trainer.models import frozen_prefix, keras_model
from cerebro_trainer.models.differentiable import differentiable
from cerebro_trainer.models.dtype_policy import scales_loss
from cerebro_trainer.models.frozen_weights import frozen_weights
from cerebro_trainer.models.hyperparameter_variables import SCHEDULED, attach
from cerebro_trainer.models.initial_weights import InitialWeights
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Way, without
from cerebro_trainer.programs.compile_params import Compiled, compiled
from cerebro_trainer.programs.fusion import Member
from cerebro_trainer.programs.io_spec import IoSpec, Output
from cerebro_trainer.programs.metrics import CompiledMetrics, packed
from cerebro_trainer.programs.program import Array, Attributions, ColumnPositions, Program, Sums
from cerebro_trainer.state.layout import Layout

EVALUATION_BYTES = 16 << 20
EVALUATION_ROWS = 256
"""Evaluation runs in batches of at most so many rows and input bytes, whatever the training batch
size.
"""
PREDICTION_BYTES = 4 << 20
PREDICTION_ROWS = 1024
"""Where no layer puts out more bytes for them, so many rows are predicted at once: that halves the
time of a row.
"""


class KerasProgram(Program):
    """A program around a compiled Keras model; subclasses add the loops of their framework."""

    def __init__(self, spec: ProgramSpec, framework: str) -> None:
        self.spec = spec
        self._node = keras_model.prepare(spec.split.architecture, spec.dtype_policy)
        self.whole = self._built()
        """The network; `model` is what of it is run: what lies behind the cut, if there is one."""
        at = None if spec.cut is None else frozen_prefix.cut_at(self.whole, spec.cut)
        self.model = (
            self.whole
            if at is None
            else keras_model.guarded(lambda: frozen_prefix.rest(self.whole, at))
        )
        parts = compiled(spec, keras_model.output_names(self.whole))
        outputs = tuple(
            Output(tuple(output.shape[1:]), target.classes, indices)
            for output, target, indices in zip(
                self.model.outputs, spec.targets, parts.indices, strict=True
            )
        )
        shapes = tuple(tuple(tensor.shape[1:]) for tensor in self.model.inputs)
        self.io_spec = IoSpec(shapes, outputs, keras_model.vocabularies(self.model))
        self._compile(parts)
        self.trained: list[Any] = list(self.whole.trainable_variables)
        """Those that the optimizer changes, in its order, which is that of the whole network."""
        self.trainable = bool(self.trained)
        self.optimizer: Any = self.model.optimizer
        self._fresh_optimizer = self._slots()
        self.variables: list[Any] = [*self.whole.variables, *self.optimizer.variables]
        """All variables that make up a state, in its order."""
        self._regularizers = [_number(value) for value in spec.split.regularizers]
        attach(self._regularizers, self.whole.variables)
        self._hyperparameters = self._lifted(spec.split.hyperparameters)
        self._set: list[float] = []
        self.metrics = CompiledMetrics(self.model, outputs, self.compiled)
        self.layout = self._layout(framework)
        self._learning_rate = self._position_of_learning_rate()
        self._widest = keras_model.widest(self.model)
        self._initial_weights = InitialWeights(self._node, self.value)
        self._renewed: tuple[int, dict[int, Array]] | None = None
        self._explained: tuple[keras.Model, Way] | None = None
        self._fronts: dict[str, Callable[[list[Array]], Array]] = {}

    def _built(self) -> keras.Model:
        """The network, whose variables are zero."""
        self.check_size(keras_model.parameters_of(self._node))
        return keras_model.build(self._node)

    def check_size(self, parameters: int) -> None:
        """Raises an error where a network of so many parameters is too large; no memory is taken
        for it yet.
        """
        keras_model.check_size(parameters)

    def _slots(self) -> list[Array]:
        """Make the optimizer's variables; what they are before the first step."""
        self.optimizer.build(self.trained)
        return [compact(np.asarray(variable)) for variable in self.optimizer.variables]

    def _compile(self, parts: Compiled) -> None:
        optimizer = parts.optimizer
        if scales_loss(self._node):
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
        keras_model.guarded(
            lambda: self.model.compile(
                optimizer=optimizer,
                loss=parts.losses,
                metrics=parts.metrics,
                loss_weights=parts.loss_weights,
                weighted_metrics=parts.weighted_metrics,
                jit_compile=False,
            )
        )

    def compiled(
        self, function: Callable[..., Any], variables: Sequence[Any]
    ) -> Callable[..., Any]:
        """One call of the framework of a function that reads the model and changes these
        variables.
        """
        return function

    @property
    def step(self) -> int:
        """Optimizer steps taken by the state now held."""
        steps = (
            self.optimizer.iterations
        )  # where gradients are accumulated, no variable but calculated from one
        return int(self.value(steps) if isinstance(steps, keras.Variable) else steps)

    def read(self) -> Sequence[Array]:
        return [self.value(variable) for variable in self.variables]

    def read_member(self) -> Member:
        return Member(self.read(), [self.value(variable) for variable in self.numbers])

    def value(self, variable: Any) -> Array:
        """The value of a variable of any model; see `read`."""
        return np.asarray(variable)

    def assign(self, position: int, value: Array) -> None:
        self.variables[position].assign(value)

    def create_initial_state(self, seed: int) -> Sequence[Array]:
        """A fresh state: Keras' initial weights under `seed`, and an optimizer that has done no
        step.
        """
        return [*self._initial_weights.of(seed), *self._fresh_optimizer]

    def reset_non_weights(self, seed: int) -> None:
        count, weights = len(self.whole.variables), set(self.layout.weights)
        # A model is built for a state once: that takes a tenth of a second, and there are few such
        # seeds.
        if weights != set(range(count)) and (self._renewed is None or self._renewed[0] != seed):
            fresh = self.create_initial_state(seed)
            self._renewed = (
                seed,
                {place: fresh[place] for place in range(count) if place not in weights},
            )
        for place, value in chain(
            (self._renewed or (0, {}))[1].items(), enumerate(self._fresh_optimizer, count)
        ):
            self.assign(place, value)

    def wipe(self) -> None:
        explained = [] if self._explained is None else self._explained[0].variables
        for variable in (*self.resident, *self.numbers, *explained):
            variable.assign(np.zeros_like(self.value(variable)))
        self._set = []
        self.metrics.reset()
        self.model.reset_metrics()
        self.model.history = None

    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        """Set the numbers of a configuration that are no part of the program, such as its learning
        rate.
        """
        values = [
            *spec.split.regularizers,
            *(spec.split.hyperparameters[name] for name in self._hyperparameters),
        ]
        if values != self._set:
            for variable, value in zip(self.numbers, values, strict=True):
                variable.assign(value)
            self._set = values
        if self._learning_rate is not None:
            rate = np.asarray(
                spec.split.hyperparameters["learning_rate"], self.layout.dtypes[self._learning_rate]
            )
            self.assign(self._learning_rate, rate)

    @property
    def resident(self) -> list[Any]:
        """The variables of the state that are in memory when nothing is computed."""
        return self.variables

    @property
    def numbers(self) -> list[Any]:
        """The variables that hold such numbers; the learning rate is not among them, but part of a
        state.
        """
        return [*self._regularizers, *self._hyperparameters.values()]

    @contextmanager
    def one_rate(self, optimizer: Any = None) -> Iterator[None]:
        """Within a step of the optimizer, or of one in its place, its schedule is asked for the
        learning rate once.

        Keras asks for every variable that decays, and again for all. That is so many more
        conditions to trace, and to decide in each step.
        """
        optimizer, rates = optimizer or self._inner_optimizer, list[Any]()

        def rate() -> Any:
            if not rates:
                rates.append(type(optimizer)._get_current_learning_rate(optimizer))
            return rates[0]

        object.__setattr__(optimizer, "_get_current_learning_rate", rate)
        try:
            yield
        finally:
            object.__delattr__(optimizer, "_get_current_learning_rate")

    def arguments(self, inputs: list[Any], targets: list[Any]) -> tuple[Any, Any, Any]:
        """Inputs, targets as floats, and weights of rows or None, from arrays that `io_spec.fit`
        gave.

        Arrays of numpy or of the framework, also within a graph.
        """
        count = len(self.io_spec.outputs)
        weights = targets[count] if len(targets) > count else None
        return packed(inputs), packed([_float32(target) for target in targets[:count]]), weights

    def fit(
        self,
        inputs: list[Array],
        targets: list[Array],
        order: npt.NDArray[np.int32],
        batch_size: int,
    ) -> float:
        """The form FALLBACK: Keras' own loop over the rows in this order; the sum of batch losses
        times rows.
        """
        x, y, weights = self.arguments(
            [array[order] for array in inputs], [array[order] for array in targets]
        )
        history = self.model.fit(
            x, y, sample_weight=weights, batch_size=batch_size, epochs=1, shuffle=False, verbose=0
        )
        return float(history.history["loss"][0]) * len(order)

    def compute_results(self, sums: Sums) -> dict[str, object]:
        """{"loss", "metrics"} from (added) sums of `evaluate`."""
        total, rows = sums[0]
        metrics = self.metrics.results(sums[1:])
        return {
            "loss": total / rows if rows else None,
            "metrics": metrics if rows else [None] * len(metrics),
        }

    def zero_sums(self) -> Sums:
        """What `evaluate` gives for no rows: zeros."""
        return [[0.0, 0.0], *self.metrics.no_sums]

    def evaluation_batch(self, inputs: Sequence[Array]) -> int:
        """Rows per batch of evaluation and prediction; depends on the shape of a row alone."""
        row_bytes = sum(4 * int(np.prod(array.shape[1:], dtype=np.int64)) for array in inputs)
        return max(1, min(EVALUATION_ROWS, EVALUATION_BYTES // max(1, row_bytes)))

    def prediction_batch(self, inputs: Sequence[Array]) -> int:
        """Rows per batch of prediction; depends on the shapes of a row alone."""
        return max(
            self.evaluation_batch(inputs), min(PREDICTION_ROWS, PREDICTION_BYTES // self._widest)
        )

    def describe_cuts(self) -> list[dict[str, object]]:
        return [
            {
                "layer": cut.layer,
                "shape": cut.shape,
                "flops": cut.flops,
                "digest": frozen_prefix.digest(cut, self.value),
            }
            for cut in frozen_prefix.cuts(self.whole)
        ]

    def describe_prefixes(self, layers: Sequence[str]) -> list[dict[str, object]]:
        return [
            frozen_prefix.described(self.whole, frozen_prefix.cut_at(self.whole, layer))
            for layer in layers
        ]

    def compute_features(self, layer: str, inputs: Sequence[Array]) -> Array:
        fitted = self.io_spec.fit_inputs(inputs)
        if layer not in self._fronts:
            cut = frozen_prefix.cut_at(self.whole, layer)
            self._fronts[layer] = self.forward(
                keras_model.guarded(lambda: frozen_prefix.front(self.whole, cut))
            )
        return self._fronts[layer](fitted)

    @abstractmethod
    def forward(self, model: keras.Model) -> Callable[[list[Array]], Array]:
        """What computes the one output of a model that has some of the layers of this one, as
        float32.
        """

    def attribute(
        self,
        inputs: Sequence[Array],
        columns: Sequence[ColumnPositions],
        patches: Sequence[ColumnPositions],
    ) -> Attributions:
        fitted = self.io_spec.fit_inputs(inputs)
        rows, size = len(fitted[0]), self.evaluation_batch(fitted)
        (output,) = self.predict(fitted)
        (blank,) = self.predict([np.zeros_like(array[:1]) for array in fitted])
        units = output.reshape(rows, -1).astype(np.float64)
        select = np.eye(units.shape[1], dtype=np.float32)[units.argmax(axis=1)]
        # Whole batches, so that all of them are one compiled shape.
        *filled, weights = (_lengthened(array, -rows % size) for array in (*fitted, select))
        cuts = [slice(begin, begin + size) for begin in range(0, rows, size)]
        way = self._way()
        values = [
            way.attributions([array[cut] for array in filled], weights[cut], columns)
            for cut in cuts
        ]
        found = np.concatenate(values)[:rows]

        def loss(changed: Array) -> Array:
            return np.asarray(
                ((units - changed.reshape(len(changed), -1).astype(np.float64)) * select).sum(
                    axis=1
                )
            )

        covered = [loss(*self.predict(without(fitted, patch))) for patch in patches]
        return Attributions(
            found, found.sum(axis=1) - loss(blank), np.array(covered).reshape(-1, rows).T
        )

    @abstractmethod
    def gradient(
        self, model: keras.Model
    ) -> Callable[[list[Array], list[Array], Array], list[Array]]:
        """What computes the gradient of a model's output, units by weights, with regard to its
        first inputs.

        It is called with these inputs, with the others, and with the weights; a row's gradient is
        its own.
        """

    def _way(self) -> Way:
        """The model as it is explained, with the weights that it has now."""
        if self._explained is None:
            found = differentiable(self._node)
            head = None if found.head is None else partial(self._called, found.head)
            way = Way(head, self.gradient(found.tail), found.whole, found.other, found.beside)
            self._explained = found.model, way
        model, way = self._explained
        for variable, value in zip(model.variables, self.whole.variables, strict=True):
            variable.assign(value)
        return way

    def _called(self, model: keras.Model, inputs: Sequence[Array]) -> list[Array]:
        found = keras.tree.flatten(model(packed(list(inputs)), training=False))
        return [np.asarray(keras.ops.convert_to_numpy(array), np.float32) for array in found]

    def _lifted(self, hyperparameters: Mapping[str, float]) -> dict[str, Any]:
        """The optimizer's numbers by name, now variables; Keras keeps the learning rate in one by
        itself.
        """
        optimizer = self._inner_optimizer
        made = {
            name: _number(value)
            for name, value in hyperparameters.items()
            if name != "learning_rate"
        }
        for name, variable in made.items():
            # Past the optimizer's own __setattr__, which would make it a part of the optimizer's
            # state.
            owner = optimizer._learning_rate if name in SCHEDULED else optimizer
            object.__setattr__(owner, name, variable)
        return made

    def _position_of_learning_rate(self) -> int | None:
        """Where the learning rate stands in a state; None where it is no number but a schedule."""
        if "learning_rate" not in self.spec.split.hyperparameters:
            return None
        rate = self._inner_optimizer.learning_rate
        return next(n for n, variable in enumerate(self.variables) if variable is rate)

    @property
    def _inner_optimizer(self) -> Any:
        """The optimizer itself, also where another one scales the loss for it."""
        return getattr(self.optimizer, "inner_optimizer", self.optimizer)

    def _layout(self, framework: str) -> Layout:
        positions = {id(variable): position for position, variable in enumerate(self.variables)}
        return Layout(
            shapes=tuple(tuple(variable.shape) for variable in self.variables),
            dtypes=tuple(np.asarray(variable).dtype.name for variable in self.variables),
            weights=tuple(positions[id(weight)] for weight in self.whole.weights),
            trainable=tuple(positions[id(weight)] for weight in self.whole.trainable_weights),
            paths=tuple(weight.path for weight in self.whole.weights),
            architecture=self.spec.architecture_hash,
            optimizer=type(self.optimizer).__name__,
            framework=framework,
            keras=keras.__version__,
            frozen=tuple(positions[id(weight)] for weight in frozen_weights(self.whole)),
        )


def _lengthened(rows: Array, more: int) -> Array:
    return np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])


def compact(values: Array) -> Array:
    """The same values; one number for all of an array where they are equal, as in fresh optimizer
    variables.
    """
    first = values.reshape(-1)[:1]
    if values.size > 1 and (values == first).all():
        return np.broadcast_to(np.array(first), values.shape)
    return np.array(values)


def _float32(target: Any) -> Any:
    if isinstance(target, np.ndarray):
        return target.astype(np.float32, copy=False)
    return keras.ops.cast(target, "float32")


def _number(value: float) -> Any:
    return keras.Variable(value, dtype="float32", trainable=False)
