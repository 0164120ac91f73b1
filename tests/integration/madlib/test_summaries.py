"""What MADlib's own tests read in summaries and messages: names as given, padded classes, times
that grow, and the best value so far.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from models import dense, sequential
from workbench import Workbench, compile_text

PADDED = 5
ITERATIONS = 6
RATES = ("SGD(learning_rate=0.05)", "SGD(learning_rate=3.0)")
"""The second rate makes accuracies fall at times."""
SEARCH = (
    "SELECT madlib_keras_automl('padded', %s, %s, %s, ARRAY[1], $${'loss': "
    "['categorical_crossentropy'], 'metrics': [['accuracy']], 'optimizer': ['SGD'], 'lr': "
    "[0.01, 0.05]}$$, $${'batch_size': [8], 'epochs': [1]}$$, 'hyperopt', 'num_configs=2, "
    "num_iterations=1', random_state => 1)"
)


@pytest.fixture(scope="module", autouse=True)
def padded(bench: Workbench) -> None:
    """Three classes that are padded to five units."""
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'padded', 'label', 'x', 8, num_classes => "
        "ARRAY[%s], n_segments => 1, seed => 7)",
        PADDED,
    )
    bench.rows("CREATE SCHEMA lab")
    architecture = sequential([4], dense(8, "hidden"), dense(PADDED, "output", "softmax"))
    for table in ("nets", "lab.nets"):
        bench.rows("SELECT load_keras_model(%s, %s::json)", table, architecture)


def select(bench: Workbench, table: str, architectures: str, compiles: Sequence[str]) -> None:
    bench.rows(
        "SELECT load_model_selection_table(%s, %s, ARRAY[1], %s, ARRAY['batch_size=8'])",
        architectures,
        table,
        list(compiles),
    )


@pytest.fixture(scope="module")
def messages(bench: Workbench, padded: None) -> list[str]:
    """The messages of a fit of two configurations, of which iterations take milliseconds."""
    select(bench, "both", "nets", [compile_text(rate) for rate in RATES])
    bench.messages()
    bench.rows(
        "SELECT madlib_keras_fit_multiple_model('padded', 'fitted', 'both', %s, FALSE, "
        "'padded', 1)",
        ITERATIONS,
    )
    return bench.messages()


def test_classes_are_counted_with_their_padding(bench: Workbench, messages: list[str]) -> None:
    bench.rows(
        "SELECT madlib_keras_fit('padded', 'single', 'nets', 1, %s, 'batch_size=8', 1)",
        compile_text(),
    )
    for table in ("padded", "fitted", "single"):
        assert bench.value(f"SELECT num_classes FROM {table}_summary") == [PADDED]
    bench.rows("SELECT madlib_keras_predict('fitted', 'points', 'id', 'x', 'told', mst_key => 1)")
    assert bench.value("SELECT count(DISTINCT class_value) FROM told") == 3


def test_the_best_so_far_never_falls(messages: list[str]) -> None:
    """Each line is of the iteration that it follows, whatever was trained meanwhile."""
    bests = []
    for message in messages:
        found = re.search(r"in iteration (\d+):.*Best so far: mst_key=\d, validation \w+=(\S+)",
                          message, re.DOTALL)  # fmt: skip
        if found:
            shown = re.findall(r"Validation set.*", message, re.DOTALL)[0]
            values = [float(value) for value in re.findall(r"metric=([\d.]+)", shown)]
            bests.append((int(found[1]), float(found[2]), max(values)))
    assert [epoch for epoch, _, _ in bests] == [*range(1, ITERATIONS + 1)]
    assert all(later >= earlier for (_, earlier, _), (_, later, _) in pairwise(bests))
    for number, (_, best, _) in enumerate(bests, 1):
        assert best == max(newest for _, _, newest in bests[:number])


def test_iterations_of_milliseconds_take_time(bench: Workbench, messages: list[str]) -> None:
    times = re.findall(r"Time for training in iteration \d+: (\S+) sec", "\n".join(messages))
    assert len(times) == ITERATIONS and all(re.fullmatch(r"\d+\.\d+", text) for text in times)
    assert all(float(text) > 0 for text in times)
    for (elapsed,) in bench.rows("SELECT metrics_elapsed_time FROM fitted_info"):
        assert len(elapsed) == ITERATIONS and elapsed[0] > 0
        assert all(later > earlier for earlier, later in pairwise(elapsed))
    ended = (
        "SELECT bool_and(m.time <= r.ended_at) FROM cerebro.metric m JOIN cerebro.run r USING "
        "(run_id) WHERE run_id = (SELECT run_id FROM fitted_summary)"
    )
    assert bench.value(ended)


@pytest.mark.parametrize(
    ("architectures", "selection"),
    [("nets", "at_home"), ("nets", "lab.away"), ("public.nets", "lab.away"),
     ("nets", "pg_temp.fleeting"), ("LAB . nets", "far"), ("lab.nets", "pg_temp.far")],
)  # fmt: skip
def test_the_architecture_table_is_named_as_in_the_call(
    bench: Workbench, architectures: str, selection: str
) -> None:
    select(bench, selection, architectures, [compile_text()])
    bench.rows(
        f"SELECT madlib_keras_fit_multiple_model('padded', 'named', '{selection}', 1, FALSE)"
    )
    bench.rows(
        "SELECT madlib_keras_fit('padded', 'alone', %s, 1, %s, 'batch_size=8', 1)",
        architectures,
        compile_text(),
    )
    for table in (selection, "named", "alone"):
        found = bench.value(f"SELECT model_arch_table FROM {table}_summary")
        assert found == architectures, table
        bench.rows(f"DROP TABLE {table}, {table}_summary")
    bench.rows("DROP TABLE named_info")


@pytest.mark.parametrize("selection", ["lab.best", "pg_temp.best"])
def test_a_search_keeps_the_name_as_well(bench: Workbench, selection: str) -> None:
    bench.rows(SEARCH, "searched", "nets", selection)
    for table in ("searched", selection):
        assert bench.value(f"SELECT model_arch_table FROM {table}_summary") == "nets"
    assert bench.value("SELECT num_classes FROM searched_summary") == [PADDED]
    bench.rows(
        f"SELECT madlib_keras_fit_multiple_model('padded', 'again', '{selection}', 1, FALSE)"
    )
    for table in (selection, "searched", "again"):
        bench.rows(f"DROP TABLE {table}, {table}_summary")
    bench.rows("DROP TABLE searched_info, again_info")
