"""Models that do not fit into the memory of their trainer: shards take turns, with the bits of one
that has room.

The limit is what a trainer takes for a small model, and some more; the large model's state is four
times what is more.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from models import dense, sequential
from workbench import Workbench, compile_text, setting

MORE_MB = 112
"""What the limit leaves a trainer beyond what it takes for a small model."""
LARGE = sequential(
    [4], *(dense(1540, f"hidden_{n}") for n in range(18)), dense(3, "output", "softmax")
)
SAME = """
SELECT a.model_weights = b.model_weights, i.training_loss_final = j.training_loss_final
FROM plain_model a, plain_model_info i, sharded_model b, sharded_model_info j"""


def fit(bench: Workbench, output: str, **named: object) -> int:
    return bench.fit("packed", output, "large", 1, workers=1, max_attempts=1, **named)


@pytest.fixture(scope="module")
def limit(bench: Workbench) -> Iterator[int]:
    """Bytes that a trainer may have, from now on; the large model was trained before."""
    bench.pack("packed", 1, buffer=48)
    bench.configure("small", [compile_text("Adam()")], ["batch_size=48"])
    bench.configure("large", [compile_text("Adam()")], ["batch_size=48"], bench.model(LARGE))
    run = bench.fit("packed", "small_model", "small", 2)
    taken = (
        bench.value("SELECT max(peak_memory_bytes) FROM cerebro.visit WHERE run_id = %s", run) >> 20
    )
    run = fit(bench, "plain_model", seed=1)
    form, size, peak = bench.row(
        "SELECT form, state_bytes, peak_memory_bytes FROM cerebro.visit WHERE run_id = %s", run
    )
    assert form == "graph_loop"
    assert peak > size > 4 * MORE_MB << 20
    with setting(bench, "trainer_memory_mb", str(taken + MORE_MB)):
        yield taken + MORE_MB << 20


@pytest.mark.long
def test_a_model_of_four_times_the_memory_trains(bench: Workbench, limit: int) -> None:
    bench.messages()
    run = fit(bench, "sharded_model", seed=1)
    assert any(
        "do not fit into trainer_memory_mb: they train in" in text for text in bench.messages()
    )
    assert bench.rows("SELECT status, reason FROM cerebro.config WHERE run_id = %s", run) == [
        ("completed", None)
    ]
    form, peak = bench.row(
        "SELECT form, peak_memory_bytes FROM cerebro.visit WHERE run_id = %s", run
    )
    assert form == "sharded"
    assert peak <= limit
    assert bench.row(SAME) == (True, True)
    plan = [
        line
        for (line,) in bench.rows("SELECT cerebro.plan_fit('packed', 'large', 1, workers => 1)")
    ]
    assert any("Form: sharded" in line for line in plan)
    assert sum("->  Shard  (layers=" in line for line in plan) >= 4
    bench.rows("SELECT madlib_evaluate('sharded_model', 'packed', 'evaluated', FALSE, 1)")
    assert bench.value("SELECT loss FROM evaluated") == bench.value(
        "SELECT training_loss_final FROM plain_model_info"
    )
    bench.rows(
        "SELECT madlib_predict('sharded_model', 'points', 'id', 'x', 'predicted', 'prob', mst_key "
        "=> 1)"
    )
    with setting(bench, "trainer_memory_mb", None):
        bench.rows(
            "SELECT madlib_predict('plain_model', 'points', 'id', 'x', 'expected', 'prob', "
            "mst_key => 1)"
        )
    assert bench.value("SELECT count(*) FROM predicted") > 0
    assert bench.rows("TABLE predicted EXCEPT TABLE expected") == []


@pytest.mark.long
def test_the_limit_ends_a_trainer_that_has_no_shards(bench: Workbench, limit: int) -> None:
    with pytest.raises(psycopg2.Error, match="the only configuration failed") as caught:
        fit(bench, "other_model", backend="jax")
    assert f"its limit is {limit >> 20} MB" in str(caught.value.diag.message_detail)
