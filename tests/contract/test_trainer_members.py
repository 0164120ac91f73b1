"""Members of a model: a job predicts with the weighted sum of what they put out alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from test_trainer_attributions import Arrays, asked, attributed, sent
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import MLP, Json, buffers, dense, program, sequential

ROWS = 300
"""More rows than a batch of evaluation has."""
WIDE = program(sequential([4], dense(5, "wide"), dense(3, "out", "softmax")))
NUMBER = program(
    sequential([4], dense(1, "out")), loss="mean_squared_error", metrics=(),
    targets=[{"kind": "float"}],
)  # fmt: skip
MEMBERS = ((program(), 1), (WIDE, 2), (program(), 3))
"""Programs and the seeds of their states; two programs are equal."""
SHARES = (0.5, 0.3, 0.2)
COLUMNS = [[[0]], [[1, 2]], [[3]]]
Member = tuple[Json, bytes, float]


@pytest.fixture(scope="module")
def states(trainer: Peer) -> list[bytes]:
    """The state of each member."""
    return [trainer.initial(chosen, seed) for chosen, seed in MEMBERS]


@pytest.fixture
def members(states: list[bytes]) -> list[Member]:
    """All members with their shares."""
    programs = [chosen for chosen, _ in MEMBERS]
    return list(zip(programs, states, SHARES, strict=True))


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    """Rows of one input."""
    return [("float32", np.random.default_rng(3).normal(size=(ROWS, 4)).astype(np.float32))]


def begin(trainer: Peer, members: Sequence[Member], **more: Any) -> None:
    """Open a job of members."""
    for number, (chosen, state, share) in enumerate(members):
        beside = {"beside": True} if number else {}
        trainer.begin("predict", chosen, state, (), share=share, **beside, **more)


def predict(trainer: Peer, arrays: Arrays) -> np.ndarray:
    """All outputs of the open job, shape (rows, units)."""
    header, payload = sent(arrays)
    request = {"do": "rows", **header, "classes": [None], "want": {"kind": "prob"}}
    answer = trainer.ask(request, payload)
    values, ranked_classes = (
        np.array(answer[name].strip("{}").split(","), dtype=np.float64).reshape(header["rows"], -1)
        for name in ("value", "class")
    )
    return np.take_along_axis(values, ranked_classes.argsort(axis=1), axis=1)


def predict_alone(trainer: Peer, member: Member, arrays: Arrays) -> np.ndarray:
    begin(trainer, [(*member[:2], 1.0)])
    return predict(trainer, arrays)


def add_up(outputs: Sequence[np.ndarray], shares: Sequence[float]) -> np.ndarray:
    """The weighted sum in double precision, in order, rounded once."""
    total = np.zeros_like(outputs[0])
    for output, share in zip(outputs, shares, strict=True):
        total = total + share * output
    return total.astype(np.float32).astype(np.float64)


def test_predictions_are_the_weighted_sum_in_the_order_of_members(
    trainer: Peer, members: list[Member], arrays: Arrays
) -> None:
    alone = [predict_alone(trainer, member, arrays) for member in members]
    assert not np.array_equal(alone[0], alone[2]), "equal programs have states of their own"
    for order in permutations(range(3)):
        begin(trainer, [members[position] for position in order])
        expected = add_up([alone[p] for p in order], [members[p][2] for p in order])
        for _ in range(2):
            np.testing.assert_array_equal(predict(trainer, arrays), expected)


def test_one_member_has_its_share(trainer: Peer, members: list[Member], arrays: Arrays) -> None:
    alone = predict_alone(trainer, members[0], arrays)
    begin(trainer, members[:1])
    np.testing.assert_array_equal(predict(trainer, arrays), add_up([alone], SHARES[:1]))


def answer_everything(trainer: Peer, arrays: Arrays) -> list[Any]:
    """The answers to all requests with rows."""
    target = np.arange(ROWS, dtype=np.float32) % 3
    header, payload = sent(arrays)
    head = np.array([(1, 0, 700, 1, 1)], "i4").tobytes()
    targets = b"".join(head + row.tobytes() for row in target[:, np.newaxis])
    permutation = {
        **header, "do": "permute", "lengths": [*header["lengths"], len(targets)],
        "target": {"kind": "float32"}, "columns": COLUMNS, "metric": "log_loss", "classes": 3,
        "repeats": 2, "seed": 1,
    }  # fmt: skip
    trainer.tell(permutation, payload + targets)
    losses = trainer.reply()
    return [
        predict(trainer, arrays).tolist(),
        asked(trainer, "tell", arrays, labels=["a", "b", "c"]),
        losses,
        attributed(trainer, arrays, COLUMNS, [[[0, 1]]]),
    ]


def test_a_member_in_halves_is_the_member(
    trainer: Peer, members: list[Member], arrays: Arrays
) -> None:
    """A half is exact, so that all answers have the same bits."""
    chosen, state, _ = members[0]
    begin(trainer, [(chosen, state, 1.0)])
    whole = answer_everything(trainer, arrays)
    begin(trainer, [(chosen, state, 0.5)] * 2)
    assert answer_everything(trainer, arrays) == whole


@pytest.mark.long_for(framework=("jax", "torch"))
def test_attributions_make_up_the_difference_of_the_sum(
    trainer: Peer, members: list[Member], arrays: Arrays
) -> None:
    begin(trainer, members)
    outputs = predict(trainer, arrays)
    (blank,) = predict(trainer, [("float32", np.zeros((1, 4), np.float32))])
    values, gaps = (np.array(part) for part in attributed(trainer, arrays, COLUMNS))
    units = outputs.argmax(axis=1)
    alone = [predict_alone(trainer, member, arrays).argmax(axis=1) for member in members]
    assert any((chosen != units).any() for chosen in alone), "members explain other units alone"
    change = outputs[np.arange(ROWS), units] - blank[units]
    explained = values.reshape(ROWS, -1).sum(axis=1) - gaps.reshape(ROWS, -1)[:, 0]
    np.testing.assert_allclose(explained, change, atol=1e-5)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_attributions_explain_the_corrected_probability_of_the_predicted_class(
    trainer: Peer, members: list[Member], arrays: Arrays
) -> None:
    """Under a temperature and costs, which choose another class than the most probable one."""
    named_cost = {"actual": 1, "predicted": 0, "cost": 9.0}
    temperature = 0.6
    calibration = {"temperature": temperature, "costs": [named_cost]}

    def correct(outputs: np.ndarray) -> np.ndarray:
        powers = np.maximum(outputs, 1e-7) ** (1 / temperature)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    begin(trainer, members, calibration=calibration)
    probabilities = correct(predict(trainer, arrays))
    (kind, rows) = arrays[0]
    blank = correct(predict(trainer, [(kind, np.zeros((1, 4), np.float32))]))
    covered = rows.copy()
    covered[:, :2] = 0
    without_patch = correct(predict(trainer, [(kind, covered)]))
    costs = 1.0 - np.eye(3)
    costs[1, 0] = 9.0
    classes = (probabilities @ costs).argmin(axis=1)
    assert (classes != probabilities.argmax(axis=1)).any()
    values, gaps = attributed(trainer, arrays, COLUMNS, [[[0, 1]]])
    found = np.array(values, dtype=float).reshape(ROWS, -1)
    gap = np.array(gaps, dtype=float).reshape(ROWS, -1)[:, 0]
    chosen = np.arange(ROWS), classes
    explained = found[:, :-1].sum(axis=1) - gap
    np.testing.assert_allclose(explained, probabilities[chosen] - blank[0, classes], atol=1e-6)
    lost = probabilities[chosen] - without_patch[chosen]
    np.testing.assert_allclose(found[:, -1], lost, atol=1e-6)
    assert np.abs(gap).max() < 0.02 * np.abs(found).max()


@pytest.mark.one_framework
@pytest.mark.parametrize("share", [0, -0.5, float("nan"), float("inf"), "1", True, None])
def test_shares_are_finite_numbers_above_zero(trainer: Peer, share: object) -> None:
    for beside in (False, True):
        trainer.begin("predict", program(), NEW, ())
        with pytest.raises(TrainerFailed, match='"share" must be') as failed:
            trainer.begin("predict", program(), NEW, (), share=share, beside=beside)
        assert failed.value.error["kind"] == "request"


@pytest.mark.one_framework
def test_an_error_names_its_member(trainer: Peer, members: list[Member], arrays: Arrays) -> None:
    chosen, state, share = members[1]
    damaged = (chosen, state[:-4], share)
    other_shape = (program(MLP), state, share)
    two_units = sequential([4], dense(2, "out", "softmax"))
    two = program(two_units, targets=[{"kind": "onehot", "classes": 2}])
    other_units = (two, trainer.initial(two), share)
    for wrong, words in (
        (damaged, "the state is damaged"),
        (other_shape, "does not fit"),
        (other_units, r"shapes \[\(2,\)\], expected \[\(3,\)\]"),
    ):
        with pytest.raises(TrainerFailed, match=f"member 2 of the model: .*{words}"):
            begin(trainer, [members[0], wrong, members[2]])
            predict(trainer, arrays)
        with pytest.raises(TrainerFailed, match="no job is open"):
            predict(trainer, arrays)


@pytest.mark.one_framework
def test_the_only_member_needs_no_name(trainer: Peer, members: list[Member]) -> None:
    chosen, state, _ = members[0]
    with pytest.raises(TrainerFailed, match=": the state is damaged"):
        begin(trainer, [(chosen, state[:-4], 1.0)])
        trainer.ask({"do": "finish"})


@pytest.mark.one_framework
def test_a_job_of_members_is_one_of_predictions(trainer: Peer, members: list[Member]) -> None:
    trainer.load("d", buffers(8))
    for job, state, words in (
        ("predict", {"source": "kept", "key": "result"}, "takes no other state"),
        ("fusion", NEW, "takes no other state"),
        ("evaluate", NEW, '"job" must be one of'),
    ):
        begin(trainer, members[:1])
        with pytest.raises(TrainerFailed, match=words):
            trainer.begin(job, program(), state, (), beside=True)
    trainer.begin("train", program(), NEW, fit=fit(), order=place())
    with pytest.raises(TrainerFailed, match="takes no other state"):
        trainer.begin("predict", program(), NEW, (), beside=True)
    trainer.begin("train", program(), NEW, fit=fit(), order=place())
    with pytest.raises(TrainerFailed, match="takes no rows"):
        predict(trainer, [("float32", np.zeros((1, 4), np.float32))])


@pytest.mark.one_framework
def test_states_of_members_have_no_names(trainer: Peer, members: list[Member]) -> None:
    begin(trainer, members)
    with pytest.raises(TrainerFailed, match="is not held"):
        trainer.state()
    begin(trainer, members)
    request = {"do": "features", "layer": "hidden", "buffer_id": 0}
    array = np.zeros((1, 4), np.float32)
    described = [{"role": "x", "dtype": "float32", "shape": [1, 4]}]
    with pytest.raises(TrainerFailed, match="has 3 members; expected one"):
        trainer.ask({**request, "arrays": described}, array.tobytes())


@pytest.mark.one_framework
def test_sealed_and_other_states_do_not_mix(trainer: Peer) -> None:
    for first, second in ((True, False), (False, True)):
        trainer.begin("predict", program(), NEW, (), sealed=first)
        with pytest.raises(TrainerFailed, match="sealed, or none is") as failed:
            trainer.begin("predict", program(), NEW, (), beside=True, sealed=second)
        assert failed.value.error["sqlstate"] == "42501"


@pytest.mark.one_framework
def test_training_after_a_prediction_of_members_has_the_same_bits(
    trainer: Peer, members: list[Member], arrays: Arrays
) -> None:
    trainer.load("d", buffers(20, 10))
    before = trainer.train(program(), NEW)[1]
    begin(trainer, members)
    predict(trainer, arrays)
    assert trainer.train(program(), NEW)[1] == before


@pytest.mark.one_framework
def test_numbers_are_added_before_they_are_scaled(trainer: Peer, arrays: Arrays) -> None:
    scale = {"low": 0, "high": 100.0, "offset": 10.0, "deviation": 4.0}
    states = [trainer.initial(NUMBER, seed) for seed in (1, 2)]
    begin(trainer, [(NUMBER, states[0], 0.25), (NUMBER, states[1], 0.75)])
    raw = np.array(asked(trainer, "tell", arrays)[1])
    begin(trainer, [(NUMBER, states[0], 0.25), (NUMBER, states[1], 0.75)], scale=scale)
    scaled = np.array(asked(trainer, "tell", arrays)[1])
    np.testing.assert_allclose(scaled, np.clip(10.0 + 4.0 * raw, 0, 100), rtol=1e-6)
