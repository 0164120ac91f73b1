"""States of more than 1 GB, which no field of a table and no value of a driver can hold, and
weights above 512 MB.

The heaviest tests of all: about 20 s, 5 GB of memory and 4 GB of disk.
"""

from __future__ import annotations

import pytest
from models import dense, layer, sequential
from workbench import Workbench, compile_text

WORDS, WIDTH = 2_200_000, 128
WIDE = sequential(
    [4],
    layer("Embedding", "words", input_dim=WORDS, output_dim=WIDTH),
    layer("Flatten", "flat"),
    dense(3, "output", "softmax"),
)
TOKENS = (
    f"CREATE TABLE tokens AS SELECT label, ARRAY[id, {WORDS} - id, id * 1000, 7]::real[] AS x FROM "
    "points"
)


@pytest.mark.long
def test_a_state_above_one_gigabyte(bench: Workbench) -> None:
    bench.rows(TOKENS)
    bench.pack("packed_tokens", 2, source="tokens")
    bench.configure("wide", [compile_text("SGD(learning_rate=0.5)")], model=bench.model(WIDE))
    bench.messages()
    run = bench.fit("packed_tokens", "wide_model", "wide", 1, workers=2)
    assert any("model_weights is NULL" in message for message in bench.messages())
    sizes = bench.rows(
        "SELECT state_bytes FROM cerebro.visit WHERE run_id = %s AND status = 'completed'", run
    )
    assert [size > 4 * WORDS * WIDTH > 1 << 30 for (size,) in sizes] == [True, True]
    assert (
        bench.value(f"SELECT sum(octet_length(chunk)) FROM {bench.states('wide_model')}")
        == sizes[-1][0]
    )
    bench.rows("SELECT madlib_evaluate('wide_model', 'packed_tokens', 'found', FALSE, 1)")
    loss = bench.value("SELECT training_loss_final FROM wide_model_info")
    assert bench.value("SELECT loss FROM found") == pytest.approx(loss)
    bench.rows("DROP TABLE wide_model, wide_model_summary; SELECT cerebro.vacuum_runs()")


@pytest.fixture
def without_weights(bench: Workbench) -> str:
    """A model table as it is where the weights are too large for it."""
    bench.pack("packed", 2)
    bench.configure("adam", [compile_text("Adam()")])
    bench.fit("packed", "large", "adam", 2)
    bench.rows(
        "CREATE TABLE weights AS SELECT model_weights FROM large; UPDATE large SET model_weights "
        "= NULL"
    )
    return "large"


@pytest.mark.long
def test_weights_are_taken_from_the_state(bench: Workbench, without_weights: str) -> None:
    bench.rows(f"SELECT madlib_evaluate('{without_weights}', 'packed', 'evaluated', FALSE, 1)")
    loss = bench.value(f"SELECT training_loss_final FROM {without_weights}_info")
    assert bench.value("SELECT loss FROM evaluated") == pytest.approx(loss)
    bench.rows(
        f"SELECT madlib_predict('{without_weights}', 'points', 'id', 'x', 'predicted', mst_key => "
        "1)"
    )
    bench.rows("UPDATE large SET model_weights = (SELECT model_weights FROM weights)")
    bench.rows(
        f"SELECT madlib_predict('{without_weights}', 'points', 'id', 'x', 'expected', mst_key => 1)"
    )
    assert bench.rows("TABLE predicted EXCEPT TABLE expected") == []
    bench.rows("UPDATE large SET model_weights = NULL")
    bench.rows("UPDATE adam SET compile_params = %s", compile_text("SGD(learning_rate=0.0)"))
    bench.fit("packed", without_weights, "adam", 1, warm_start=True)
    assert bench.value("SELECT w.model_weights = l.model_weights FROM weights w, large l")
