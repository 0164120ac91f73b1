"""Fit parameters: every spelling that MADlib's users know, and what is refused before anything is
trained.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.params.fit_params import (
    LARGEST_WEIGHT,
    MAX_CLASSES,
    FitParams,
    parse_fit_params,
)
from cerebro_plpy.errors import CerebroError, InvalidParameter, InvalidText

FORMS: list[tuple[str | None, FitParams]] = [
    (None, FitParams()),
    ("", FitParams(32, 1, True, 0)),
    (" \n", FitParams(32, 1, True, 0)),
    ("batch_size=8,epochs=1", FitParams(8, 1, True, 0)),
    ("verbose = 1,\n shuffle=False , epochs=3, batch_size=128", FitParams(128, 3, False, 1)),
    ("class_weight={1: 2, 0: 0.5}", FitParams(class_weight=((0, 0.5), (1, 2.0)))),
    ("class_weight={}", FitParams()),
    ("class_weight=None, steps_per_epoch=None", FitParams()),
    ("initial_epoch=2,epochs=3", FitParams(epochs=3, initial_epoch=2)),
    ("steps_per_epoch=7", FitParams(steps_per_epoch=7)),
]


@pytest.mark.parametrize(("text", "params"), FORMS)
def test_forms(text: str | None, params: FitParams) -> None:
    assert parse_fit_params(text) == params


@given(
    st.integers(0, 99),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from(["loss", "val_loss", "val_auc"]),
)
def test_a_callback_is_what_its_text_says(
    patience: int, least: float, keeps: bool, monitor: str
) -> None:
    stopping = EarlyStopping(
        monitor, restore_best_weights=keeps, patience=patience, min_delta=least
    )
    assert parse_fit_params(f"callbacks=[{stopping.text}]").callbacks.early_stopping == stopping


REFUSED: list[tuple[str, type[CerebroError], str]] = [
    ("batch_size=0", InvalidParameter, "parameter batch_size=0, please refer to the documentation"),
    ("batch_size=1.5", InvalidParameter, "parameter batch_size=1.5"),
    ("batch_size=True", InvalidParameter, "parameter batch_size=True"),
    ("batch_size=9999999999", InvalidParameter, "parameter batch_size=9999999999"),
    ("epochs='2'", InvalidParameter, "parameter epochs='2'"),
    ("epochs=n", InvalidParameter, "parameter epochs=n"),
    ("shuffle=1", InvalidParameter, "parameter shuffle=1"),
    ("verbose=3", InvalidParameter, "parameter verbose=3"),
    (
        "validation_split=0.1",
        InvalidParameter,
        "validation_split is not currently accepted as a parameter.",
    ),
    ("class_weight=[1, 2]", InvalidParameter, "parameter class_weight=[1, 2]"),
    ("class_weight={'a': 1}", InvalidParameter, "parameter class_weight={'a': 1}"),
    ("class_weight={True: 1}", InvalidParameter, "parameter class_weight={True: 1}"),
    ("class_weight={-1: 1}", InvalidParameter, "parameter class_weight={-1: 1}"),
    (f"class_weight={{{MAX_CLASSES}: 1}}", InvalidParameter, "parameter class_weight="),
    ("class_weight={0: '1'}", InvalidParameter, "parameter class_weight={0: '1'}"),
    ("class_weight={0: True}", InvalidParameter, "parameter class_weight={0: True}"),
    ("class_weight={0: None}", InvalidParameter, "parameter class_weight={0: None}"),
    ("class_weight={0: -0.5}", InvalidParameter, "parameter class_weight={0: -0.5}"),
    ("class_weight={0: 1e999}", InvalidParameter, "parameter class_weight={0: inf}"),
    ("class_weight={0: 1e39}", InvalidParameter, "parameter class_weight={0: 1e+39}"),
    ("class_weight='balanced'", InvalidParameter, "parameter class_weight='balanced'"),
    ("initial_epoch=1", InvalidParameter, "initial_epoch=1 with epochs=1 leaves nothing to train"),
    (
        "epochs=3, initial_epoch=5",
        InvalidParameter,
        "initial_epoch=5 with epochs=3 leaves nothing to train",
    ),
    ("initial_epoch=-1", InvalidParameter, "parameter initial_epoch=-1"),
    ("initial_epoch=True, epochs=2", InvalidParameter, "parameter initial_epoch=True"),
    ("steps_per_epoch=0", InvalidParameter, "parameter steps_per_epoch=0"),
    ("steps_per_epoch=1.0", InvalidParameter, "parameter steps_per_epoch=1.0"),
    (
        "callbacks=[]",
        InvalidParameter,
        "Invalid callbacks fit param.  Currently, only TensorBoard and",
    ),
    ("callbacks='x'", InvalidParameter, "Invalid callbacks fit param."),
    ("callbacks=5", InvalidParameter, "Invalid callbacks fit param."),
    ("callbacks=[ReduceLROnPlateau()]", InvalidParameter, "Invalid callbacks fit param."),
    (
        "callbacks=[EarlyStopping(), EarlyStopping()]",
        InvalidParameter,
        "Invalid callbacks fit param.",
    ),
    ("callbacks=[EarlyStopping(factor=2)]", InvalidParameter, "Invalid callbacks fit param."),
    ("callbacks=[EarlyStopping(monitor=None)]", InvalidParameter, "parameter monitor=None"),
    ("callbacks=[EarlyStopping(mode='up')]", InvalidParameter, "parameter mode='up'"),
    ("callbacks=[EarlyStopping(patience=1.5)]", InvalidParameter, "parameter patience=1.5"),
    (
        "callbacks=[EarlyStopping(patience=9999999999)]",
        InvalidParameter,
        "parameter patience=9999999999",
    ),
    ("callbacks=[EarlyStopping(patience=-1)]", InvalidParameter, "parameter patience=-1"),
    ("callbacks=[EarlyStopping(min_delta='x')]", InvalidParameter, "parameter min_delta='x'"),
    ("callbacks=[EarlyStopping(baseline=1e999)]", InvalidParameter, "parameter baseline=inf"),
    (
        "callbacks=[EarlyStopping(restore_best_weights=1)]",
        InvalidParameter,
        "parameter restore_best_weights=1",
    ),
    ("callbacks=[os.system('x')]", InvalidParameter, "Invalid callbacks fit param."),
    (
        "callbacks=[TensorBoard(log_dir='/a'), TensorBoard(log_dir='/a')]",
        InvalidParameter,
        "Invalid callbacks",
    ),
    (
        "callbacks=[TensorBoard(log_dir='/a', profile_batch=2)]",
        InvalidParameter,
        "Invalid callbacks fit param.",
    ),
    (
        "callbacks=[TensorBoard(log_dir=f())]",
        InvalidParameter,
        "invalid input value for parameter log_dir=f()",
    ),
    (
        "callbacks=[TensorBoard()]",
        InvalidParameter,
        "invalid input value for parameter log_dir=None",
    ),
    ("callbacks=[TensorBoard(log_dir='logs')]", InvalidParameter, "parameter log_dir='logs'"),
    (
        "callbacks=[TensorBoard(log_dir='/a', histogram_freq=-1)]",
        InvalidParameter,
        "parameter histogram_freq=-1",
    ),
    (
        "callbacks=[TensorBoard(log_dir='/a', write_graph=1)]",
        InvalidParameter,
        "parameter write_graph=1",
    ),
    ("8", InvalidText, "holds a value without a key"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED)
def test_refused(text: str, error: type[CerebroError], message: str) -> None:
    with pytest.raises(error) as caught:
        parse_fit_params(text)
    assert message in caught.value.message
    assert caught.value.hint is not None


@given(st.integers(1, 100), st.integers(0, 99))
def test_passes_are_counted_from_the_initial_epoch(epochs: int, initial: int) -> None:
    text = f"epochs={epochs},initial_epoch={initial}"
    if initial < epochs:
        assert parse_fit_params(text).to_json()["epochs"] == epochs - initial
    else:
        with pytest.raises(InvalidParameter):
            parse_fit_params(text)


@given(st.dictionaries(st.integers(0, 40), st.floats(0, LARGEST_WEIGHT), min_size=1))
def test_weights_stand_at_their_class_and_the_others_are_one(weights: dict[int, float]) -> None:
    found = parse_fit_params(f"class_weight={weights!r}").to_json()["class_weight"]
    assert isinstance(found, list) and len(found) == max(weights) + 1
    assert {i: w for i, w in enumerate(found) if w != 1.0} == {
        i: w for i, w in weights.items() if w != 1.0
    }
