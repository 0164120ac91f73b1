"""The part of a program that is the same for all frameworks of Keras.

It orders the variables, makes initial states, and evaluates loss and metrics.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import keras
import numpy as np

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.models import frozen_prefix, keras_model
from cerebro_trainer.models.dtype_policy import needs_loss_scaling
from cerebro_trainer.models.frozen_weights import find_frozen_weights
from cerebro_trainer.models.keras_model import InitialWeights, unwrap_single
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient, IntegratedGradients
from cerebro_trainer.programs.compile_params import CompileArguments, make_compile_arguments
from cerebro_trainer.programs.fusion import Member, Order
from cerebro_trainer.programs.hyperparameters import HyperparameterVariables
from cerebro_trainer.programs.io_spec import IoSpec, Output
from cerebro_trainer.programs.learner import Columns, Descriptions, Sums
from cerebro_trainer.programs.metrics import CompiledMetrics
from cerebro_trainer.programs.program import Program
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire.frames import Array, Arrays

Tensors: TypeAlias = list[Any]
"""Tensors, variables or arrays of a framework."""
Forward: TypeAlias = Callable[[Arrays], Array]
"""Computes the output of a model from its inputs."""

EVALUATION_BYTES = 16 << 20
EVALUATION_ROWS = 256
"""Largest batch of an evaluation in input bytes and rows, whatever the training batch size."""
PREDICTION_BYTES = 4 << 20
PREDICTION_ROWS = 1024
"""Largest batch of a prediction, if no layer puts out more bytes for it.

Batches of this size halve the time of a row.
"""


class KerasProgram(Program):
    """A program around a compiled Keras model; subclasses add the loops of their framework."""

    def __init__(self, spec: ProgramSpec, framework: str) -> None:
        self.spec = spec
        self._node = keras_model.prepare(spec.split.architecture, spec.dtype_policy)
        self.network = self._build_network()
        """The whole network, including a frozen prefix that does not run."""
        self.model = self._make_model()
        """The part of the network that runs: the layers behind the cut, if there is one."""
        arguments = make_compile_arguments(spec, keras_model.list_output_names(self.network))
        self.io_spec = self._make_io_spec(arguments)
        self._compile_model(arguments)
        self.trained_variables: Tensors = list(self.network.trainable_variables)
        """The variables that the optimizer changes, in its order: that of the whole network."""
        self.trainable = bool(self.trained_variables)
        self.optimizer: Any = self.model.optimizer
        self._initial_optimizer = self._build_optimizer()
        self.variables: Tensors = [*self.network.variables, *self.optimizer.variables]
        """All variables of a state, in its order."""
        self.hyperparameters = HyperparameterVariables(
            spec.split, self.network.variables, self._inner_optimizer
        )
        self.metrics = CompiledMetrics(self.model, self.io_spec.outputs, self.compile_function)
        self.layout = self._make_layout(framework)
        self._learning_rate_position = self._find_learning_rate()
        self._widest_layer_bytes = keras_model.find_largest_tensor(self.model)
        self._initial_weights = InitialWeights(self._node, self.read_variable)
        self._cached_non_weights: tuple[int, dict[int, Array]] | None = None
        self.explanation: IntegratedGradients | None = None
        """Made by the first call of `attribute`."""
        self._feature_functions: dict[str, Forward] = {}

    def _build_network(self) -> keras.Model:
        """Return the network with variables of zeros."""
        self.check_size(keras_model.count_parameters(self._node))
        return keras_model.build(self._node)

    def check_size(self, parameters: int) -> None:
        """Raise an error if a network of so many parameters is too large.

        Called before any memory is allocated for the network.
        """
        keras_model.check_size(parameters)

    def _make_model(self) -> keras.Model:
        if self.spec.cut is None:
            return self.network
        cut = frozen_prefix.get_cut(self.network, self.spec.cut)
        return keras_model.call_keras(frozen_prefix.build_head, self.network, cut)

    def _make_io_spec(self, arguments: CompileArguments) -> IoSpec:
        outputs = [
            Output(tuple(output.shape[1:]), target.classes, takes_indices)
            for output, target, takes_indices in zip(
                self.model.outputs, self.spec.targets, arguments.takes_indices, strict=True
            )
        ]
        return IoSpec(
            inputs=tuple(tuple(tensor.shape[1:]) for tensor in self.model.inputs),
            outputs=tuple(outputs),
            vocabulary_sizes=keras_model.find_vocabulary_sizes(self.model),
        )

    def _compile_model(self, arguments: CompileArguments) -> None:
        optimizer = arguments.optimizer
        if needs_loss_scaling(self._node):
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
        keras_model.call_keras(
            lambda: self.model.compile(
                optimizer=optimizer,
                loss=arguments.losses,
                metrics=arguments.metrics,
                loss_weights=arguments.loss_weights,
                weighted_metrics=arguments.weighted_metrics,
                jit_compile=False,
            )
        )

    def _build_optimizer(self) -> list[Array]:
        """Create the optimizer's variables; return their values before the first step."""
        self.optimizer.build(self.trained_variables)
        return [compact(np.asarray(variable)) for variable in self.optimizer.variables]

    def compile_function(
        self, function: Callable[..., Any], variables: Sequence[Any]
    ) -> Callable[..., Any]:
        """Compile a function into one call of the framework.

        Args:
            function: reads the model and changes the variables.
        """
        return function

    @property
    def step(self) -> int:
        iterations = self.optimizer.iterations
        if isinstance(iterations, keras.Variable):
            return int(self.read_variable(iterations))
        return int(iterations)  # with accumulated gradients it is computed from a variable

    def read(self) -> Arrays:
        return [self.read_variable(variable) for variable in self.variables]

    def read_member(self) -> Member:
        hyperparameters = [
            self.read_variable(variable) for variable in self.hyperparameters.variables
        ]
        return Member(self.read(), hyperparameters)

    def read_variable(self, variable: Any) -> Array:
        """Return the value of a variable of any model; see `read`."""
        return np.asarray(variable)

    def assign(self, position: int, value: Array) -> None:
        self.variables[position].assign(value)

    def create_initial_state(self, seed: int) -> Arrays:
        return [*self._initial_weights.draw(seed), *self._initial_optimizer]

    def reset_non_weights(self, seed: int) -> None:
        for position, value in self._create_non_weights(seed).items():
            self.assign(position, value)
        for position, value in enumerate(self._initial_optimizer, len(self.network.variables)):
            self.assign(position, value)

    def _create_non_weights(self, seed: int) -> dict[int, Array]:
        """Return initial values of the network's other variables, such as seeds, by position."""
        positions = set(range(len(self.network.variables))) - set(self.layout.weights)
        if not positions:
            return {}
        # The cache saves a tenth of a second per state to build a model; there are few such seeds.
        if self._cached_non_weights is None or self._cached_non_weights[0] != seed:
            state = self.create_initial_state(seed)
            values = {position: state[position] for position in sorted(positions)}
            self._cached_non_weights = (seed, values)
        return self._cached_non_weights[1]

    def wipe(self) -> None:
        variables = [*self.resident_variables, *self.hyperparameters.variables]
        if self.explanation is not None:
            variables += self.explanation.variables
        for variable in variables:
            variable.assign(np.zeros_like(self.read_variable(variable)))
        self.hyperparameters.discard_values()
        self.metrics.reset()
        self.model.reset_metrics()
        self.model.history = None

    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        self.hyperparameters.set_values(spec.split)
        position = self._learning_rate_position
        if position is not None:
            learning_rate = spec.split.hyperparameters["learning_rate"]
            self.assign(position, np.asarray(learning_rate, self.layout.dtypes[position]))

    @property
    def resident_variables(self) -> Tensors:
        """The variables of the state that stay in memory between calls."""
        return self.variables

    @contextmanager
    def cache_learning_rate(self, optimizer: Any = None) -> Iterator[None]:
        """Compute the learning rate of a schedule only once within a step.

        Keras computes it for every variable that decays, and again for all of them. Each time
        adds conditions to trace, and to decide in each step.

        Args:
            optimizer: an optimizer that stands in for the program's own one.
        """
        if optimizer is None:
            optimizer = self._inner_optimizer
        rates: list[Any] = []

        def get_learning_rate() -> Any:
            if not rates:
                rates.append(type(optimizer)._get_current_learning_rate(optimizer))
            return rates[0]

        with replace_method(optimizer, "_get_current_learning_rate", get_learning_rate):
            yield

    def make_arguments(self, inputs: Tensors, targets: Tensors) -> tuple[Any, Any, Any]:
        """Return x, y as floats, and the weights of rows or None.

        Args:
            inputs: arrays that `io_spec.convert` returned, or tensors of the framework, also
                within a graph.
            targets: the same; the weights of rows follow, if there are any.
        """
        count = len(self.io_spec.outputs)
        y = unwrap_single([_cast_to_float32(target) for target in targets[:count]])
        return unwrap_single(inputs), y, next(iter(targets[count:]), None)

    def fit_with_keras(
        self,
        inputs: Arrays,
        targets: Arrays,
        order: Order,
        batch_size: int,
    ) -> float:
        """Train in the mode FALLBACK; return the sum of mean batch losses times rows."""
        x, y, weights = self.make_arguments(
            [array[order] for array in inputs], [array[order] for array in targets]
        )
        history = self.model.fit(
            x, y, sample_weight=weights, batch_size=batch_size, epochs=1, shuffle=False, verbose=0
        )
        return float(history.history["loss"][0]) * len(order)

    def compute_results(self, sums: Sums) -> dict[str, object]:
        total, rows = sums[0]
        metrics = self.metrics.compute_results(sums[1:])
        if not rows:
            return {"loss": None, "metrics": [None] * len(metrics)}
        return {"loss": total / rows, "metrics": metrics}

    def zero_sums(self) -> Sums:
        return [[0.0, 0.0], *self.metrics.zero_sums]

    def choose_evaluation_batch(self, inputs: Arrays) -> int:
        """Return the rows per batch of an evaluation; depends on the shape of a row alone."""
        row_bytes = sum(4 * int(np.prod(array.shape[1:], dtype=np.int64)) for array in inputs)
        return max(1, min(EVALUATION_ROWS, EVALUATION_BYTES // max(1, row_bytes)))

    def choose_prediction_batch(self, inputs: Arrays) -> int:
        """Return the rows per batch of a prediction; depends on the shapes of a row alone."""
        rows = min(PREDICTION_ROWS, PREDICTION_BYTES // self._widest_layer_bytes)
        return max(self.choose_evaluation_batch(inputs), rows)

    def describe_cuts(self) -> Descriptions:
        return [
            {
                "layer": cut.layer,
                "shape": cut.shape,
                "flops": cut.flops,
                "digest": frozen_prefix.compute_digest(cut, self.read_variable),
            }
            for cut in frozen_prefix.find_cuts(self.network)
        ]

    def describe_prefixes(self, layers: Sequence[str]) -> Descriptions:
        return [
            frozen_prefix.describe_prefix(self.network, frozen_prefix.get_cut(self.network, layer))
            for layer in layers
        ]

    def compute_features(self, layer: str, inputs: Arrays) -> Array:
        arrays = self.io_spec.convert_inputs(inputs)
        if layer not in self._feature_functions:
            cut = frozen_prefix.get_cut(self.network, layer)
            prefix = keras_model.call_keras(frozen_prefix.build_prefix, self.network, cut)
            self._feature_functions[layer] = self.compile_forward(prefix)
        return self._feature_functions[layer](arrays)

    @abstractmethod
    def compile_forward(self, model: keras.Model) -> Forward:
        """Return a function that computes the output of a model as float32.

        Args:
            model: has one output, and some of the layers of this program's network.
        """

    def predict_baseline(self, inputs: Arrays) -> Array:
        (output,) = self.predict([np.zeros_like(array[:1]) for array in inputs])
        return output.reshape(-1)

    def attribute(self, inputs: Arrays, columns: Columns, unit_weights: Floats) -> Array:
        arrays = self.io_spec.convert_inputs(inputs)
        if self.explanation is None:
            self.explanation = IntegratedGradients(self._node, self.compile_gradient)
        for variable, original in zip(
            self.explanation.variables, self.network.variables, strict=True
        ):
            variable.assign(original)
        batch_size = self.choose_evaluation_batch(arrays)
        return self.explanation.explain(arrays, batch_size, columns, unit_weights)

    @abstractmethod
    def compile_gradient(self, model: keras.Model) -> Gradient:
        """Return a function that computes the gradient of a model with one output."""

    def _find_learning_rate(self) -> int | None:
        """Return the position of the learning rate in a state; None if it is a schedule."""
        if "learning_rate" not in self.spec.split.hyperparameters:
            return None
        rate = self._inner_optimizer.learning_rate
        return next(
            position for position, variable in enumerate(self.variables) if variable is rate
        )

    @property
    def _inner_optimizer(self) -> Any:
        """The optimizer of the config, which a LossScaleOptimizer may wrap."""
        return getattr(self.optimizer, "inner_optimizer", self.optimizer)

    def _make_layout(self, framework: str) -> Layout:
        positions = {id(variable): position for position, variable in enumerate(self.variables)}

        def find_positions(variables: Sequence[Any]) -> tuple[int, ...]:
            return tuple(positions[id(variable)] for variable in variables)

        return Layout(
            shapes=tuple(tuple(variable.shape) for variable in self.variables),
            dtypes=tuple(np.asarray(variable).dtype.name for variable in self.variables),
            weights=find_positions(self.network.weights),
            trainable=find_positions(self.network.trainable_weights),
            paths=tuple(weight.path for weight in self.network.weights),
            architecture=self.spec.architecture_hash,
            optimizer=type(self.optimizer).__name__,
            framework=framework,
            keras=keras.__version__,
            frozen=find_positions(find_frozen_weights(self.network)),
        )


@contextmanager
def replace_method(optimizer: Any, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """Give an optimizer another method for a while.

    Its own __setattr__ would look for variables in the method.
    """
    object.__setattr__(optimizer, name, method)
    try:
        yield
    finally:
        object.__delattr__(optimizer, name)


def compact(values: Array) -> Array:
    """Return a copy; equal values, as in fresh optimizer variables, share one number's memory."""
    first = values.reshape(-1)[:1]
    if values.size > 1 and (values == first).all():
        return np.broadcast_to(np.array(first), values.shape)
    return np.array(values)


def _cast_to_float32(target: Any) -> Any:
    if isinstance(target, np.ndarray):
        return target.astype(np.float32, copy=False)
    return keras.ops.cast(target, "float32")
