"""The progress of a run that has begun, for tests of what shows it."""

from __future__ import annotations

from datetime import timedelta

from cerebro_db.records import Progress

RUNNING = Progress(
    run_id=3,
    name=None,
    owner="ann",
    status="running",
    epoch=1,
    epochs=2,
    visits_done=0,
    visits_total=40,
    configs_running=4,
    configs_failed=0,
    best_mst_key=None,
    best_value=None,
    elapsed=timedelta(seconds=1),
    eta=None,
    queue_position=None,
    phase="training",
    share=0.0,
)
