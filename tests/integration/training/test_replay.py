"""A replay repeats a run to the bit, whatever decides its speed and whatever is measured beside
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from models import NOISY
from timings import fastest, remember
from workbench import Workbench, compile_text

OPTIMIZERS = (
    "Adam(learning_rate=0.01)",
    "SGD(learning_rate=0.05,momentum=0.9)",
    "RMSprop(learning_rate=0.01)",
)


@pytest.fixture(scope="module")
def original(bench: Workbench) -> Iterator[int]:
    """A run of two workers in the order that measured times gave, over Dropout and
    BatchNormalization.
    """
    bench.pack("spread", 3)
    bench.configure("noisy", [compile_text(o) for o in OPTIMIZERS], model=bench.model(NOISY))
    yield bench.fit("spread", "original", "noisy", 2, workers=2)


def order(bench: Workbench, run: int) -> list[tuple[int, int, int]]:
    """Where each configuration was, visit by visit."""
    return bench.rows(
        "SELECT mst_key, visit_no, segment_id FROM cerebro.visit WHERE run_id = %s ORDER BY 1, 2",
        run,
    )


def test_a_replay_gives_the_same_bits(bench: Workbench, original: int) -> None:
    measured = {"validation_table": "spread", "metrics_compute_frequency": 1}
    run = bench.fit(
        "spread", "again", "noisy", 2, schedule="replay", replay_run=original, workers=1, **measured
    )
    assert order(bench, run) == order(bench, original)
    assert bench.weights("again") == bench.weights("original")


@pytest.mark.long
def test_fewer_iterations_repeat_the_beginning(bench: Workbench, original: int) -> None:
    run = bench.fit("spread", "begun", "noisy", 1, schedule="replay", replay_run=original)
    assert order(bench, run) == [visit for visit in order(bench, original) if visit[1] <= 3]


def refusal(
    bench: Workbench, code: str, iterations: int = 2, source: str = "spread", **named: object
) -> None:
    with pytest.raises(psycopg2.Error) as caught:
        bench.fit(source, "refused", "noisy", iterations, **named)
    assert caught.value.pgcode == code, caught.value
    assert caught.value.diag.message_hint


def test_what_cannot_be_repeated_is_refused(bench: Workbench, original: int) -> None:
    before = bench.last_run_id()
    bench.pack("other", 2)
    refusal(bench, "22004", schedule="replay")
    refusal(bench, "42704", schedule="replay", replay_run=original + 1000)
    refusal(bench, "22023", schedule="longest", replay_run=original)
    refusal(bench, "22023", iterations=3, schedule="replay", replay_run=original)
    refusal(bench, "22023", source="other", schedule="replay", replay_run=original)
    refusal(bench, "22023", schedule="replay", replay_run=original, seed=12345)
    assert bench.last_run_id() == before
    assert not bench.exists("refused")


def forms(bench: Workbench, run: int) -> list[tuple[int, int, str]]:
    """How each configuration trained, visit by visit."""
    return bench.rows(
        "SELECT mst_key, visit_no, form FROM cerebro.visit WHERE run_id = %s ORDER BY 1, 2", run
    )


@pytest.mark.long
def test_a_replay_trains_in_the_forms_of_the_run(
    bench: Workbench, shared_superuser: Workbench, original: int
) -> None:
    """Timings that are remembered decide the forms of a run; a replay takes them from its log."""
    threads = bench.value("SELECT DISTINCT threads FROM cerebro.visit WHERE run_id = %s", original)
    for optimizer, form in zip(OPTIMIZERS, ("xla_step", "xla_loop", "graph_loop"), strict=True):
        remember(bench, compile_text(optimizer), 8, threads, fastest(form))
    run = bench.fit("spread", "formed", "noisy", 2, seed=1)
    assert {form for _, _, form in forms(bench, run)} == {"graph_loop", "xla_step", "xla_loop"}
    shared_superuser.rows("DELETE FROM cerebro.form_timing")
    again = bench.fit("spread", "formed_again", "noisy", 2, schedule="replay", replay_run=run)
    assert forms(bench, again) == forms(bench, run)
    assert bench.weights("formed_again") == bench.weights("formed")
    assert bench.value("SELECT count(*) FROM cerebro.form_timing") == 0
