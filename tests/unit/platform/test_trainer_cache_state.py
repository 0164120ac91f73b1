"""A trainer is told and given only what it does not hold, and is never believed to hold what it
does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.platform.job import Job, StateSource, Sums
from cerebro_plpy.platform.trainer_cache_state import TrainerCacheState

PROGRAM = {"architecture": {"layers": [1, 2]}, "targets": []}
KEYS = st.sampled_from(["1/1", "1/2", None])
STATES = st.sampled_from(["1/1/0", "1/1/1", "1/2/1"])
SOURCES = st.sampled_from(["new", "weights", "chunks", "sealed"])
KINDS = st.sampled_from(["train", "evaluate", "time"])


@dataclass
class Trainer:
    """What a trainer really holds, after it was told what its memory makes of a job."""

    programs: set[str] = field(default_factory=set)
    state: str | None = None

    def do(self, told: dict[str, Any]) -> None:
        """Do a job, which must be possible."""
        assert "program" in told or told["program_key"] in self.programs
        source, key = told["state"]["source"], told["state"]["key"]
        assert source != "kept" or self.state == key
        self.programs |= {told["program_key"]} if "program_key" in told else set()
        self.state = None if told["job"] == "time" else told["result_key"]


@given(
    st.lists(
        st.tuples(KINDS, KEYS, SOURCES, STATES, STATES, st.sampled_from(["done", "failed", "gone"]))
    )
)
def test_it_is_never_believed_to_hold_what_it_does_not(events: list[tuple[Any, ...]]) -> None:
    memory, trainer = TrainerCacheState(), Trainer()
    for kind, key, source, before, after, outcome in events:
        job = Job(kind, PROGRAM, before if kind == "evaluate" else after, key)
        told = memory.job_spec(job, StateSource(source, before, 0), ())
        trainer.do(told)
        if outcome == "done":
            memory.finish_job(job)
        elif outcome == "failed":
            trainer.state = None
            memory.lose_state()
        else:
            trainer = Trainer()
            memory.forget()


@given(KEYS, STATES)
def test_what_it_holds_it_is_not_told_again(key: str | None, state: str) -> None:
    memory, job = TrainerCacheState(), Job("train", PROGRAM, state, key)
    assert (
        memory.job_spec(job, StateSource("chunks", "another", 0), ())["state"]["source"] == "chunks"
    )
    memory.finish_job(job)
    repeated = memory.job_spec(
        Job("evaluate", PROGRAM, state, key), StateSource("chunks", state, 0), ()
    )
    assert repeated["state"]["source"] == "kept"
    assert ("program" in repeated) == (key is None)
    assert memory.has_program(key) == (key is not None)


@given(KEYS)
def test_sums_have_a_program_unless_the_trainer_has_it(key: str | None) -> None:
    sums = Sums(PROGRAM, {}, {}, key)
    assert "program" in sums.to_json() and "program" not in sums.to_json(is_program_known=True)


def test_a_state_that_is_new_or_sealed_is_never_kept() -> None:
    memory = TrainerCacheState()
    memory.finish_job(Job("train", PROGRAM, "s"))
    for source in ("new", "sealed"):
        assert (
            memory.job_spec(Job("train", PROGRAM, "s"), StateSource(source, "s", 0), ())["state"][
                "source"
            ]
            == source
        )


def test_a_job_goes_over_the_wire_as_it_is_asked() -> None:
    fit = parse_fit_params("batch_size=5, epochs=3")
    order = {"seed": 1, "mst_key": 2, "epoch": 3, "segment_id": 4}
    forms: dict[str, Any] = {"use": None, "remaining_rows": 0, "known": {}}
    assert Job("train", PROGRAM, "r", "1/2", fit, order, forms).to_json() == {
        "job": "train",
        "program": PROGRAM,
        "program_key": "1/2",
        "result_key": "r",
        "fit": fit.to_json(),
        "order": order,
        "forms": forms,
    }
    assert Job("predict", PROGRAM, "r").to_json() == {
        "job": "predict",
        "program": PROGRAM,
        "result_key": "r",
    }
    assert Job("train", PROGRAM, "r", fit=fit).passes == 3
    assert Job("evaluate", PROGRAM, "r").passes == Job("time", PROGRAM, "r", fit=fit).passes == 1
