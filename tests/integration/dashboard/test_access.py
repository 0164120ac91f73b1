"""The dashboard answers the one who has started it, and nobody else; what it is sent is data."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from dashboards import Dashboard, dashboard
from page_requests import (
    HARDEST,
    Target,
    behind_gate,
    check_acts,
    check_any,
    check_each_value,
    paths_of,
)
from roles import another_role
from workbench import Workbench, compile_text

from cerebro_db.dashboard import optuna, queries
from cerebro_db.dashboard.application import make_application
from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.queries import Reader, make_engine
from cerebro_db.dashboard.run_updates import RunFeed
from cerebro_db.dashboard.web_server import Pages
from cerebro_plpy.run.request.run_request import BUDGET_OVER

pytestmark = pytest.mark.postgresql("who is answered does not depend on the platform")
FIT_WORKERS = 1
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[2J"
PAGES = (
    "/",
    "/runs",
    "/train",
    "/models",
    "/static/style.css",
    "/runs/1000000",
    "/nowhere",
    "/train/columns?source=",
)


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    """A run with a hostile name."""
    bench.pack("packed", 1)
    bench.configure("configs", [compile_text()], ["batch_size=8"])
    return bench.fit("packed", "outputs", "configs", 1, metrics_compute_frequency=1, name=HOSTILE)


@pytest.fixture(scope="module")
def page(bench: Workbench, run: int) -> Iterator[Dashboard]:
    with dashboard(bench.url) as found:
        yield found


def test_nobody_without_a_session(page: Dashboard) -> None:
    name, _, session = page.cookie.partition("=")
    for path, cookie in product(
        PAGES, (None, "", page.cookie[:-1], page.cookie + "x", f"other={session}", f"{name}=")
    ):
        answer = page.ask(path, cookie=cookie)
        assert (answer.status, "cerebro-db dashboard" in answer.text) == (403, True), (path, cookie)


def test_the_code_of_the_address_works_once(page: Dashboard) -> None:
    assert page.ask("/").status == 200
    used = page.entrance.removeprefix(page.root)
    assert page.ask(used, cookie=None).status == 403
    assert used.partition("code=")[2] not in page.cookie


def test_no_other_name_leads_here(page: Dashboard) -> None:
    for host in (
        "example.org",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.example.org:" + page.root.rpartition(":")[2],
    ):
        assert page.ask("/", host=host).status == 421
    assert page.ask("/", host="localhost:" + page.root.rpartition(":")[2]).status == 200


def test_a_header_does_not_say_who_sends_a_request(page: Dashboard) -> None:
    """The session belongs to the user of the socket, whatever a proxy's header claims."""
    assert page.ask("/", x_forwarded_for="10.0.0.1").status == 200


@pytest.mark.parametrize(
    "path", ["/train", "/train/plan", "/model/predict", "/model/deploy", "/runs/{run}/acts"]
)
def test_what_another_page_sends_is_refused(page: Dashboard, run: int, path: str) -> None:
    form = {
        "action": "cancel",
        "source": "points",
        "target": "label",
        "budget": "1",
        "search": "auto",
    }
    assert page.ask(path.format(run=run), form, hx_request=None).status == 403
    assert page.ask(path.format(run=run), form, origin="http://example.org").status == 403
    assert page.ask(path.format(run=run), form, origin="http://127.0.0.1:1").status == 403


@pytest.mark.parametrize("path", [*PAGES, "/runs/{run}", "/runs/{run}/board", "/runs/{run}/axes"])
def test_nothing_of_a_page_runs_or_is_framed_or_kept_elsewhere(
    page: Dashboard, run: int, path: str
) -> None:
    headers = page.ask(path.format(run=run)).headers
    policy = headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    )
    assert "frame-ancestors 'none'" in policy
    assert (
        headers["x-content-type-options"] == "nosniff"
        and headers["referrer-policy"] == "no-referrer"
    )
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/", "/runs/{run}", "/runs/{run}/progress", "/runs/{run}/board", "/train", "/models"]
)
def test_texts_of_users_are_texts(page: Dashboard, bench: Workbench, run: int, path: str) -> None:
    text = page.ask(path.format(run=run)).text
    assert "<img src=x" not in text and "style=" not in text and "<script>" not in text
    if path in ("/", "/runs/{run}"):
        assert "&lt;img src=x" in text


def test_what_is_not_there(page: Dashboard) -> None:
    for path in ("/runs/1000000", "/runs/1000000/progress", "/model?owner=a&model=b"):
        answer = page.ask(path)
        assert (
            answer.status == 404
            and "does not exist" in answer.text
            and "Traceback" not in answer.text
        )


@pytest.mark.parametrize(
    "path, form, words",
    [
        ("/runs/{run}/acts", {"action": "drop_run"}, "there is no act &#39;drop_run&#39;"),
        ("/runs/{run}/acts", {}, "there is no act"),
        (
            "/runs/{run}/acts",
            {"action": "stop_config", "mst_key": "1; DROP"},
            "a whole number is expected",
        ),
        ("/runs/{run}/acts", {"action": "stop_config", "mst_key": "1"}, "completed"),
        ("/train", {"source": "points"}, "the field target is empty"),
        (
            "/train",
            {"source": "no_table", "target": "x", "budget": "1", "search": "auto"},
            "no_table",
        ),
        (
            "/train/plan",
            {"source": "points", "target": "no_column", "budget": "1", "search": "auto"},
            "no_column",
        ),
        (
            "/model/predict",
            {"model": "none", "owner": "nobody", "value.x": "1", "kind.x": "json"},
            "nobody",
        ),
        (
            "/model/predict",
            {"model": "m", "owner": "o", "value.x": "one", "kind.x": "json"},
            "a number or an array",
        ),
        ("/model/deploy", {"model": "none", "version": "1"}, "none"),
    ],
)
def test_wrong_forms(
    page: Dashboard, run: int, path: str, form: dict[str, str], words: str
) -> None:
    answer = page.ask(path.format(run=run), form)
    assert 400 <= answer.status < 500 and 'class="refusal"' in answer.text and words in answer.text
    assert "<html" not in answer.text and "Traceback" not in answer.text


def test_a_form_has_an_end(page: Dashboard) -> None:
    assert "larger than" in page.ask("/train/plan", {"source": "x" * 2_000_000}).text


@pytest.mark.parametrize(
    "table",
    [value for value in vars(queries).values() if isinstance(value, sa.TableClause)],
    ids=lambda table: table.name,
)
def test_relations_have_the_columns_of_pages(bench: Workbench, table: sa.TableClause) -> None:
    Reader(make_engine(bench.url)).read_rows(sa.select(table).limit(0))


@pytest.mark.parametrize(
    "path", ["/runs/{run}/comparison?keys=1", "/runs/{run}/comparison?keys=1,x"]
)
def test_a_comparison_needs_numbers(page: Dashboard, run: int, path: str) -> None:
    answer = page.ask(path.format(run=run))
    assert answer.status == 400 and "2 to 8 numbers" in answer.text
    assert page.ask(f"/runs/{run}/comparison?keys=1,2").status == 404


def test_curves_are_a_file(page: Dashboard, bench: Workbench, run: int) -> None:
    answer = page.ask(f"/runs/{run}/curves.csv")
    assert f"run-{run}-curves.csv" in str(answer.headers["content-disposition"])
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    points = {
        (int(row["epoch"]), row["dataset"], row["metric"], float(row["value"])) for row in rows
    }
    query = "SELECT epoch, dataset, name, value FROM cerebro.learning_curve WHERE run_id = %s"
    assert points == set(bench.rows(query, run)) and len(points) == len(rows) > 0


OWN_CALLS = (
    "SELECT madlib_keras_predict('outputs', 'points', 'id', 'x', 'predicted', mst_key => 1)",
    "SELECT madlib_keras_evaluate('outputs', 'packed', 'evaluated', mst_key => 1)",
    "SELECT hyperband_schedule('scheduled', 9, 3)",
    "SELECT generate_model_configs('models', 'grown', ARRAY[1], $${'loss': ['mse'], "
    "'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.1]}]}$$, $${'batch_size': [8]}$$, "
    "'grid')",
)
"""Calls that create tables of other kinds than those of a fit."""
OWN_TABLES = (
    "packed", "packed_summary", "models", "configs", "configs_summary", "outputs", "outputs_info",
    "outputs_summary", "predicted", "evaluated", "scheduled", "grown", "grown_summary",
    "own_functions",
)  # fmt: skip


def test_own_tables_are_not_offered(
    page: Dashboard, bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    """Nobody learns from packed rows, models, predictions and lists of parameters."""
    for call in OWN_CALLS:
        bench.rows(call)
    shared_superuser.rows("SELECT madlib.load_top_k_accuracy_function('own_functions', 2)")
    bench.rows("SELECT cerebro.load_example('flowers')")
    tables = {table for (table,) in bench.rows("SELECT tablename::text FROM pg_tables")}
    assert tables > set(OWN_TABLES)
    options = re.findall(r'<option value="\w+\.(\w+)"', page.ask("/train").text)
    assert {"points", "flowers"} <= set(options)
    assert [name for name in options if name not in ("points", "flowers")] == []


def test_the_icon_is_sent(page: Dashboard) -> None:
    """Browsers ask for it where a page has no link, such as a file or a refusal."""
    answer = page.ask("/favicon.ico")
    assert answer.status == 200 and answer.headers["content-type"].startswith("image/svg")
    assert page.ask("/favicon.ico", cookie=None).status == 403


@pytest.mark.parametrize(
    ("rank_metric", "name"), [("root_mean_squared_error", "rmse"), ("loss", "log_loss")]
)
def test_metrics_have_the_names_of_the_call(
    bench: Workbench, shared_superuser: Workbench, run: int, rank_metric: str, name: str
) -> None:
    """In the list of runs, its search, the leaderboard, the curves and the decisions."""
    superuser = shared_superuser
    spec = superuser.value("SELECT spec FROM cerebro.run_log WHERE run_id = %s", run)
    metrics = superuser.rows("SELECT DISTINCT name FROM cerebro.metric WHERE run_id = %s", run)
    ranking = {"rank_metric": rank_metric}
    for train, expected in ((None, rank_metric), ({"task": "regression"}, name)):
        superuser.rows(
            "UPDATE cerebro.run_log SET spec = %s::jsonb || %s::jsonb WHERE run_id = %s",
            json.dumps(spec), json.dumps({**ranking, "train": train}), run,
        )  # fmt: skip
        reader = Reader(make_engine(bench.url))
        (row,) = reader.read_runs([run])
        assert row["metric"] == expected
        assert reader.find_runs(expected) == [run]
        assert {standing.metric for standing in reader.read_standings(run)} == {expected}
        messages = dict(RunFeed(run).poll_metrics(reader))
        rename = reader.read_run_metrics(run).rename
        assert {curve[2] for curve in messages["curves"]} == {rename(each) for (each,) in metrics}
    superuser.rows(
        "UPDATE cerebro.run_log SET spec = %s::jsonb WHERE run_id = %s", json.dumps(spec), run
    )


def test_a_cancel_is_not_an_error(
    page: Dashboard, bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    """Visits that the end of a run cut off are told from those that failed."""
    superuser = shared_superuser
    before = superuser.rows("SELECT status, error FROM cerebro.run_log WHERE run_id = %s", run)[0]
    update = "UPDATE cerebro.visit SET status = %s, error = %s WHERE run_id = %s AND epoch = 1"
    end = "UPDATE cerebro.run_log SET status = %s, error = %s, hint = %s WHERE run_id = %s"
    for status, error, expected in (
        ("cancelled", "cancelled by a user", {"cut"}),
        ("cancelled", "another error", {"failed"}),
        ("completed", BUDGET_OVER, {"cut"}),
        ("failed", "cancelled by a user", {"failed"}),
    ):
        superuser.rows(end, status, "cancelled by a user", "wait a while", run)
        superuser.rows(update, "failed", error, run)
        feed = RunFeed(run)
        reader = Reader(make_engine(bench.url))
        ((_, bars),) = feed.poll_lanes(reader)
        assert {bar[3] for bar in bars} - {"completed"} == expected
        assert feed.poll_lanes(reader) == []
        text = page.ask(f"/runs/{run}/progress").text
        assert ("refusal" in text) == (status != "cancelled")
        assert ("cancelled by a user" in text) == (status != "cancelled")
        assert ("wait a while" in text) == (status != "cancelled")
    superuser.rows(end, *before, None, run)
    superuser.rows(update, "completed", None, run)


def test_another_role_sees_its_own(
    page: Dashboard, bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    with (
        another_role(bench, shared_superuser, "page_other") as other,
        dashboard(other.url) as theirs,
    ):
        assert "There are no runs yet" in theirs.ask("/").text
        for part in (
            "",
            "/events",
            "/progress",
            "/board",
            "/log",
            "/axes",
            "/curves.csv",
            "/comparison?keys=1,2",
            "/configs/1",
            "/configs/1/state",
        ):
            answer = theirs.ask(f"/runs/{run}{part}")
            assert answer.status == 404, part
        refused = theirs.ask(f"/runs/{run}/acts", {"action": "pause_run"})
        assert refused.status in (403, 404)
    assert page.ask(f"/runs/{run}").status == 200


def test_who_may_not_use_the_extension_is_told_how(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    with (
        another_role(bench, shared_superuser, "page_stranger", granted=False) as stranger,
        dashboard(stranger.url) as page,
    ):
        assert "grant_usage(&#39;page_stranger&#39;)" in page.ask("/").text


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of all requests, as a server has one."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pages(bench: Workbench, run: int, loop: asyncio.Runner) -> Iterator[Target]:
    """The routes of the page, in this process."""
    site = Site(make_engine(bench.url))
    app = make_application(site)
    paths = paths_of(app.routes)
    assert "/runs/{run}/configs/{key}" in paths and "/model/predict" in paths
    yield behind_gate(Pages(app), paths, run, loop)
    site.close()


def test_no_request_makes_a_page_fail(pages: Target) -> None:
    check_each_value(pages)
    check_acts(pages)
    check_any(pages)


def test_no_request_makes_a_page_of_optuna_fail(
    bench: Workbench, run: int, loop: asyncio.Runner
) -> None:
    served = optuna.make_pages(bench.url)
    adapter: Any = served.app
    rules = {route.rule for route in adapter.app.app.routes}
    paths = {re.sub(r"<(\w*)(?::[^<>]*)?>", r"{\1}", rule): {"GET"} for rule in rules}
    assert "/api/studies/{study_id}" in paths
    target = behind_gate(served, paths, run, loop)
    for path in (
        "/dashboard?studies_order_by=desc",
        f"/api/studies/{run}?after=0",
        f"/csv/{run}?trial_ids=0,1",
    ):
        assert target.ask(path, "GET", b"").status == 200
    check_each_value(target, HARDEST)
    check_any(target)
