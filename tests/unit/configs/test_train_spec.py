"""The part of a run's spec for `cerebro.train`, as the log stores it."""

from __future__ import annotations

import json

from cerebro_plpy.configs.train_spec import (
    BaseVersion,
    ComparedVersion,
    DataSplit,
    FinalMetric,
    Grouping,
    GroupLayout,
    SourceRecord,
    TrainSpec,
)

STORED = {
    *("model", "relation", "target", "target_type", "task", "columns", "types", "split"),
    *("split_seed", "bound", "metric", "budget", "recipe", "classes", "training_rows"),
    *("validation_rows", "templates", "params", "weight", "fingerprint", "ensemble", "share"),
    *("profile", "start", "newest", "hashes", "additions", "group_by", "groups", "block_rows"),
    *("counts", "measure", "space", "tried", "configs", "max_cpu", "max_cost", "identity"),
    *("reading", "compared", "final_metric"),
}
SPEC = TrainSpec(
    model="m",
    relation="public.t",
    target="y",
    target_type="text",
    task="classification",
    columns=None,
    types={"a": "number"},
    split=DataSplit("last 0.2 by day", 3, "2024-01-31", 80, 20, 0.5),
    metric="accuracy",
    budget=300.0,
    recipe={"features": []},
    classes=("no", "yes"),
    templates={1: "linear"},
    params={1: {"lr": 0.1}},
    source=SourceRecord(
        "f", (1, 2), ("id",), {"names": ["app.tenant"]}, {"rows": 80}, {"day": "2024-02-01"}, 2
    ),
    grouping=Grouping("store", {"a": GroupLayout((40, 40), {0: (1,)}, {0: ()}, (1,), (1, 2))}, 32),
    start=BaseVersion(1, 2, 3),
    counts=(40, 40),
    template_names=("linear",),
    compared=ComparedVersion(1, usable=True),
    final_metric=FinalMetric("f1", descending=True),
)


def test_the_log_has_one_flat_object_whatever_records_are_nested() -> None:
    assert SPEC.to_json().keys() == STORED


def test_what_is_logged_is_read_as_it_was() -> None:
    assert TrainSpec.from_json(json.loads(json.dumps(SPEC.to_json()))) == SPEC
