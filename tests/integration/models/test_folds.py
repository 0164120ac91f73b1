"""Folds of the rows of a small table: they calibrate members that have learned from all rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from workbench import Workbench

from cerebro_plpy.operations.refit.all_rows import cut_buffers

TIDES = """
    CREATE TABLE tides AS
    SELECT n AS id, n * 7919 % 101 AS moon, (ARRAY['north', 'south', NULL])[n % 3 + 1] AS coast,
           n % 7 AS week, (n * 7919 % 101 + n * 31 % 89) * 10.5 AS height,
           (n * 7919 % 101 + n * 31 % 89 > 90) <> (n % 5 = 0) AS flood
    FROM generate_series(1, 400) n;
    ALTER TABLE tides ADD PRIMARY KEY (id)"""
OPTIONS = (
    "columns => '* except id', configs => 4, epochs => 4, ensemble => 4, seed => 2, "
    "search => NULL, workers => 2"
)
LEARNED = "models => '{linear, boosting}', split => 'random 0.2'"
CALIBRATIONS = """
    SELECT calibration, holdout_calibration, margin FROM cerebro.version_log
    WHERE model = %s ORDER BY version DESC LIMIT 1"""
REFIT_RUN = "SELECT DISTINCT refit_run_id FROM cerebro.model_member WHERE model = %s"
MEMBERS = "SELECT mst_key FROM cerebro.model_member WHERE model = %s ORDER BY mst_key"
LIBRARY = """
    SELECT mst_key FROM cerebro.config_log
    WHERE run_id = %s AND group_value IS NULL ORDER BY mst_key"""
CONFIGS = "SELECT count(*) FROM cerebro.config_log WHERE run_id = %s"
STATES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'cerebro_state'::regnamespace AND relkind = 'r' AND relname LIKE %s"""
FOLDS = """
    SELECT value FROM cerebro.run_log, jsonb_each(spec #> '{train,groups}')
    WHERE run_id = %s"""
FIRST_EPOCH = """
    SELECT sum(rows) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND epoch = 1"""


def train(bench: Workbench, target: str, model: str, more: str = "") -> None:
    bench.rows(f"SELECT * FROM cerebro.train('tides', '{target}', '{model}', {OPTIONS}, {more})")


@pytest.fixture(scope="module")
def tides(bench: Workbench) -> Workbench:
    """The session of the owner of a regression and a classification of few rows."""
    bench.rows(TIDES)
    train(bench, "height", "heights", LEARNED)
    train(bench, "flood", "floods", f"{LEARNED}, metric => 'f1'")
    return bench


def list_buffers(side: dict[str, list[int]]) -> set[tuple[str, int]]:
    return {(segment, number) for segment, numbers in side.items() for number in numbers}


@pytest.mark.postgresql("there are no groups on Greenplum")
@pytest.mark.parametrize("model", ["heights", "floods"])
def test_each_row_is_in_one_fold(tides: Workbench, model: str) -> None:
    """A fold is predicted by members that were trained on all other rows, and on these alone."""
    run = tides.value(REFIT_RUN, model)
    members = {key for (key,) in tides.rows(MEMBERS, model)}
    library = {key for (key,) in tides.rows(LIBRARY, run)}
    assert members <= library
    folds = [fold for (fold,) in tides.rows(FOLDS, run)]
    left_out: list[tuple[str, int]] = []
    for sizes, training, validation, keys, *_ in folds:
        learned = list_buffers(training)
        assert len(keys) == len(library) and len(learned) == len(sizes)
        assert not learned & list_buffers(validation)
        assert {tides.value(FIRST_EPOCH, run, key) for key in keys} == {sum(sizes)}
        left_out += list_buffers(validation)
    assert len(folds) == 5 and sum(400 - sum(sizes) for sizes, *_ in folds) == 400
    assert len(left_out) == len({*left_out})
    assert {*left_out} == {*learned, *list_buffers(validation)}


@pytest.mark.postgresql("there are no groups on Greenplum")
@pytest.mark.parametrize("model", ["heights", "floods"])
def test_all_configurations_of_the_first_run_are_candidates(tides: Workbench, model: str) -> None:
    """The states of those that the folds have not chosen are dropped."""
    run = tides.value(REFIT_RUN, model)
    first_run = tides.value(
        "SELECT DISTINCT run_id FROM cerebro.model_member WHERE model = %s", model
    )
    assert tides.rows(LIBRARY, run) == tides.rows(LIBRARY, first_run)
    assert tides.value(CONFIGS, run) == 6 * tides.value(CONFIGS, first_run)
    states = {name for (name,) in tides.rows(STATES, f"r{run}\\_%")}
    assert states == {f"r{run}_m{key}" for (key,) in tides.rows(MEMBERS, model)}


@pytest.mark.postgresql("there are no groups on Greenplum")
def test_all_rows_calibrate_what_predicts(tides: Workbench) -> None:
    """The rows that were held back calibrate the states by which versions are compared."""
    calibration, holdout, margin = tides.row(CALIBRATIONS, "heights")
    assert calibration["errors"]["rows"] == 400
    shown = "SELECT validation_rows, margin FROM cerebro.model_version WHERE model = 'heights'"
    assert tides.row(shown) == (holdout["errors"]["rows"], margin)
    widths = "SELECT upper - lower FROM cerebro.predict('heights', 'tides')"
    assert [width for (width,) in tides.rows(widths)] == pytest.approx([2 * margin] * 400)
    calibration, holdout, _ = tides.row(CALIBRATIONS, "floods")
    assert holdout is not None and calibration.keys() & {"temperature", "threshold"}
    shown = "SELECT temperature, threshold FROM cerebro.model_version WHERE model = 'floods'"
    temperature, threshold = tides.row(shown)
    assert temperature == calibration.get("temperature", 1)
    assert threshold == ({"true": calibration["threshold"]} if "threshold" in calibration else None)


@pytest.mark.postgresql("there are no groups on Greenplum")
@pytest.mark.parametrize("model", ["heights", "floods"])
def test_both_calibrations_come_out_once_more(tides: Workbench, model: str) -> None:
    findings: dict[str, bool] = dict(tides.rows("SELECT what, ok FROM cerebro.verify(%s)", model))
    assert "calibration of all rows" in findings
    assert all(findings.values()), findings


WITHOUT = {
    "later": "split => 'last 0.2 by id'",
    "apart": "split => 'group week'",
    "once": "refit => 'none'",
}


@pytest.mark.parametrize("model", WITHOUT)
def test_other_versions_are_calibrated_by_the_rows_held_back(tides: Workbench, model: str) -> None:
    """Folds would be predicted from later rows, or from rows of their own group."""
    train(tides, "height", model, f"models => '{{linear}}', {WITHOUT[model]}")
    calibration, holdout, _ = tides.row(CALIBRATIONS, model)
    rows = "SELECT validation_rows FROM cerebro.model_version WHERE model = %s"
    assert (calibration["errors"]["rows"], holdout) == (tides.value(rows, model), None)


@pytest.mark.postgresql("it calls PostgreSQL's packer")
@pytest.mark.parametrize("parts", [2, 5, 7])
def test_buffers_are_cut_without_a_change_of_their_rows(bench: Workbench, parts: int) -> None:
    """The parts of a buffer have its bytes, in order, and differ by one row at most."""
    bench.rows("DROP TABLE IF EXISTS points, packed, packed_summary")
    bench.rows(
        "CREATE TABLE points AS SELECT n AS id, ARRAY[n, n * 7 % 5, n / 3.0] AS x, n % 3 AS y "
        "FROM generate_series(1, 103) n"
    )
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'packed', 'y', 'x', buffer_size => 41, "
        "n_segments => 2, seed => 3)"
    )
    whole = """
        SELECT buffer_id / {parts}, __dist_key__, string_agg(x, '' ORDER BY buffer_id),
               string_agg(y, '' ORDER BY buffer_id), sum(x_shape[1]), sum(y_shape[1]),
               min(x_shape[2:]), min(y_shape[2:])
        FROM packed GROUP BY 1, 2 ORDER BY 1"""
    before = bench.rows(whole.format(parts=1))
    session = SimpleNamespace(run=bench.rows)
    cut_buffers(session, "packed", ["x", "y"], parts)
    assert bench.rows(whole.format(parts=parts)) == before
    sizes = """
        SELECT max(x_shape[1]) - min(x_shape[1]), count(*) FROM packed
        GROUP BY buffer_id / %s"""
    assert {*bench.rows(sizes, parts)} <= {(0, parts), (1, parts)}
    wrong = "SELECT FROM packed WHERE octet_length(x) <> 4 * x_shape[1] * x_shape[2]"
    assert not bench.rows(wrong)
