"""The static tables against the installed Keras: they must name what it has, with the right
arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import keras
import pytest
from keras.src.ops.operation import Operation

from cerebro_plpy.configs.architecture import allowlist
from cerebro_plpy.configs.params import keras_names
from cerebro_trainer.models import allowlist as trainer_allowlist


def arguments(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters) - {"kwargs"}


def optimizer_classes() -> set[str]:
    """The optimizers that one set of numbers makes, as Keras has them."""
    wrappers = {"Optimizer", "OptimizerMap", "MultiOptimizer", "LossScaleOptimizer"}
    return {
        name for name, value in vars(keras.optimizers).items() if inspect.isclass(value)
    } - wrappers


def test_every_optimizer_of_keras_is_listed() -> None:
    assert set(keras_names.OPTIMIZERS) == optimizer_classes()


@pytest.mark.parametrize("name", keras_names.OPTIMIZERS)
def test_optimizer_arguments(name: str) -> None:
    cls = getattr(keras.optimizers, name)
    listed = keras_names.OPTIMIZERS[name]
    assert listed.arguments | keras_names.COMMON_ARGUMENTS == arguments(cls)
    assert not listed.arguments & keras_names.COMMON_ARGUMENTS
    assert float(cls().learning_rate.numpy()) == pytest.approx(listed.learning_rate)


@pytest.mark.parametrize("name", keras_names.OPTIMIZERS)
def test_argument_kinds_are_those_of_the_defaults(name: str) -> None:
    for argument, parameter in inspect.signature(
        getattr(keras.optimizers, name).__init__
    ).parameters.items():
        if isinstance(parameter.default, bool):
            assert argument in keras_names.BOOLEAN_ARGUMENTS
        elif isinstance(parameter.default, (int, float)):
            assert argument not in keras_names.BOOLEAN_ARGUMENTS


def test_dropped_arguments_are_unknown_to_keras() -> None:
    known = keras_names.COMMON_ARGUMENTS.union(
        *(item.arguments for item in keras_names.OPTIMIZERS.values())
    )
    assert not known & keras_names.DROPPED_ARGUMENTS


def test_every_schedule_is_listed_with_its_arguments() -> None:
    schedules = {
        name: arguments(value)
        for name, value in vars(keras.optimizers.schedules).items()
        if inspect.isclass(value) and name != "LearningRateSchedule"
    }
    assert schedules == keras_names.SCHEDULES


def test_losses_are_functions_of_keras() -> None:
    for name in keras_names.LOSSES:
        assert callable(keras.losses.get(name)), name


def test_no_loss_of_keras_is_missing() -> None:
    needs_more_arguments = {"circle"}
    functions = {
        value.__name__
        for value in keras.src.losses.ALL_OBJECTS_DICT.values()
        if inspect.isfunction(value)
    }
    assert functions - needs_more_arguments == set(keras_names.LOSSES)


RESOLVED_BY_COMPILE = {"accuracy", "crossentropy"}


def test_metrics_are_built_by_keras_from_their_name() -> None:
    for name in set(keras_names.METRICS) - RESOLVED_BY_COMPILE:
        assert isinstance(keras.metrics.get(name), keras.metrics.Metric), name


def test_no_metric_that_a_name_is_enough_for_is_missing() -> None:
    not_of_predictions = {"Metric", "Mean", "Sum", "MeanMetricWrapper", "BinaryIoU", "Accuracy"}
    built = set()
    for cls in set(keras.src.metrics.ALL_OBJECTS_DICT.values()):
        required = [
            parameter
            for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]
            if parameter.default is parameter.empty
            and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        if not required and cls.__name__ not in not_of_predictions:
            built.add(cls.__name__)
    listed = {
        type(keras.metrics.get(name)).__name__
        for name in set(keras_names.METRICS) - RESOLVED_BY_COMPILE
    }
    assert listed == built


@pytest.mark.parametrize(
    ("table", "find", "get"),
    [
        (keras_names.LOSSES, keras_names.find_loss, keras.losses.get),
        (keras_names.METRICS, keras_names.find_metric, keras.metrics.get),
    ],
)
def test_spellings_that_keras_knows_mean_the_same_to_it(
    table: Mapping[str, tuple[str, ...]],
    find: Callable[[str], str | None],
    get: Callable[[str], object],
) -> None:
    for canonical, others in table.items():
        for name in others:
            assert find(name) == find(name.upper()) == canonical
            try:
                known = get(name)
            except ValueError:
                continue
            assert name_of(known) == name_of(get(canonical))


def name_of(value: object) -> str:
    if isinstance(value, (keras.losses.Loss, keras.metrics.Metric)):
        return type(value).__name__.lower()
    return getattr(value, "__name__", "").replace("_", "").lower()


@pytest.mark.parametrize(
    ("spelling", "keras3"),
    [
        ("kullback_leibler_divergence", "kl_divergence"),
        ("huber_loss", "huber"),
        ("logcosh", "log_cosh"),
        ("cosine_proximity", "cosine_similarity"),
    ],
)
def test_keras_2_spellings_of_losses(spelling: str, keras3: str) -> None:
    assert keras_names.find_loss(spelling) == keras3


def test_architecture_classes_exist_in_keras() -> None:
    for names, module in (
        (allowlist.LAYERS, keras.layers),
        (allowlist.INITIALIZERS, keras.initializers),
        (allowlist.REGULARIZERS, keras.regularizers),
        (allowlist.CONSTRAINTS, keras.constraints),
        (allowlist.ACTIVATIONS, keras.activations),
    ):
        assert {name for name in names if not hasattr(module, name)} == set()
    assert keras_names.KEEPS_WIDTH <= allowlist.LAYERS


@pytest.mark.parametrize("module", allowlist.OPERATIONS)
def test_operations_are_those_of_keras(module: str) -> None:
    there = vars(import_module(module))
    listed = {name: there.get(name) for name in allowlist.OPERATIONS[module]}
    assert {
        name
        for name, kind in listed.items()
        if not (isinstance(kind, type) and issubclass(kind, Operation))
    } == set()
    assert Operation not in listed.values()


def test_layers_that_hold_code_or_read_files_are_not_listed() -> None:
    for name in (
        "Lambda",
        "TFSMLayer",
        "JaxLayer",
        "FlaxLayer",
        "TorchModuleWrapper",
        "StringLookup",
    ):
        assert hasattr(keras.layers, name)
        assert name not in allowlist.LAYERS | allowlist.OLD_LAYERS.keys()


HUB_ARGUMENTS = allowlist.parse_names("""
    activation attention_dropout beta_fast beta_slow bias_initializer data_format denominator_dim
        dropout dropout_rate
    dtype embedding_dim embeddings_initializer feature_axis hidden_dim image_shape initializer
        intermediate_dim
    kernel_initializer kwargs layer_norm_epsilon mask_zero max_sequence_length max_wavelength
        mlp_dim normalize_first
    num_groups num_heads num_inner_repetitions num_layers num_segments
        original_max_position_embeddings patch_size
    rope_type scaling_factor self sequence_axis sequence_length tie_weights truncate use_class_token
        use_mha_bias
    use_mlp_bias use_patch_bias vocab_size vocabulary_size""")
"""What somebody has looked at: numbers, names, and initializers, which are rewritten; no other
object, and no place.
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module in allowlist.HUB for name in sorted(allowlist.HUB[module])],
)
def test_classes_of_keras_hub_are_made_of_numbers(module: str, name: str) -> None:
    kind = getattr(import_module(module), name)
    assert kind.__module__.startswith("keras_hub.src.")
    assert keras.saving.get_registered_name(kind) == f"keras_hub>{name}"
    assert set(inspect.signature(kind.__init__).parameters) <= HUB_ARGUMENTS
    made_by = {base for base in kind.__mro__ if "from_config" in vars(base)} - {
        keras.Model,
        keras.layers.Layer,
    }
    assert {base.__name__ for base in made_by} <= {"Backbone", "Operation", "Functional"}


def test_near_matches_help() -> None:
    assert keras_names.near_matches("catgorical_crossentropy", keras_names.LOSSES).startswith(
        "Did you mean categorical_crossentropy"
    )
    assert "huber" in keras_names.near_matches("zzz", keras_names.LOSSES)


def test_both_packages_have_the_same_list_of_what_an_architecture_is_made_of() -> None:
    """By a link in the clone; what is installed are two files."""
    assert allowlist.__file__ and trainer_allowlist.__file__
    assert Path(allowlist.__file__).resolve() == Path(trainer_allowlist.__file__).resolve()
