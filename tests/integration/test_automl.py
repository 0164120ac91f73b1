"""AutoML as its users see it."""

from __future__ import annotations

from workbench import Workbench

GRID = """{'loss': ['categorical_crossentropy'], 'metrics': ['accuracy'], 'optimizer_params_list': [
    {'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log']}, {'optimizer': ['Adam'], 'lr': [0.001, 0.1, 'log']}]}"""
FIT = "{'batch_size': [4, 8], 'epochs': [1]}"


def test_first(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.rows("SELECT madlib_keras_automl('packed', 'found', 'models', 'mst', ARRAY[1], %s, %s)", GRID, FIT)
    print("\n".join(bench.messages()))
    for t in ("found_info", "found_summary", "mst", "mst_summary"):
        print(bench.rows(f"SELECT * FROM {t}"))
    print(
        bench.rows("select mst_key, length(model_weights) from found"),
        bench.rows("select run_id,name,status from cerebro.run"),
    )
    print(bench.rows("select relname from pg_class where relnamespace='cerebro_state'::regnamespace"))
    bench.rows(
        "SELECT madlib_automl('packed', 'found2', 'models', 'mst2', ARRAY[1], %s, %s, 'hyperopt', 'num_configs=5,num_iterations=2')",
        GRID,
        FIT,
    )
    print("\n".join(bench.messages()))
    for t in ("found2_info", "found2_summary", "mst2", "mst2_summary"):
        print(bench.rows(f"SELECT * FROM {t}"))
    assert 0
