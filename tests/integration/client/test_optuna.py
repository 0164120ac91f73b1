"""Optuna, unmodified, reads runs as its own studies; its dashboard shows them, and changes
nothing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from dashboards import Dashboard, dashboard
from processes import eventually
from roles import another_role
from workbench import Workbench, compile_text

from cerebro_db.dashboard.optuna import storage

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import optuna

pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.postgresql("the views are the same"),
]
OTHER, MEMBER = "optuna_other", "optuna_member"
STATES = {"completed": "COMPLETE", "failed": "FAIL", "stopped": "PRUNED", "paused": "PRUNED"}


@pytest.fixture(scope="module")
def runs(bench: Workbench) -> dict[str, int]:
    """A run of MADlib's configurations, one of which fails; and one of templates, under a rule."""
    bench.pack("packed", 2)
    good = [compile_text(f"SGD(learning_rate={rate}, momentum=0.9)") for rate in (0.001, 0.3)]
    bench.configure(
        "configs",
        [*good, compile_text("Adam(learning_rate=1e30)"), compile_text()],
        ["batch_size=8"],
    )
    madlib = bench.fit(
        "packed", "outputs", "configs", 2, metrics_compute_frequency=1, name="by hand", workers=1
    )
    bench.rows("CREATE TABLE plain AS SELECT x[1] AS a, x[2] AS b, label FROM points")
    bench.rows(
        "SELECT cerebro.train('plain', 'label', models => '{linear}', configs => 4, epochs => 3,"
        " search => 'asha', seed => 3, ensemble => 1, workers => 1)"
    )
    return {"madlib": madlib, "templates": bench.newest_run()}


def study(bench: Workbench, run: int) -> optuna.Study:
    name = bench.value("SELECT study_name FROM cerebro_optuna.studies WHERE study_id = %s", run)
    return optuna.load_study(study_name=name, storage=storage(bench.url))


@pytest.mark.parametrize("kind", ["madlib", "templates"])
def test_trials_are_the_configurations(bench: Workbench, runs: dict[str, int], kind: str) -> None:
    trials = study(bench, runs[kind]).trials
    board = bench.rows(
        "SELECT mst_key, status, value FROM cerebro.leaderboard WHERE run_id = %s ORDER BY mst_key",
        runs[kind],
    )
    assert [trial.number for trial in trials] == list(range(len(board)))
    for trial, (key, status, value) in zip(trials, board, strict=True):
        assert trial.user_attrs["mst_key"] == key and trial.user_attrs["status"] == status
        assert trial.state.name == STATES[status]
        assert trial.value == (None if status == "failed" else value)
        curve = bench.rows(
            "SELECT m.epoch, m.value FROM cerebro.metric m JOIN cerebro.run r USING (run_id)"
            " WHERE (m.run_id, m.mst_key, m.dataset, m.name)"
            "     = (%s, %s, r.spec ->> 'rank_dataset', r.spec ->> 'rank_metric')",
            runs[kind],
            key,
        )
        assert trial.intermediate_values == pytest.approx(dict(curve), nan_ok=True)
        query = "SELECT name, value FROM cerebro.parameter WHERE (run_id, mst_key) = (%s, %s)"
        params: dict[str, Any] = dict(bench.rows(query, runs[kind], key))
        assert trial.params == {
            name: float(value) if type(value) is int and value > 2**53 else value
            for name, value in params.items()
        }


def test_settings_of_strings_are_parameters(bench: Workbench, runs: dict[str, int]) -> None:
    first, *_, last = study(bench, runs["madlib"]).trials
    assert first.params == {
        "model_id": 1, "optimizer": "SGD", "learning_rate": 0.001, "momentum": 0.9,
        "loss": "categorical_crossentropy",
        "metrics": "['accuracy']", "batch_size": 8,
    }  # fmt: skip
    assert "momentum" not in last.params


@pytest.mark.parametrize(
    "text, settings",
    [
        ("", {}),
        ("batch_size=8, epochs = 2,shuffle=False", {"batch_size": 8, "epochs": 2,
        "shuffle": False}),
        ('optimizer="Adam()",loss=\'mse\'', {"optimizer": "Adam", "loss": "mse"}),
        ("optimizer='SGD(lr=ExponentialDecay(initial_learning_rate=0.1,decay_steps=3),nesterov=True)'",
         {"optimizer": "SGD", "lr": "ExponentialDecay(initial_learning_rate=0.1,decay_steps=3)",
         "nesterov": True}),
        ("class_weight={0: 1, 1: 2.5},x=1e-3", {"class_weight": "{0: 1, 1: 2.5}", "x": 0.001}),
        ("callbacks=[EarlyStopping(patience=2, monitor='loss')]",
         {"callbacks": "[EarlyStopping(patience=2, monitor='loss')]"}),
    ],
)  # fmt: skip
def test_settings(superuser_bench: Workbench, text: str, settings: dict[str, Any]) -> None:
    assert (
        dict(superuser_bench.rows("SELECT name, value FROM cerebro_internal.settings_of(%s)", text))
        == settings
    )


@pytest.fixture(scope="module")
def superuser_bench(shared_superuser: Workbench) -> Workbench:
    return shared_superuser


def test_a_run_that_goes_on(bench: Workbench, runs: dict[str, int]) -> None:
    bench.configure("slow", [compile_text("SGD(learning_rate=0.01)")])
    watcher = bench.another()
    before = watcher.last_run_id()
    with bench.fitting(
        "packed", "going_on", "slow", 100_000, workers=1, metrics_compute_frequency=1
    ):
        eventually(lambda: watcher.newest_run() > before)
        run = watcher.newest_run()
        eventually(
            lambda: watcher.value("SELECT count(*) > 2 FROM cerebro.metric WHERE run_id = %s", run)
        )
        trials = study(watcher, run).trials
        assert {trial.state.name for trial in trials} == {"RUNNING"}
        assert any(trial.intermediate_values for trial in trials) and not any(
            trial.values for trial in trials
        )
        watcher.rows("SELECT cerebro.cancel(%s)", run)
    assert {trial.state.name for trial in study(watcher, run).trials} == {"PRUNED"}
    watcher.close()


def test_nobody_sees_the_runs_of_others(
    bench: Workbench, shared_superuser: Workbench, runs: dict[str, int]
) -> None:
    views = (
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_optuna'::regnamespace "
        "AND relkind = 'v'"
    )
    empty = {"trial_system_attributes", "trial_heartbeats"}
    constant = {"version_info", "alembic_version"}
    with another_role(bench, shared_superuser, OTHER) as other:
        for (view,) in bench.rows(views):
            count = f'SELECT count(*) > 0 FROM cerebro_optuna."{view}"'
            assert bench.value(count) is (view not in empty), view
            assert other.value(count) is (view in constant), view
        assert optuna.get_all_study_names(storage(other.url)) == []


def test_a_member_of_the_role_sees_its_runs(
    bench: Workbench, shared_superuser: Workbench, runs: dict[str, int]
) -> None:
    """The role that looks was granted nothing but that of the owner."""
    owner = bench.value("SELECT current_user::text")
    with another_role(bench, shared_superuser, MEMBER, granted=False) as member:
        shared_superuser.rows(f'GRANT "{owner}" TO "{MEMBER}"')
        for run in runs.values():
            assert study(member, run).trials == study(bench, run).trials


@pytest.fixture(scope="module")
def optunas(bench: Workbench, runs: dict[str, int]) -> Iterator[Dashboard]:
    """Optuna's dashboard, in a process of its own."""
    with dashboard(bench.url, "--optuna") as started:
        yield started


def test_the_dashboard_shows_them(optunas: Dashboard, runs: dict[str, int]) -> None:
    def read(path: str) -> Any:
        return json.loads(optunas.ask(f"/api/studies{path}").text)

    listed = {each["study_id"]: each["study_name"] for each in read("")["study_summaries"]}
    assert listed[runs["madlib"]] == f"by hand #{runs['madlib']}"
    shown = read(f"/{runs['templates']}?after=0")
    assert len(shown["trials"]) == 4 and shown["best_trials"]
    assert "param_importances" in read(
        f"/{runs['templates']}/param_importances?evaluator=ped_anova"
    )


def test_the_dashboard_changes_nothing(
    optunas: Dashboard, bench: Workbench, runs: dict[str, int]
) -> None:
    assert optunas.ask(f"/api/studies/{runs['madlib']}", method="DELETE").status == 405
    assert bench.value("SELECT count(*) FROM cerebro.run WHERE run_id = %s", runs["madlib"]) == 1


def test_its_pages_stand_behind_the_same_gate(optunas: Dashboard) -> None:
    for path in ("/", "/dashboard", "/api/studies", "/static/bundle.js"):
        assert optunas.ask(path, cookie=None).status == 403
        assert optunas.ask(path, host="example.org").status == 421
    page = optunas.ask("/dashboard")
    assert (
        page.status == 200 and "frame-ancestors 'none'" in page.headers["content-security-policy"]
    )
    assert optunas.ask("/api/studies", {"study_name": "mine"}).status == 405
