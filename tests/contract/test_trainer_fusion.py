"""States of one program that are trained in one job: what becomes of each does not depend on the
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from test_trainer_execution_modes import ahead, use
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import (
    FORMS,
    L2,
    MLP,
    NOISY,
    REGULARISED,
    Json,
    buffers,
    content,
    dense,
    layer,
    program,
    sequential,
    weights,
)

from cerebro_plpy.run.log.form_timings import LANES

BATCH = 7
"""With it the numbers of a state fill no vectors of a processor, so that lanes lie otherwise."""
SIZES = (150, 7, 6)
"""Rows of buffers: several batches and a smaller one; one batch; none that is full."""
FUSED = "fused_8"
ALIKE = {"jax": "scan", "tensorflow": "xla_loop", "torch": "graph"}
"""A form of each framework that draws the same numbers in batches of full size."""
FUNCTIONS = dense(7, "first", "sigmoid"), dense(5, "second", "elu")
"""They are rounded otherwise by vectors than number by number."""
ROUNDED = sequential([4], *FUNCTIONS, dense(3, "out", "softmax"))
DRAWN = sequential(
    [4],
    *FUNCTIONS,
    layer("BatchNormalization", "norm"),
    layer("Dropout", "drop", rate=0.3),
    dense(3, "out", "softmax"),
)
"""That, which also draws and counts."""
WIDER = sequential([4], dense(16, "hidden", kernel_regularizer=L2), dense(3, "out", "softmax"))
"""Of the first layer the numbers fill vectors all the same."""
RATES = (0.001, 1e38, 0.004)
"""With the second one the loss is no number after a step."""
Fused = dict[int, Mapping[str, Any]]


def rates(count: int, architecture: Json = MLP, optimizer: str = "Adam") -> dict[int, Json]:
    """Programs that differ in nothing but learning rates, by mst_key."""
    return {
        key: program(architecture, optimizer, learning_rate=0.001 * 2**key) for key in range(count)
    }


def fused(
    trainer: Peer, programs: Mapping[int, Json], form: Json, epochs: int = 1, visits: int = 1
) -> Any:
    """Train states that begin anew, each by its program, in one job; what it came to, and the
    states that are left.
    """
    for number, (key, chosen) in enumerate(programs.items()):
        made = [{"dataset": "d", "order": place(epoch, key)} for epoch in range(visits)]
        asked: Json = {
            "fit": fit(BATCH, epochs),
            "forms": form,
            "visits": made,
            "result_key": f"r{key}",
        }
        state = {"source": "new", "seed": key}
        trainer.begin("fusion", chosen, state, beside=bool(number), **asked)
    result = trainer.ask({"do": "finish"})
    left = zip(programs, result["states"], strict=True)
    return result, {
        key: trainer.state(key=f"r{key}") for key, told in left if told["error"] is None
    }


def alone(
    trainer: Peer, chosen: Json, key: int, form: Json, epochs: int = 1, visits: int = 1
) -> tuple[Any, bytes]:
    """Train one of these states by itself."""
    state: Any = {"source": "new", "seed": key}
    for epoch in range(visits):
        result, state = trainer.train(
            chosen, state, epoch=epoch, mst_key=key, batch_size=BATCH, epochs=epochs, forms=form
        )
    return result, state


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(architecture=ROUNDED)
@pytest.mark.parametrize(
    "architecture", [ROUNDED, pytest.param(DRAWN, marks=pytest.mark.long)], ids=["rounded", "drawn"]
)
def test_neither_the_others_nor_its_place_change_a_state(trainer: Peer, architecture: Json) -> None:
    trainer.load("d", buffers(*SIZES))
    programs = rates(LANES[FUSED], architecture)
    _, all_of_them = fused(trainer, programs, use(FUSED), epochs=2)
    _, turned = fused(trainer, dict(reversed(programs.items())), use(FUSED), epochs=2)
    _, fewer = fused(trainer, {key: programs[key] for key in (5, 2, 7)}, use(FUSED), epochs=2)
    for key, state in all_of_them.items():
        assert content(turned[key]) == content(state)
        assert key not in fewer or content(fewer[key]) == content(state)
    assert content(alone(trainer, programs[4], 4, use(FUSED), epochs=2)[1]) == content(
        all_of_them[4]
    )


@pytest.mark.long
@pytest.mark.one_framework(framework="jax", optimizer="RMSprop")
@pytest.mark.parametrize(("architecture", "optimizer"), [(NOISY, "Adam"), (REGULARISED, "RMSprop")])
def test_side_by_side_is_the_same_steps(
    trainer: Peer, framework: str, architecture: Json, optimizer: str
) -> None:
    # A smaller batch draws other numbers where XLA does not compile it.
    trainer.load("d", buffers(*((147, 7) if architecture is NOISY else SIZES)))
    programs = rates(5, architecture, optimizer)
    result, states = fused(trainer, programs, use(FUSED), epochs=2)
    for (key, state), told in zip(states.items(), result["states"], strict=True):
        expected, single = alone(trainer, programs[key], key, use(ALIKE[framework]), epochs=2)
        visit = told["visits"][0]
        assert (visit["rows"], visit["batches"]) == (expected["rows"], expected["batches"])
        assert visit["loss"] == pytest.approx(expected["loss"], rel=1e-5)
        for left, right in zip(weights(state), weights(single), strict=True):
            np.testing.assert_allclose(left, right, atol=1e-4)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_one_by_one_is_as_in_jobs_of_their_own(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(20))
    programs, form = rates(3), use(FORMS[framework][0])
    result, states = fused(trainer, programs, form, visits=2)
    for key, told in zip(programs, result["states"], strict=True):
        expected, state = alone(trainer, programs[key], key, form, visits=2)
        assert content(state) == content(states[key])
        assert [visit["form"] for visit in told["visits"]] == [FORMS[framework][0]] * 2
        assert told["visits"][1]["loss"] == expected["loss"]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_visits_follow_one_another_to_the_bit(trainer: Peer) -> None:
    trainer.load("d", buffers(20))
    programs = rates(3)
    _, states = fused(trainer, programs, use(FUSED), visits=2)
    for key in programs:
        assert content(alone(trainer, programs[key], key, use(FUSED), visits=2)[1]) == content(
            states[key]
        )


@pytest.mark.parametrize("framework", ["torch"], indirect=True, scope="session")
def test_others_change_no_state_wherever_a_buffer_ends(trainer: Peer, framework: str) -> None:
    """Within a batch, with one, or before the first; for XLA each would be compiled anew."""
    trainer.load("d", buffers(20, 7, 6))
    chosen = [
        program(WIDER, loss="binary_crossentropy", learning_rate=rate)
        for rate in (0.001, 0.002, 0.004)
    ]
    programs = dict(enumerate(chosen))
    _, states = fused(trainer, programs, use(FUSED))
    for key in programs:
        assert content(alone(trainer, programs[key], key, use(FUSED))[1]) == content(states[key])


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(loss="binary_crossentropy")
@pytest.mark.one_framework(loss="binary_crossentropy")
@pytest.mark.parametrize("loss", ["categorical_crossentropy", "binary_crossentropy"])
def test_a_loss_that_is_no_number_is_that_of_one_state_alone(trainer: Peer, loss: str) -> None:
    trainer.load("d", buffers(20))
    programs = {
        key: program(optimizer="SGD", loss=loss, learning_rate=rate)
        for key, rate in enumerate(RATES)
    }
    result, states = fused(trainer, programs, use(FUSED))
    errors = [told["error"] for told in result["states"]]
    assert [error and error["sqlstate"] for error in errors] == [None, "22003", None]
    assert "the training loss became" in errors[1]["message"]
    del programs[1]
    others = fused(trainer, programs, use(FUSED))[1]
    assert {key: content(state) for key, state in states.items()} == {
        k: content(s) for k, s in others.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("framework", ["jax", "torch"], indirect=True, scope="session")
def test_side_by_side_is_timed_where_much_work_is_ahead_and_never_taken_for_one(
    trainer: Peer, framework: str
) -> None:
    trainer.load("d", buffers(130))
    chosen = {key: program(NOISY, "Nadam", learning_rate=0.01 * key) for key in range(1, 9)}
    result, _ = fused(trainer, chosen, ahead(10**9))
    told = [state["visits"][0] for state in result["states"]]
    timings = told[0]["timings"]
    assert FUSED in timings and FORMS[framework][0] in timings
    seconds = {
        form: timing["seconds_per_row"]
        for form, timing in timings.items()
        if timing["seconds_per_row"]
    }
    best = min(seconds, key=lambda form: seconds[form])
    assert [each["form"] for each in told] == [best] * 8
    assert trainer.train(chosen[1], NEW, batch_size=BATCH, forms=ahead(10**9))[0]["form"] != FUSED
    fast = {FUSED: {"seconds_per_row": 1e-9, "compile_seconds": 0.0}}
    assert (
        trainer.train(chosen[1], NEW, batch_size=9, forms=ahead(10**6, **fast))[0]["form"] != FUSED
    )


@pytest.mark.long
@pytest.mark.parametrize("framework", ["tensorflow"], indirect=True, scope="session")
def test_what_cannot_be_done_for_several_is_done_one_by_one(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(130))
    rows = layer("Reshape", "rows", target_shape=[2, 2])
    recurrent = sequential([4], rows, layer("LSTM", "lstm", units=3), dense(3, "out", "softmax"))
    result, _ = fused(trainer, rates(8, recurrent), ahead(10**9))
    visit = result["states"][0]["visits"][0]
    assert visit["form"] in FORMS[framework]
    assert visit["timings"][FUSED]["seconds_per_row"] is None
    convolving = sequential(
        [4], rows, layer("Conv1D", "conv", filters=3, kernel_size=2), layer("Flatten", "flat")
    )
    with pytest.raises(TrainerFailed, match=f"form '{FUSED}' is unknown"):
        trainer.train(program(convolving), NEW, forms=use(FUSED))


@pytest.mark.one_framework
def test_what_is_no_fusion_is_refused(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(8))
    visits = [{"dataset": "d", "order": place()}]
    asked: dict[str, Any] = {"fit": fit(), "visits": visits}
    with pytest.raises(TrainerFailed, match="takes no other state"):
        trainer.begin("train", program(), NEW, fit=fit(), order=place())
        trainer.begin("fusion", program(), NEW, **asked, beside=True)
    for job, message in (
        ({**asked, "visits": visits * 2}, "make 1 visit,"),
        ({**asked, "fit": fit(4)}, 'share "fit"'),
    ):
        trainer.begin("fusion", program(), NEW, **asked)
        with pytest.raises(TrainerFailed, match=message):
            trainer.begin("fusion", program(), NEW, **job, beside=True)
    trainer.begin("fusion", program(), NEW, **asked)
    with pytest.raises(TrainerFailed, match="of one program"):
        trainer.begin("fusion", program(optimizer="SGD"), NEW, **asked, beside=True)
    with pytest.raises(TrainerFailed, match="at least one"):
        trainer.begin("fusion", program(), NEW, **{**asked, "visits": []})
