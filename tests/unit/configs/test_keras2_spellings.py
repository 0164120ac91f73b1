"""Every way in which MADlib's users write parameters, and every name that Keras 2 had, means what
it meant.

The texts are the forms of MADlib's manual and of its own tests. The names are those of Keras 2.1 to
2.15, and where Keras 3 has them too, it agrees.
"""

from __future__ import annotations

import keras
import pytest

from cerebro_plpy.configs.params.compile_params import CompileParams, parse_compile_params
from cerebro_plpy.configs.params.fit_params import FitParams, parse_fit_params
from cerebro_plpy.configs.params.keras_names import find_loss, find_metric
from cerebro_plpy.errors import InvalidParameter

CROSSENTROPY = "categorical_crossentropy"
# A text, and what it means: class and settings of the optimizer, loss, metrics.
COMPILE = {
    f"loss='{CROSSENTROPY}', optimizer='Adam(lr=0.01)', metrics=['accuracy']":
        ("Adam", {"learning_rate": 0.01}, CROSSENTROPY, ("accuracy",)),
    f"optimizer='Adam(lr=0.001)',metrics=['categorical_accuracy'],loss='{CROSSENTROPY}'":
        ("Adam", {"learning_rate": 0.001}, CROSSENTROPY, ("categorical_accuracy",)),
    f" loss='{CROSSENTROPY}', optimizer='adam', metrics=['acc'] ": ("Adam", {}, CROSSENTROPY,
    ("accuracy",)),
    f"optimizer=SGD(lr=0.01, nesterov=True, momentum=0.9), loss='{CROSSENTROPY}', metrics=['mae']":
        ("SGD", {"learning_rate": 0.01, "nesterov": True, "momentum": 0.9}, CROSSENTROPY,
        ("mean_absolute_error",)),
    f"optimizer=SGD, loss={CROSSENTROPY}": ("SGD", {}, CROSSENTROPY, ()),
    f"optimizer='SGD()',loss=\"{CROSSENTROPY}\",metrics=[]": ("SGD", {}, CROSSENTROPY, ()),
    f'optimizer="SGD(lr=0.001,momentum=0.95)",loss="{CROSSENTROPY}",metrics=["top_k_categorical_accuracy"]':
        ("SGD", {"learning_rate": 0.001, "momentum": 0.95}, CROSSENTROPY,
        ("top_k_categorical_accuracy",)),
    f"optimizer='RMSprop()',loss='{CROSSENTROPY}',metrics=None": ("RMSprop", {}, CROSSENTROPY, ()),
    f"optimizer = 'rmsprop' , loss = '{CROSSENTROPY}' , loss_weights=[2] , sample_weight_mode=None":
        ("RMSprop", {}, CROSSENTROPY, ()),
    "loss='mean_squared_error',optimizer='Adagrad(lr=0.9,epsilon=0.3)',weighted_metrics=['mse']":
        ("Adagrad", {"learning_rate": 0.9, "epsilon": 0.3}, "mean_squared_error", ()),
    f"optimizer='SGD(lr=1e-2, decay=0.0, momentum=.9, nesterov=False)',loss='{CROSSENTROPY}'":
        ("SGD", {"learning_rate": 0.01, "momentum": 0.9, "nesterov": False}, CROSSENTROPY, ()),
    f"optimizer='Adam(amsgrad=False, epsilon=None)',loss='{CROSSENTROPY}'":
        ("Adam", {"amsgrad": False}, CROSSENTROPY, ()),
}  # fmt: skip


@pytest.mark.parametrize("text", COMPILE)
def test_compile_texts(text: str) -> None:
    found = parse_compile_params(text)
    assert (
        found.optimizer.class_name,
        found.optimizer.config,
        found.loss,
        found.metrics,
    ) == COMPILE[text]
    assert found.notices == ()


FIT = {
    "batch_size=5, epochs=3 ": FitParams(5, 3),
    "epochs=1,batch_size=8": FitParams(8, 1),
    " batch_size = 16 , epochs = 2 , verbose = 0 ": FitParams(16, 2),
    "batch_size=2, epochs=1, verbose=0, shuffle = True": FitParams(2, 1),
    "batch_size=2, epochs=1, shuffle=False": FitParams(2, 1, shuffle=False),
    "batch_size=2, epochs=3, initial_epoch=1, steps_per_epoch=2": FitParams(
        2, 3, initial_epoch=1, steps_per_epoch=2
    ),
    "class_weight={0: 1, 1: 2.5}": FitParams(class_weight=((0, 1.0), (1, 2.5))),
    "class_weight=None, steps_per_epoch=None": FitParams(),
    "verbose='auto'": FitParams(),
    "": FitParams(),
    "  ": FitParams(),
}


@pytest.mark.parametrize("text", FIT)
def test_fit_texts(text: str) -> None:
    assert parse_fit_params(text) == FIT[text]


def test_no_fit_text() -> None:
    assert parse_fit_params(None) == FitParams()


REFUSED_FIT = [
    "validation_split=0.1",
    "validation_data=(1, 2)",
    "validation_steps=1",
    "validation_freq=1",
    "sample_weight=[1, 2]",
]


@pytest.mark.parametrize("text", REFUSED_FIT)
def test_fit_texts_that_madlib_refuses(text: str) -> None:
    with pytest.raises(
        InvalidParameter, match=f"{text.partition('=')[0]} is not currently accepted as a parameter"
    ):
        parse_fit_params(text)


LOSSES = {
    "mean_squared_error": "mse MSE MeanSquaredError",
    "mean_absolute_error": "mae MAE MeanAbsoluteError",
    "mean_absolute_percentage_error": "mape MAPE MeanAbsolutePercentageError",
    "mean_squared_logarithmic_error": "msle MSLE MeanSquaredLogarithmicError",
    "squared_hinge": "SquaredHinge", "hinge": "Hinge", "categorical_hinge": "CategoricalHinge",
    "log_cosh": "logcosh LogCosh", "huber": "huber_loss Huber",
    CROSSENTROPY: "CategoricalCrossentropy",
    "sparse_categorical_crossentropy": "SparseCategoricalCrossentropy",
    "binary_crossentropy": "bce BCE BinaryCrossentropy",
    "binary_focal_crossentropy": "BinaryFocalCrossentropy",
    "categorical_focal_crossentropy": "CategoricalFocalCrossentropy",
    "kl_divergence": "kld KLD kullback_leibler_divergence KLDivergence", "poisson": "Poisson",
    "cosine_similarity": "cosine cosine_proximity CosineSimilarity",
}  # fmt: skip
METRICS = {
    "accuracy": "acc ACC", "binary_accuracy": "BinaryAccuracy",
    "categorical_accuracy": "CategoricalAccuracy",
    "sparse_categorical_accuracy": "SparseCategoricalAccuracy", "crossentropy": "ce",
    "top_k_categorical_accuracy": "TopKCategoricalAccuracy",
    "sparse_top_k_categorical_accuracy": "SparseTopKCategoricalAccuracy",
    "mean_squared_error": "mse MSE MeanSquaredError",
    "mean_absolute_error": "mae MAE MeanAbsoluteError",
    "mean_absolute_percentage_error": "mape MAPE MeanAbsolutePercentageError",
    "mean_squared_logarithmic_error": "msle MSLE MeanSquaredLogarithmicError",
    "root_mean_squared_error": "RootMeanSquaredError",
    "log_cosh_error": "logcosh log_cosh LogCoshError",
    "cosine_similarity": "cosine cosine_proximity CosineSimilarity",
    "kl_divergence": "kld kullback_leibler_divergence KLDivergence", "poisson": "Poisson",
    "hinge": "Hinge", "squared_hinge": "SquaredHinge", "categorical_hinge": "CategoricalHinge",
    "binary_crossentropy": "bce BinaryCrossentropy", CROSSENTROPY: "CategoricalCrossentropy",
    "sparse_categorical_crossentropy": "SparseCategoricalCrossentropy",
    "auc": "AUC", "precision": "Precision", "recall": "Recall", "f1_score": "F1Score",
    "true_positives": "TruePositives", "true_negatives": "TrueNegatives",
    "false_positives": "FalsePositives", "false_negatives": "FalseNegatives",
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_keras_2(name: str) -> None:
    assert callable(keras.losses.get(name))
    assert {find_loss(spelling) for spelling in [name, *LOSSES[name].split()]} == {name}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_keras_2(name: str) -> None:
    assert {find_metric(spelling) for spelling in [name, *METRICS[name].split()]} == {name}


# Constructor arguments of Keras 2.1 to 2.15: those of all optimizers, those of old ones, of new
# ones, and of each.
OLD = ("lr=0.1", "learning_rate=0.1", "clipnorm=1.0", "clipvalue=0.5", "name='x'")
NEW = (
    "weight_decay=0.01",
    "weight_decay=None",
    "global_clipnorm=1.0",
    "use_ema=True",
    "ema_momentum=0.9",
    "ema_overwrite_frequency=None",
    "ema_overwrite_frequency=5",
)
OPTIMIZERS = {
    "SGD": ("momentum=0.9", "nesterov=True"),
    "RMSprop": ("rho=0.8", "momentum=0.9", "epsilon=None", "epsilon=1e-7", "centered=True"),
    "Adagrad": ("initial_accumulator_value=0.1", "epsilon=None"),
    "Adadelta": ("rho=0.9", "epsilon=1e-6"),
    "Adam": ("beta_1=0.8", "beta_2=0.99", "epsilon=None", "amsgrad=True"),
    "AdamW": ("beta_1=0.8", "beta_2=0.99", "epsilon=1e-6", "amsgrad=False"),
    "Adamax": ("beta_1=0.8", "beta_2=0.99", "epsilon=None"),
    "Nadam": ("beta_1=0.8", "beta_2=0.99", "epsilon=None"),
    "Ftrl": ("learning_rate_power=-0.5", "initial_accumulator_value=0.1",
    "l1_regularization_strength=0.1",
             "l2_regularization_strength=0.1", "l2_shrinkage_regularization_strength=0.1",
             "beta=0.1"),
    "Adafactor": ("beta_2_decay=-0.8", "epsilon_1=1e-30", "epsilon_2=0.001", "clip_threshold=1.0",
                  "relative_step=True"),
    "Lion": ("beta_1=0.9", "beta_2=0.99"),
}  # fmt: skip
GIVEN = [(name, argument) for name, own in OPTIMIZERS.items() for argument in (*own, *OLD, *NEW)]


def compiled(optimizer: str) -> CompileParams:
    return parse_compile_params(f"loss='mse', optimizer={optimizer!r}")


@pytest.mark.parametrize(("name", "argument"), GIVEN)
def test_arguments_of_optimizers(name: str, argument: str) -> None:
    """Keras builds the optimizer, and it has the value; None is the default."""
    found = compiled(f"{name.lower()}({argument})")
    assert found.notices == ()
    key, _, written = argument.partition("=")
    key = "learning_rate" if key == "lr" else key
    built = keras.optimizers.deserialize(found.optimizer.to_json()).get_config()
    value = {"None": None, "True": True, "False": False, "'x'": "x"}.get(written, written)
    assert found.optimizer.class_name == name
    if value is None:
        assert found.optimizer.config == {}
    elif isinstance(value, str) and value != "x":
        assert float(built[key]) == pytest.approx(float(value))
    else:
        assert built[key] == value


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"AdamW", "Adafactor", "Lion"}))
def test_decay_of_keras_2_is_kept(name: str) -> None:
    """It has an equal, so there is no notice: the rate falls as Keras 2 let it fall."""
    found = compiled(f"{name}(lr=0.2, decay=0.5)")
    assert found.notices == ()
    rates = keras.optimizers.deserialize(found.optimizer.to_json())._learning_rate
    assert [float(rates(step)) for step in (0, 1, 2)] == pytest.approx([0.2, 0.2 / 1.5, 0.2 / 2])


@pytest.mark.parametrize(
    ("name", "argument"),
    [("Nadam", "schedule_decay=0.004"), ("Adam", "jit_compile=True"), ("SGD", "jit_compile=False")],
)
def test_settings_without_an_equal_are_told(name: str, argument: str) -> None:
    found = compiled(f"{name}({argument})")
    assert found.optimizer.config == {}
    assert found.notices == (
        f"{name}: {argument.partition('=')[0]} has no equal in Keras 3 and is ignored",
    )


def test_shuffling_batches_is_told() -> None:
    found = parse_fit_params("shuffle='batch'")
    assert found.shuffle is True
    assert found.notices == ("shuffle='batch' is shuffle=True: rows change places within a buffer",)
