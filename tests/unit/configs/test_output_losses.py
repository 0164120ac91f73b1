"""However losses and metrics of several outputs are written, the same is asked of each output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import canonicalize, parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.output_losses import (
    check_outputs,
    list_losses_by_output,
    list_metrics_by_output,
    name_metrics,
    order_metrics,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.run.request.ranking import choose_ranking

NAMES = ("a", "b", "c")
COLUMNS = ("x", "y", "z")
KERAS = {"mae": "mean_absolute_error", "acc": "accuracy", "AUC": "auc"}
metric_lists = st.lists(
    st.lists(st.sampled_from(sorted(KERAS)), max_size=2), min_size=2, max_size=3
)


def compiled(loss: object = "mse", **more: object) -> str:
    return ", ".join(
        [
            "optimizer='SGD'",
            f"loss={loss!r}",
            *(f"{name}={value!r}" for name, value in more.items()),
        ]
    )


@given(metric_lists, st.randoms(use_true_random=False))
def test_a_list_and_a_dict_in_any_order_say_the_same(
    lists: list[list[str]], random: object
) -> None:
    outputs = NAMES[: len(lists)]
    pairs = list(zip(outputs, lists, strict=True))
    random.shuffle(pairs)  # type: ignore[attr-defined]
    left_out = {name: names for name, names in pairs if names}
    wanted = [[KERAS[name] for name in names] for names in lists]
    for form in (lists, dict(pairs), left_out, [names or None for names in lists]):
        params = parse_compile_params(compiled(metrics=form))
        check_outputs(1, params, "a model", outputs)
        assert list_metrics_by_output(params.metrics, outputs) == wanted
        assert order_metrics(params.metrics_as_written, outputs) == [
            name for names in lists for name in names
        ]
        assert parse_compile_params(canonicalize(compiled(metrics=form))).metrics == params.metrics


@given(st.lists(st.sampled_from(sorted(KERAS)), max_size=3))
def test_all_forms_are_the_metrics_of_a_single_output(names: list[str]) -> None:
    wanted = [(KERAS[name], KERAS[name]) for name in names]
    for form in (names, [names], {"a": names}):
        params = parse_compile_params(compiled(metrics=form))
        check_outputs(1, params, "a model", NAMES[:1])
        assert list(name_metrics(params.metrics, NAMES[:1], COLUMNS[:1])) == wanted


@pytest.mark.parametrize(("form", "count"), [(["mae"], 3), (["mae", "acc"], 2)])
def test_one_metric_is_for_all_outputs_and_several_go_by_place(form: list[str], count: int) -> None:
    found = name_metrics(
        parse_compile_params(compiled(metrics=form)).metrics, NAMES[:count], COLUMNS[:count]
    )
    names = form if len(form) == count else form * count
    assert [m.logged_name for m in found] == [
        f"{c}_{KERAS[n]}" for c, n in zip(COLUMNS, names, strict=False)
    ]
    assert [m.metric for m in found] == [KERAS[name] for name in names]


@pytest.mark.parametrize("form", ["mse", ["mse", "mse"], {"b": "mse", "a": "mse"}])
def test_losses(form: object) -> None:
    params = parse_compile_params(compiled(form))
    check_outputs(1, params, "a model", NAMES[:2])
    assert list_losses_by_output(params, NAMES[:2]) == ["mean_squared_error"] * 2


@pytest.mark.parametrize("value", [[None, None], [], {}, {"a": None}, {1: "mse"}, [["mse"]]])
def test_what_is_no_loss_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        parse_compile_params(compiled(value))


@pytest.mark.parametrize(
    "more",
    [{"loss": ["mse"]}, {"loss": {"a": "mse"}}, {"loss": {"a": "mse", "c": "mse"}},
    {"loss_weights": [1]},
     {"loss_weights": {"a": 1}}, {"loss_weights": []}, {"metrics": ["mae"] * 3},
     {"metrics": [["mae"]]},
     {"metrics": {"c": ["mae"]}}, {"weighted_metrics": {"c": ["mae"]}}],
)  # fmt: skip
def test_what_does_not_fit_two_outputs_is_refused(more: dict[str, object]) -> None:
    params = parse_compile_params(compiled(**more))
    with pytest.raises(InvalidParameter, match="of mst_key 1 "):
        check_outputs(1, params, "a model", NAMES[:2])


@pytest.mark.parametrize(("metric", "descending"), [("acc", True), ("mae", False)])
def test_runs_are_ranked_by_the_metric_whatever_the_column_is_called(
    metric: str, descending: bool
) -> None:
    params = parse_compile_params(compiled(metrics=[metric]))
    found = name_metrics(params.metrics, NAMES[:2], ["error_rate", "loss"])
    told = choose_ranking(
        [Config(1, 1, "", "", params, parse_fit_params(""), found)], has_validation=False
    )
    assert told.metric == f"error_rate_{KERAS[metric]}"
    assert told.descending is descending
