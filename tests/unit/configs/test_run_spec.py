"""What a run is asked comes back from its log as it was, also from the logs of older versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy import limits
from cerebro_plpy.configs.prior_trials import PriorTrial
from cerebro_plpy.configs.run_spec import (
    DataSpec,
    FitArguments,
    Ranking,
    RunSpec,
    SearchSpec,
    SingleModel,
)
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.records import fields, replace
from cerebro_plpy.tables.outputs.class_columns import count_classes

TEXT = st.text(max_size=8)
NAMES = st.lists(TEXT, min_size=1, max_size=3).map(tuple)
NUMBERS = st.integers(0, 2**31 - 1)
EPOCHS = st.integers(1, limits.EPOCHS.maximum)
OPTIONAL = st.none() | TEXT
# The columns of one and two targets as version 0.2.0 logged them.
DATA = DataSpec(
    "packed", 96, ("y",), ("x",), ("text",), (("a", "b"),), ("text[]",), 1.0, (False,), ((2,),)
)
# Of version 0.1.0, shortened by what is not read.
OLD = {
    "name": "first", "seed": 864713864, "schedule": "longest", "segments": [0, 1],
    "use_gpus": False,
    "source": {"rows": 96, "table": "packed", "dependent": ["label"], "class_types": ["text[]"],
    "independent": ["x"],
               "class_values": [["high", "low"]], "float_target": False,
               "dependent_types": ["text"],
               "normalizing_const": 1.0},
    "validation": None, "tables": {"source": "public.packed", "model_output": "public.model"},
    "version": "0.1.0",
    "warm_start": False, "rank_metric": "accuracy", "rank_dataset": "training",
    "rank_descending": True,
    "num_iterations": 2, "evaluate_epochs": [2], "model_arch_table": "models",
    "metrics_compute_frequency": 2,
    "model_output_table": "model", "source_table": "packed",
}  # fmt: skip


def arguments() -> st.SearchStrategy[FitArguments]:
    """Arguments of any call."""
    single = st.none() | st.builds(
        SingleModel, OPTIONAL, st.none() | NUMBERS, OPTIONAL, OPTIONAL, OPTIONAL
    )
    kinds = {"str | None": TEXT, "int | None": NUMBERS, "bool | None": st.booleans()}
    values: dict[str, st.SearchStrategy[Any]] = {
        each.name: st.none() | kinds[str(each.type)]
        for each in fields(FitArguments)
        if each.name != "single"
    }
    return st.fixed_dictionaries({**values, "single": single}).map(
        lambda found: FitArguments(**found)
    )


DATA_SPECS = st.builds(
    DataSpec, TEXT, NUMBERS, NAMES, NAMES, NAMES, st.lists(st.none() | NAMES,
    max_size=3).map(tuple), NAMES,
    st.floats(0.1, 255), st.lists(st.booleans(), max_size=3).map(tuple),
    st.none() | st.lists(st.lists(NUMBERS, max_size=3).map(tuple), max_size=3).map(tuple),
)  # fmt: skip
SPECS = st.builds(
    RunSpec,
    arguments=arguments(),
    epochs=EPOCHS,
    frequency=EPOCHS,
    evaluate_epochs=st.lists(NUMBERS, max_size=3).map(tuple),
    seed=NUMBERS,
    schedule=TEXT,
    dtype_policy=OPTIONAL,
    model_arch_table=OPTIONAL,
    object_table=OPTIONAL,
    segments=st.lists(NUMBERS, max_size=3).map(tuple),
    source=DATA_SPECS,
    validation=st.none() | DATA_SPECS,
    ranking=st.builds(Ranking, TEXT, TEXT, st.booleans()),
    version=TEXT,
    functions=st.dictionaries(TEXT, TEXT, max_size=2),
    tables=st.dictionaries(TEXT, TEXT, max_size=2),
    search=st.none() | st.builds(SearchSpec, st.text(min_size=1), TEXT, st.none() | NUMBERS, TEXT),
    prior_trials=st.lists(
        st.builds(
            PriorTrial, NUMBERS, NUMBERS,
            st.fixed_dictionaries({"alternative": NUMBERS, "values": st.dictionaries(TEXT,
            st.floats(0, 1))}),
            st.none() | st.floats(0, 1),
        ),
        max_size=2,
    ).map(tuple),
    tree_period=st.integers(1, 9),
)  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [{"seed": "1"}, {"use_gpus": 1}, {"source_table": 1}, {"num_iterations": True}]
)
def test_arguments_have_the_types_of_the_call(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        FitArguments.from_json(wrong)
    with pytest.raises(DataCorrupted):
        RunSpec.from_json({**OLD, **wrong})


@pytest.mark.parametrize(
    "wrong", [[[1, 2]], [[1, 2, {}, 0.5]], [[1, 2, {"values": 3}, 0.5]], [{"run": 1}], 7]
)
def test_what_a_search_was_told_has_its_form(wrong: Any) -> None:
    assert RunSpec.from_json(OLD).prior_trials == ()
    with pytest.raises(DataCorrupted):
        RunSpec.from_json({**OLD, "earlier_trials": wrong})


@given(SPECS)
def test_a_spec_comes_back_from_its_log(spec: RunSpec) -> None:
    logged = json.dumps(spec.to_json())
    back = RunSpec.from_json(json.loads(logged))
    assert json.dumps(back.to_json()) == logged
    settled = {
        "num_iterations",
        "metrics_compute_frequency",
        "seed",
        "schedule",
        "dtype_policy",
        "warm_start",
    }
    for name in {each.name for each in fields(FitArguments)} - settled:
        assert getattr(back.arguments, name) == getattr(spec.arguments, name)
    assert replace(back, arguments=spec.arguments) == spec


def test_the_log_of_the_first_version_is_read() -> None:
    spec = RunSpec.from_json(OLD)
    assert (spec.source.float_targets, spec.source.target_shapes, spec.functions) == (
        (False,),
        None,
        {},
    )
    assert (spec.arguments.name, spec.max_attempts, spec.search, spec.arguments.single) == (
        "first",
        3,
        None,
        None,
    )
    assert (
        spec.source.list_differences(replace(spec.source, target_shapes=((2,),), table="other"))
        == []
    )


CHANGES: dict[str, dict[str, Any]] = {
    "no number": {"seed": "text"},
    "nothing": {"num_iterations": None},
    "no table": {"source": 3},
    "a table of which something is missing": {"source": {"table": "t"}},
    "no names": {"tables": "text"},
    "no list": {"segments": 3},
    "no text": {"rank_metric": {}},
    "more epochs than any run has": {"num_iterations": limits.EPOCHS.maximum + 1},
    "metrics after no epoch": {"metrics_compute_frequency": 0},
    "a sample of no buffers": {"tree_period": 0},
    "no model": {"one": {"no_argument": 1}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_log_that_was_changed_is_told(change: dict[str, Any]) -> None:
    with pytest.raises(DataCorrupted, match="does not say what the run was asked"):
        RunSpec.from_json({**OLD, **change})


def test_tables_differ_in_what_both_know() -> None:
    other = replace(DATA, table="other", rows=97, class_values=(("a", "c"),))
    assert DATA.list_differences(other) == ["class_values", "rows"]
    assert DATA.list_differences(replace(DATA, table="other")) == []


def test_classes_are_counted_for_predictions() -> None:
    two = replace(
        DATA,
        float_targets=(False, True),
        class_values=(("a", "b"), None),
        target_shapes=((2,), (1,)),
    )
    assert count_classes(two) == [2, None]
    assert count_classes(DATA) == [2]
    assert count_classes(replace(DATA, class_values=(None,))) == []
    assert count_classes(replace(DATA, float_targets=(True,), class_values=(None,))) is None
