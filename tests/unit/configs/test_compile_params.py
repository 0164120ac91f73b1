"""Compile and fit parameter strings: MADlib's forms, its messages, and what Keras makes of the
result.
"""

from __future__ import annotations

import json
from typing import Any

import keras
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import canonicalize, parse_compile_params
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.literals import MAX_LENGTH
from cerebro_plpy.configs.params.optimizers import parse_optimizer
from cerebro_plpy.errors import CerebroError, FeatureNotSupported, InvalidParameter, InvalidText


def optimizer_of(text: str) -> dict[str, Any]:
    return parse_optimizer(text).to_json()


def with_optimizer(text: str) -> str:
    return f"loss='mse', optimizer={text!r}"


COMPILE_FORMS = [
    "optimizer='Adam(lr=0.001)',metrics=['accuracy'],loss='categorical_crossentropy'",
    "  loss = 'categorical_crossentropy' ,\n metrics = [ 'accuracy' ] , optimizer = 'Adam( lr = "
    "0.001 )' ",
    "loss='categorical_crossentropy',optimizer=\"adam(learning_rate=1e-3)\",metrics=['acc']",
    "optimizer='ADAM(lr=0.001, epsilon=None)',loss='CategoricalCrossentropy',metrics=['Accuracy'],",
]


@pytest.mark.checklist(4)
@pytest.mark.parametrize("text", COMPILE_FORMS)
def test_compile_forms_that_mean_the_same(text: str) -> None:
    assert parse_compile_params(text).to_json() == {
        "optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.001}},
        "loss": "categorical_crossentropy",
        "metrics": ["accuracy"],
        "loss_weights": None,
        "weighted_metrics": None,
    }


def test_all_compile_keys() -> None:
    params = parse_compile_params(
        "optimizer='SGD()', loss=['mse', 'bce'], metrics=['mae', 'mse'], loss_weights=[1, 0.5],"
        " weighted_metrics=['acc'], sample_weight_mode=None"
    )
    assert params.to_json() == {
        "optimizer": {"class_name": "SGD", "config": {}},
        "loss": ["mean_squared_error", "binary_crossentropy"],
        "metrics": ["mean_absolute_error", "mean_squared_error"],
        "loss_weights": [1, 0.5],
        "weighted_metrics": ["accuracy"],
    }
    assert params.metrics_as_written == ("mae", "mse")
    json.dumps(params.to_json(), allow_nan=False)


def test_losses_by_output_name() -> None:
    params = parse_compile_params(
        "optimizer='SGD', loss={'a': 'mse', 'b': 'kld'}, loss_weights={'a': 2}"
    )
    assert params.loss == {"a": "mean_squared_error", "b": "kl_divergence"}
    assert params.loss_weights == {"a": 2}


@pytest.mark.checklist(15)
def test_names_as_given_are_kept() -> None:
    params = parse_compile_params("optimizer='SGD', loss='MSE', metrics=['acc']")
    assert (params.loss_text, params.metrics_as_written) == ("MSE", ("acc",))


@pytest.mark.parametrize(
    "loss",
    ["sparse_categorical_crossentropy", "kullback_leibler_divergence", "logcosh", "huber_loss"],
)
def test_losses_that_madlib_or_keras_3_refuse(loss: str) -> None:
    text = (
        f"optimizer='SGD', loss='{loss}', metrics=['sparse_categorical_accuracy', "
        "'cosine_proximity']"
    )
    assert len(parse_compile_params(text).metrics) == 2


OPTIMIZERS: list[tuple[str, str, dict[str, object]]] = [
    ("SGD", "SGD", {}),
    ("sgd()", "SGD", {}),
    ("SGD(lr=0.1, momentum=0.9, nesterov=False)", "SGD",
     {"learning_rate": 0.1, "momentum": 0.9, "nesterov": False}),
    ("adam(amsgrad=True, beta_1=0.5)", "Adam", {"amsgrad": True, "beta_1": 0.5}),
    ("rmsprop(rho=0.9, centered=False, decay=0)", "RMSprop", {"rho": 0.9, "centered": False}),
    ("adamw(weight_decay=0.01, name='a, b')", "AdamW", {"weight_decay": 0.01, "name": "a, b"}),
    ("Muon(exclude_layers=['head', 'x'], ns_steps=5)", "Muon",
     {"exclude_layers": ["head", "x"], "ns_steps": 5}),
    ("lamb(lr=-0.0)", "Lamb", {"learning_rate": -0.0}),
    ("adagrad(lr=None, epsilon=None, decay=None)", "Adagrad", {}),
    ("ScheduleFreeAdamW(warmup_steps=3)", "ScheduleFreeAdamW", {"warmup_steps": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "class_name", "config"), OPTIMIZERS)
def test_optimizers(text: str, class_name: str, config: dict[str, object]) -> None:
    assert optimizer_of(text) == {"class_name": class_name, "config": config}
    built = getattr(keras.optimizers, class_name)(**config).get_config()
    numbers = {key for key in config if isinstance(config[key], float)}
    assert {key: built[key] for key in numbers} == pytest.approx(
        {key: config[key] for key in numbers}
    )


@pytest.mark.parametrize(
    ("text", "rate"), [("SGD(decay=0.5)", 0.01), ("Adam(lr=0.1, decay=0.5)", 0.1)]
)
def test_decay_is_the_formula_of_keras_2(text: str, rate: float) -> None:
    schedule = optimizer_of(text)["config"]["learning_rate"]
    rates = keras.optimizers.schedules.deserialize(schedule)
    for step in (0, 1, 10):
        assert float(rates(step)) == pytest.approx(rate / (1 + 0.5 * step))


def test_a_schedule_can_be_given() -> None:
    decay = {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True}
    text = f"SGD(lr={{'class_name': 'ExponentialDecay', 'config': {decay}}})"
    schedule = keras.optimizers.schedules.deserialize(optimizer_of(text)["config"]["learning_rate"])
    assert isinstance(schedule, keras.optimizers.schedules.ExponentialDecay)
    assert float(schedule(10)) == pytest.approx(0.05)


def test_settings_without_an_equal_are_told() -> None:
    params = parse_compile_params(with_optimizer("Nadam(lr=0.1, schedule_decay=0.004)"))
    assert params.optimizer.config == {"learning_rate": 0.1}
    assert params.notices == ("Nadam: schedule_decay has no equal in Keras 3 and is ignored",)


REFUSED_COMPILE: list[tuple[str, type[CerebroError], str]] = [
    ("loss='mse'", InvalidParameter, "optimizer is a required parameter for compile"),
    ("", InvalidParameter, "optimizer is a required parameter for compile"),
    ("optimizer='SGD'", InvalidParameter, "loss is a required parameter for compile"),
    (with_optimizer("Adm()"), InvalidParameter, "model_keras error: invalid optimizer name: Adm"),
    ("optimizer='SGD', loss='mes'", InvalidParameter, "Loss function mes is not supported."),
    ("optimizer='SGD', loss=['mse', 1]", InvalidParameter, "Loss function 1 is not supported."),
    ("optimizer='SGD', loss='mse', metrics=['x']", InvalidParameter, "Metric x is not supported."),
    ("optimizer='SGD', loss='mse', metrics='acc'", InvalidParameter, "metrics='acc'"),
    ("optimizer='SGD', loss='mse', lr=1", InvalidParameter,
    "lr is not currently accepted as a parameter."),
    ("optimizer='SGD', loss='mse', loss_weights=['a']", InvalidParameter,
    "parameter loss_weights=['a']"),
    ("optimizer='SGD', loss='mse', loss_weights={1: 2}", InvalidParameter, "loss_weights={1: 2}"),
    ("optimizer='SGD', loss={}", InvalidParameter, "parameter loss={}"),
    ("optimizer=0.1, loss='mse'", InvalidParameter, "parameter optimizer=0.1"),
    ("optimizer='', loss='mse'", InvalidParameter, "parameter optimizer=''"),
    (with_optimizer("SGD(beta_1=0.1)"), InvalidParameter,
    "beta_1 is not currently accepted as a parameter"),
    (with_optimizer("SGD(lr=0.1, learning_rate=0.1)"), InvalidParameter,
    "lr and learning_rate are the same"),
    (with_optimizer("SGD(lr=True)"), InvalidParameter, "parameter lr=True"),
    (with_optimizer("SGD(lr='0.1')"), InvalidParameter, "parameter lr='0.1'"),
    (with_optimizer("SGD(lr=-1)"), InvalidParameter, "parameter lr=-1"),
    (with_optimizer("SGD(lr=1e999)"), InvalidParameter, "parameter lr=inf"),
    (with_optimizer("SGD(nesterov='False')"), InvalidParameter, "parameter nesterov='False'"),
    (with_optimizer("SGD(nesterov=0)"), InvalidParameter, "parameter nesterov=0"),
    (with_optimizer("SGD(decay=-1)"), InvalidParameter, "parameter decay=-1"),
    (with_optimizer("SGD(name=1)"), InvalidParameter, "parameter name=1"),
    (with_optimizer("Muon(ns_steps=1.5)"), InvalidParameter, "parameter ns_steps=1.5"),
    (with_optimizer("Muon(exclude_layers='a')"), InvalidParameter, "parameter exclude_layers='a'"),
    (with_optimizer("SGD(lr={'class_name': 'Lambda', 'config': {}})"), InvalidParameter,
    "parameter lr="),
    (with_optimizer("SGD(lr={'class_name': 'CosineDecay', 'config': {'f': 1}})"), InvalidParameter,
    "lr="),
    (with_optimizer("SGD(lr={'class_name': [], 'config': {}})"), InvalidParameter, "lr="),
    (with_optimizer("SGD(decay=1,lr={'class_name':'CosineDecay','config':{}})"), InvalidParameter,
    "decay"),
    (with_optimizer("SGD(lr=__import__('os').getpid())"), InvalidParameter,
    "parameter lr=__import__"),
    (with_optimizer("SGD(0.1)"), InvalidText, "holds a value without a key"),
    (with_optimizer("SGD(lr=0.1"), InvalidText, "invalid syntax"),
    (with_optimizer("keras.SGD()"), InvalidText, "is not of the form Name(key=value, ...)"),
    (with_optimizer("SGD()()"), InvalidText, "is not of the form Name(key=value, ...)"),
    ("optimizer='SGD', loss='mse', loss='mae'", InvalidText, "loss is given twice"),
    ("'mse', optimizer='SGD'", InvalidText, "holds a value without a key"),
    ("optimizer='SGD', **{'loss': 'mse'}", InvalidText, "holds a value without a key"),
    ("optimizer='SGD') or (loss='mse'", InvalidText, "invalid syntax"),
    ("a=1), f(b=2", InvalidText, "not of the form"),
    ("a=1)(b=2", InvalidText, "not of the form"),
    ("optimizer='SGD' loss='mse'", InvalidText, "invalid syntax"),
    ("a=" + "-" * 50_000 + "1", InvalidText, "cannot be read"),
    ("a=" + "1+" * 40_000 + "1", InvalidText, "cannot be read"),
    ("a=" + "[" * 5_000, InvalidText, "invalid syntax"),
    ("a=1" + " " * MAX_LENGTH, InvalidText, "is longer than"),
    ("a='\0'", InvalidText, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "message"), REFUSED_COMPILE)
def test_refused_compile_params(text: str, error: type[CerebroError], message: str) -> None:
    with pytest.raises(error) as caught:
        parse_compile_params(text)
    assert message in caught.value.message
    assert len(caught.value.message) < 600


def test_temporal_sample_weights_are_not_available() -> None:
    with pytest.raises(FeatureNotSupported):
        parse_compile_params("optimizer='SGD', loss='mse', sample_weight_mode='temporal'")


def test_hints_name_near_matches() -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_compile_params("optimizer='SGD', loss='catgorical_crossentropy'")
    assert caught.value.hint is not None and "categorical_crossentropy" in caught.value.hint


def test_canonical_is_one_for_orders_and_spaces() -> None:
    assert len({canonicalize(text) for text in COMPILE_FORMS[:2]}) == 1
    assert canonicalize(None) == canonicalize(" ") == ""
    assert canonicalize("loss_weights={'b': 1, 'a': 2.0}") == canonicalize(
        "loss_weights={'a':2.0,'b':1}"
    )
    assert canonicalize("epochs=1") != canonicalize("epochs=2")
    assert canonicalize("metrics=['a', 'b']") != canonicalize("metrics=['b', 'a']")


SETTINGS = st.dictionaries(
    st.sampled_from(["loss", "metrics", "batch_size", "x", "y"]),
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.booleans(),
        st.none(),
        st.lists(st.text(max_size=5), max_size=3),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
    ),
)


@given(SETTINGS, st.randoms(use_true_random=False))
def test_canonical_does_not_depend_on_the_order(settings: dict[str, object], random: Any) -> None:
    pairs = [f"{key}={value!r}" for key, value in settings.items()]
    shuffled = random.sample(pairs, len(pairs))
    assert canonicalize(",".join(pairs)) == canonicalize(" , ".join(shuffled))
    assert canonicalize(canonicalize(",".join(pairs))) == canonicalize(",".join(pairs))


@given(st.text(alphabet="abc=,()[]{}'\"\\ \n#:.-+*0159_lSGD", max_size=60))
def test_any_text_is_read_or_refused_as_such(text: str) -> None:
    for parse in (parse_compile_params, parse_fit_params, parse_optimizer, canonicalize):
        try:
            parse(text)
        except CerebroError as error:
            assert error.message
