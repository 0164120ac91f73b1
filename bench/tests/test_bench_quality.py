"""Tests of `make bench-tables` without its contenders: rows, files, comparisons and the report."""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from trials import trials

from bench.quality import lightgbm_fit, pipelines
from bench.quality.comparison import ERRORS, compute_mean_ranks, measure_gap
from bench.quality.contenders import (
    BEST,
    BOOSTING,
    FLAML,
    KEYS,
    LIGHTGBM,
    MEDIUM,
    MLP,
    OURS,
    list_contenders,
)
from bench.quality.frames import read_frame, write_frame
from bench.quality.holdout import hold_out, read_train_rows, select_inputs
from bench.quality.measurement import Example, Settings, measure
from bench.quality.ours import Visit, measure_training_share, write_split
from bench.quality.report import report
from bench.quality.results import Result, append_result, read_results
from bench.quality.splits import split_rows
from bench.quality.task import (
    CLASSIFICATION,
    GROUP,
    HELD_OUT,
    RANDOM_ROWS,
    REGRESSION,
    TIME,
    Answer,
    Task,
    Validation,
    read_answer,
    read_task,
    write_answer,
    write_task,
)
from bench.real_tables import TABLES, TWENTY
from bench.rivals import RIVALS, score

BY_TIME = Validation(TIME, "at")
BY_GROUP = Validation(GROUP, "who")
validations = st.sampled_from([RANDOM_ROWS, BY_TIME, BY_GROUP])
scores = st.lists(st.floats(-10, 10), min_size=2, max_size=5)
RESULT = Result(
    table="wine",
    contender=OURS,
    seed=1,
    seconds=30,
    rows=178,
    train_rows=134,
    test_rows=44,
    score=0.9,
    train_seconds=33.0,
    predict_seconds=0.5,
    cores=2,
    more={"training_share": 0.8},
)
TASK = Task(
    table="wine",
    contender=OURS,
    target="y",
    kind=REGRESSION,
    seconds=30,
    seed=1,
    url="",
    train="train.npz",
    test="test.npz",
)


@st.composite
def frames(draw: st.DrawFn) -> pandas.DataFrame:
    """Rows with times, some of them equal or missing, and groups."""
    rows = draw(st.integers(20, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    at = pandas.Series(rng.integers(0, rows, size=rows).astype(float))
    at[rng.random(rows) < 0.1] = np.nan
    who = pandas.Series([f"g{number}" for number in rng.integers(0, 8, size=rows)], dtype=object)
    return pandas.DataFrame({"at": at, "who": who, "y": rng.normal(size=rows)})


@given(frames(), validations, st.integers(0, 99))
@trials(50)
def test_no_row_trains_and_tests(
    frame: pandas.DataFrame, validation: Validation, seed: int
) -> None:
    """Test rows are later than all training rows with a time, or of other groups."""
    split = split_rows(frame, validation, seed)
    again = split_rows(frame, validation, seed)
    assert (split.train == again.train).all() and (split.test == again.test).all()
    assert not (split.train & split.test).any()
    train, test = frame[split.train], frame[split.test]
    if validation.kind == TIME:
        assert len(test) > 0
        assert train["at"].max() < test["at"].min()
    elif validation.kind == GROUP:
        assert not {*train["who"]} & {*test["who"]}
        assert (split.train | split.test).all()
    else:
        assert (split.train | split.test).all()


def test_another_seed_tests_other_rows() -> None:
    frame = pandas.DataFrame({"at": range(200), "who": [f"g{n}" for n in range(200)]})
    for validation in (RANDOM_ROWS, BY_TIME, BY_GROUP):
        first, second = (split_rows(frame, validation, seed).test for seed in (1, 2))
        assert (first != second).any()
        assert 0.1 < first.mean() < 0.4


@given(frames(), validations, st.integers(0, 99))
@trials(50)
def test_contenders_hold_rows_back_as_rows_to_come_differ(
    frame: pandas.DataFrame, validation: Validation, seed: int
) -> None:
    held = hold_out(frame, None, replace(TASK, validation=validation, seed=seed))
    assert 0 < held.sum() < len(frame)
    if validation.kind == TIME:
        assert frame["at"][~held].max() < frame["at"][held].min()
    elif validation.kind == GROUP:
        assert not {*frame["who"][~held]} & {*frame["who"][held]}
    else:
        assert held.mean() == pytest.approx(HELD_OUT, abs=0.05)


def test_classes_keep_their_shares_in_the_rows_held_back() -> None:
    classes = np.array(["a"] * 80 + ["b"] * 20)
    frame = pandas.DataFrame({"y": classes})
    held = hold_out(frame, classes, replace(TASK, kind=CLASSIFICATION))
    assert (classes[held] == "b").sum() == 4


def test_a_column_of_groups_is_no_input(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"who": [*"aabbccddee"], "x": range(10), "y": np.arange(10.0)})
    task = replace(TASK, train=str(tmp_path / "train.npz"), validation=BY_GROUP)
    write_frame(frame, Path(task.train))
    rows = read_train_rows(task)
    assert [*rows.inputs] == ["x"] and rows.targets.tolist() == frame["y"].tolist()
    assert [*select_inputs(task, frame)] == ["x", "y"]
    assert [*select_inputs(replace(task, validation=BY_TIME), frame)] == ["who", "x", "y"]


texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=5)


@given(st.lists(st.tuples(st.integers(), texts, st.floats()), min_size=1, max_size=9))
@trials(50)
def test_rows_survive_the_file(rows: list[tuple[int, str | None, float]]) -> None:
    frame = pandas.DataFrame(
        {
            "when": pandas.to_datetime([number % 10**9 for number, _, _ in rows], unit="s"),
            "text": pandas.Series([text for _, text, _ in rows], dtype=object),
            "value": [value for _, _, value in rows],
            "number": [number % 2**31 for number, _, _ in rows],
            "array": [np.full((2, 3), number % 7) for number, _, _ in rows],
        }
    )
    read = _write_and_read(frame)
    assert [*read] == [*frame]
    assert read["when"].tolist() == frame["when"].tolist()
    assert read["text"].dtype == object
    assert read["text"].isna().tolist() == frame["text"].isna().tolist()
    assert [*read["text"].dropna()] == [*frame["text"].dropna()]
    assert read["value"].to_numpy().tobytes() == frame["value"].to_numpy().tobytes()
    assert read["number"].tolist() == frame["number"].tolist()
    assert all((a == b).all() for a, b in zip(read["array"], frame["array"], strict=True))


def _write_and_read(frame: pandas.DataFrame) -> pandas.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        write_frame(frame, Path(folder) / "rows.npz")
        return read_frame(Path(folder) / "rows.npz")


def test_a_task_and_its_answer_survive_the_way(tmp_path: Path) -> None:
    task = replace(TASK, validation=BY_GROUP, types={"x": "category"})
    write_task(task, tmp_path / "task")
    assert read_task(tmp_path / "task") == task
    answer = Answer(predictions=["a", "b"], train_seconds=1.5, predict_seconds=0.5, more={"n": 1})
    write_answer(answer, tmp_path / "answer")
    assert read_answer(tmp_path / "answer") == answer


TRAINS = {LIGHTGBM: lightgbm_fit.train, BOOSTING: pipelines.train, MLP: pipelines.train}


@pytest.mark.parametrize(
    "contender, classes", [(LIGHTGBM, 0), (LIGHTGBM, 2), (LIGHTGBM, 3), (BOOSTING, 0), (MLP, 3)]
)
def test_a_peer_learns_from_categories_dates_and_missing_values(
    contender: str, classes: int, tmp_path: Path
) -> None:
    """A level that no training row has is predicted, too."""
    rng = np.random.default_rng(classes)
    level = rng.integers(0, 4, size=240)
    x = rng.normal(size=240)
    at = pandas.to_datetime(rng.integers(0, 10**9, size=240), unit="s")
    signal = level + np.where(np.isnan(x), 0, x)
    target: list[object] = [*signal]
    if classes:
        quantiles = np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1])
        target = [f"class {number}" for number in np.searchsorted(quantiles, signal)]
    x[::10] = np.nan
    names = pandas.Series([f"level {number}" for number in level], dtype=object)
    names[200] = "unseen"
    names[5] = np.nan
    frame = pandas.DataFrame({"x": x, "name": names, "at": at, "y": target})
    kind = CLASSIFICATION if classes else REGRESSION
    task = replace(
        TASK, contender=contender, kind=kind, seconds=0, train=str(tmp_path / "train.npz")
    )
    write_frame(frame[:200], Path(task.train))
    test = frame[200:].reset_index(drop=True)
    with threadpool_limits(1):  # other tests have the other cores
        predicted = TRAINS[contender](task)(test.drop(columns=["y"]))
    truth = test["y"].to_numpy()
    constant = np.full(len(truth), statistics.mode(target) if classes else np.mean(signal))
    assert len(predicted) == len(truth)
    assert score(kind, truth, predicted) > score(kind, truth, constant)


def test_ours_gets_the_split_that_a_user_would_type() -> None:
    assert write_split(RANDOM_ROWS) is None
    assert write_split(Validation(TIME, "sold on")) == 'last 0.2 by "sold on"'
    assert write_split(Validation(GROUP, "shop")) == 'group "shop"'


@given(
    st.lists(st.tuples(st.integers(1, 2), st.floats(0, 9), st.floats(0, 3)), min_size=1, max_size=8)
)
@trials(50)
def test_the_training_share_counts_no_moment_of_a_worker_twice(
    spans: list[tuple[int, float, float]],
) -> None:
    visits = [Visit(worker, began, began + length) for worker, began, length in spans]
    share = measure_training_share(visits, 2, 12)
    instants = np.linspace(0, 12, 4001)
    covered = sum(
        np.any([(v.began <= instants) & (instants < v.ended) for v in visits if v.worker == w], 0)
        for w in (1, 2)
        if any(v.worker == w for v in visits)
    )
    assert share == pytest.approx(float(np.mean(covered)) / 2, abs=0.01)


def test_a_run_without_visits_trains_in_no_share() -> None:
    assert measure_training_share([], 0, 30) == 0


@given(scores, st.floats(0.1, 1))
@trials(50)
def test_what_lies_within_two_standard_errors_is_noise(ours: list[float], error: float) -> None:
    spread = [error if number % 2 else -error for number in range(len(ours))]
    middle = statistics.mean(spread)
    deviation = statistics.stdev(spread) / len(spread) ** 0.5
    for gap, is_clear in ((1.5 * ERRORS * deviation, True), (0.5 * ERRORS * deviation, False)):
        rival = [o + gap + s - middle for o, s in zip(ours, spread, strict=True)]
        table = {OURS: dict(enumerate(ours)), FLAML: dict(enumerate(rival))}
        found = measure_gap(table, OURS, FLAML)
        opposite = measure_gap(table, FLAML, OURS)
        assert found is not None and opposite is not None
        assert found.is_below and not opposite.is_below
        assert found.is_below_beyond_noise == opposite.is_above_beyond_noise == is_clear


def test_scores_are_compared_over_common_seeds_alone() -> None:
    table = {OURS: {1: 0.5, 2: 0.5}, FLAML: {2: 0.25, 3: 0.9}}
    gap = measure_gap(table, OURS, FLAML)
    assert gap is not None and gap.differences == [-0.25]
    assert gap.error is None and not gap.is_below_beyond_noise and not gap.is_above_beyond_noise
    assert measure_gap(table, OURS, MLP) is None


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=4))
@trials(50)
def test_ranks_have_the_same_sum_on_every_table(values: list[list[int]]) -> None:
    names = ["a", "b", "c"]
    tables = [
        {name: {1: float(value)} for name, value in zip(names, row, strict=True)} for row in values
    ]
    ranks, count = compute_mean_ranks([*tables, {"a": {1: 1.0}}], names)
    assert count == len(values)
    assert sum(ranks.values()) == pytest.approx(6)
    assert all(1 <= rank <= 3 for rank in ranks.values())
    if all(row[0] > max(row[1:]) for row in values):
        assert ranks["a"] == 1


def test_a_finished_line_is_read_again_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert read_results(path) == {}
    results = [RESULT, replace(RESULT, seed=2), replace(RESULT, busy=2), replace(RESULT, score=0.5)]
    for result in results:
        append_result(path, result)
    with path.open("a") as file:
        file.write('{"table": "wi')
    read = read_results(path)
    assert [*read.values()] == [results[3], results[1], results[2]]
    assert all(read[result.key].key == result.key for result in results)


def test_a_finished_attempt_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    settings = Settings(tables=["wine"], contenders=[OURS, MEDIUM], seeds=1, seconds=30)
    for name in settings.contenders:
        append_result(path, replace(RESULT, contender=name))
    before = path.read_bytes()
    measure(settings, path, lambda line: pytest.fail(line))
    assert path.read_bytes() == before


def test_predictions_are_scored_in_the_type_of_the_targets() -> None:
    frame = pandas.DataFrame({"target": pandas.Series(["1", "0", "1"], dtype=object)})
    example = Example(name="wine", seed=1, rows=3, train=frame, test=frame)
    assert example.score([1, 0, 0]) == pytest.approx(2 / 3)
    assert example.score(["1", "0", "1"]) == 1
    assert example.score_constant() == pytest.approx(2 / 3)
    numbers = pandas.DataFrame({"wages": [1.0, 3.0]})
    example = Example(name="slid", seed=1, rows=2, train=numbers, test=numbers)
    assert example.score(["1", "5"]) == pytest.approx(-(2**0.5))
    assert example.score_constant() == pytest.approx(-1)


def test_twenty_tables_have_all_tabular_contenders() -> None:
    assert len({*TWENTY}) == 20 and {*TWENTY} < {*TABLES}
    kinds = [TABLES[name].validation.kind for name in TWENTY]
    assert (kinds.count(TIME), kinds.count(GROUP)) == (5, 2)
    names = [*KEYS.values()]
    assert all(TABLES[name].rivals is RIVALS for name in TWENTY)
    assert [one.name for one in list_contenders(TABLES["wine"], names)] == names
    pipelines = list_contenders(TABLES["images"], names)
    assert [one.name for one in pipelines] == [OURS, "support vectors"]


def results_of(contender: str, values: list[float], table: str = "wine") -> list[Result]:
    return [
        replace(RESULT, table=table, contender=contender, score=value, seed=seed)
        for seed, value in enumerate(values, 1)
    ]


def test_the_report_counts_tables_by_noise_and_by_means() -> None:
    text = report(
        [
            *results_of(OURS, [0.8, 0.9]),
            *results_of(BOOSTING, [0.84, 0.87]),
            *results_of(LIGHTGBM, [0.7, 0.8]),
            *results_of(OURS, [-2.0, -2.1], "slid"),
            *results_of(BOOSTING, [-1.0, -1.1], "slid"),
        ]
    )
    assert (
        "| `wine` | 178 | random | accuracy | 0.85 ± 0.05 | 0.75 ± 0.05 | 0.855 ± 0.015 |" in text
    )
    assert "| `slid` | 178 | random | RMSE | 2.05 ± 0.05 | - | 1.05 ± 0.05 |" in text
    assert "| boosting | 2 | 1 of 2 | 0 of 2 | 0 | `slid` | 33.0, 33.0 |" in text
    assert "| LightGBM | 1 | 1 of 1 | 1 of 1 | 1 |  | 33.0, 33.0 |" in text
    assert "Mean ranks" not in text


def test_a_single_seed_is_compared_by_its_means_alone() -> None:
    text = report([*results_of(OURS, [0.8]), *results_of(BOOSTING, [0.9])])
    assert "| boosting | 1 | - | 0 of 1 | - | - | 33.0, 33.0 |" in text


def test_the_report_has_ranks_times_and_missing_models() -> None:
    ranked = (OURS, MEDIUM, FLAML, BOOSTING, MLP)
    values = [0.9, 0.95, 0.85, 0.8, 0.7]
    groups = [results_of(name, [value]) for name, value in zip(ranked, values, strict=True)]
    results = [result for group in groups for result in group]
    text = report([*results, *results_of(BEST, [0.99])])
    assert (
        "Mean ranks over 1 tables: AutoGluon medium 1.00, ours 2.00, FLAML 3.00, boosting 4.00, "
        "MLP 5.00." in text
    )
    assert "| `wine` | 134 | 33.0 | 10.0 % | 0.80 | 0.50 |" in text
    missing = replace(RESULT, reason="no rows", train_seconds=None, predict_seconds=None, more={})
    text = report([missing])
    assert "0.9*" in text and "the best constant has been scored" in text
    assert "| `wine` | 134 | - | - | - | - |" in text


def test_budgets_and_busy_machines_are_reported_apart() -> None:
    text = report([replace(RESULT, seconds=300), RESULT, replace(RESULT, busy=2)])
    titles = [line for line in text.splitlines() if line.startswith("**")]
    assert [title.split(":")[0] for title in titles] == [
        "**30 s for each**",
        "**30 s for each** beside 2 busy processes",
        "**300 s for each**",
    ]
    assert report([]) == "Nothing has been measured yet."


def test_images_have_a_table_of_their_own() -> None:
    text = report(
        [
            *results_of(OURS, [0.8]),
            *results_of(OURS, [0.98], "images"),
            *results_of("support vectors", [0.99], "images"),
        ]
    )
    mixed, special = text.split("| table | rows | test rows | measure | ours | pipeline")
    assert "`wine`" in mixed and "`images`" not in mixed
    assert "| `images` | 178 | random | accuracy | 0.98 | support vectors | 0.99 | no |" in special


def test_lines_of_the_file_are_json(tmp_path: Path) -> None:
    append_result(tmp_path / "results.jsonl", RESULT)
    (line,) = (tmp_path / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["table"] == "wine"
