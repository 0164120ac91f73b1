"""The pages in a browser: from a table to a prediction, a run that is steered, and what is lost and
comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import cast
from urllib.parse import quote_plus

import pytest
from dashboards import Browser, Dashboard, browser, dashboard
from processes import eventually
from servers import Database
from workbench import Workbench

from cerebro_plpy.run.request.run_request import BUDGET_OVER

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
QUOTED = '"' + HOSTILE.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def site(bench: Workbench, page: Browser) -> Iterator[Dashboard]:
    bench.rows(
        f"CREATE TABLE {QUOTED} AS SELECT n AS id, sin(n) AS wave, n % 3 AS rest, sin(n) > 0 AS up"
        " FROM generate_series(1, 300) n"
    )
    bench.rows(f"ALTER TABLE {QUOTED} ADD PRIMARY KEY (id)")
    with dashboard(bench.url) as found:
        page.driver.get(found.entrance)
        yield found


@pytest.fixture(autouse=True)
def nothing_is_wrong(page: Browser, request: pytest.FixtureRequest) -> Iterator[None]:
    """No program of a page fails, none is stopped by the policy, and nothing of a user has run."""
    own = request.getfixturevalue("site").root if "site" in request.fixturenames else "none"
    yield
    # what an earlier page says of a dashboard that has ended
    other = rf"^(?!{re.escape(own)}).*ERR_CONNECTION_REFUSED"
    complaints = [text for text in page.complaints() if not re.search("status of (4|503)", text)]
    assert [text for text in complaints if not re.search(other, text)] == []
    assert page.driver.title != "owned"


def test_from_a_table_to_a_prediction(page: Browser, site: Dashboard, bench: Workbench) -> None:
    """By hand and eyes alone: no SQL."""
    assert "There are no runs yet" in page.text("#runs")
    page.click("a[href='/train']")
    table = page.look(
        "[...document.querySelectorAll('[name=source] option')].find(o => "
        "o.text.includes('onerror'))?.value"
    )
    page.fill("[name=source]", str(table))
    page.look("[...document.querySelectorAll('[name=target] option')].some(o => o.value === 'up')")
    page.fill("[name=target]", "up")
    for name, value in (("budget", "5"), ("configs", "2"), ("epochs", "2"), ("model", HOSTILE)):
        page.fill(f"[name={name}]", value)
    page.click("[hx-post='/train/plan']")
    assert "configuration" in page.text("#plan table")
    page.click("#train button.strong")
    page.look("location.pathname.startsWith('/runs/')")
    page.look("document.querySelector('#progress .status.completed') !== null")
    assert page.look("document.querySelectorAll('#board tr[data-key]').length") == 2
    page.look("document.querySelectorAll('.u-over').length === 2")
    page.click("#model")
    assert "wave" in page.text("section[aria-labelledby=features-title]")
    page.look("document.querySelectorAll('meter').length > 0")  # importances come after the version
    page.fill("[name='value.wave']", "0.9")
    page.click("[hx-post='/model/predict'] button")
    assert page.text("#predicted .prediction").startswith("up is")
    page.click("[hx-post='/model/evaluate'] button")
    assert page.look("document.querySelectorAll('.confusion td').length") == 4
    page.click("[hx-post='/model/drift']")
    page.look("document.querySelector('#evaluated').textContent.includes('wave')")
    assert page.text("h1").startswith(HOSTILE)


def test_the_browser_is_opened_by_a_file_of_its_users(
    bench: Workbench, page: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its arguments, which everybody sees, have no code; the strict cookie is sent though a file
    leads to the page.
    """
    arguments, program = tmp_path / "arguments", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {arguments}\n')
    program.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(program))
    with dashboard(bench.url, "--browser") as opened:
        address = eventually(lambda: arguments.exists() and arguments.read_text().strip())
        assert re.fullmatch(r"file:///[\w./-]+/open\.html", str(address))
        page.driver.get(str(address))
        assert page.text("#runs")
        assert page.look("location.href") == f"{opened.root}/"


@pytest.fixture(scope="module")
def going_on(bench: Workbench, site: Dashboard) -> Iterator[int]:
    """A run that would go on for long."""
    call = (
        "SELECT run_id FROM cerebro.train(%s, 'up', 'long', models => '{linear}', configs => 3, "
        "epochs => 5000, budget => '1 hour', space => '{\"batch_size\": 16}', search => 'median', "
        "seed => 1, workers => 1, background => true)"
    )
    run = bench.value(call, QUOTED)
    yield run
    bench.rows("SELECT cerebro.cancel(%s)", run)
    bench.rows("SELECT cerebro.wait(%s)", run)


@pytest.mark.long
def test_optunas_dashboard_behind_the_gate(bench: Workbench, page: Browser, going_on: int) -> None:
    """Its programs run under the policy that the gate gives them, and find the runs."""
    with dashboard(bench.url, "--optuna") as optunas:
        page.driver.get(optunas.entrance)
        page.look("document.body?.innerText.includes('#')")


def test_a_run_that_goes_on(
    page: Browser, site: Dashboard, bench: Workbench, going_on: int
) -> None:
    """What is committed is there without anybody asking for it, in the curves, the lanes and the
    leaderboard.
    """
    page.driver.get(f"{site.root}/runs/{going_on}")
    page.driver.execute_script(
        "window.points = 0; window.bars = 0;"
        "document.body.addEventListener('curves', ({detail}) => points += detail.length);"
        "document.body.addEventListener('lanes', ({detail}) => bars += detail.length);"
    )
    visits = int(page.text("#done"))
    page.look("points > 3 && bars > 3")
    page.look(f"Number(document.querySelector('#done').textContent) > {visits}")
    assert page.look("document.querySelectorAll('.u-over').length") == 2
    page.click("#progress [value=pause_run]")  # what follows looks at it, and needs the processor
    page.look("document.querySelector('#progress .status.paused') !== null")
    assert asked(bench, going_on, "pause_run")[2] == "done"


def asked(bench: Workbench, run: int, action: str) -> tuple[object, ...]:
    """The newest act of a kind, once the run has heard of it."""
    query = (
        "SELECT mst_key, change, status, actor = current_user FROM cerebro.act"
        " WHERE run_id = %s AND action = %s AND status <> 'scheduled' ORDER BY act_id DESC LIMIT 1"
    )
    return eventually(lambda: bench.rows(query, run, action))[0]


@pytest.mark.long
def test_acts(page: Browser, site: Dashboard, bench: Workbench, going_on: int) -> None:
    page.driver.get(f"{site.root}/runs/{going_on}")
    key = int(str(page.look("document.querySelector('#board tr[data-key]')?.dataset.key")))
    page.click(f"#config-{key} .choose")
    page.look("document.querySelector('#chosen h2').textContent.includes('#' + " + str(key) + ")")
    page.click("#chosen [value=prioritize]")
    assert asked(bench, going_on, "prioritize") == (key, {}, "done", True)
    page.click("#chosen [value=stop_config]")
    page.look("document.querySelector('#answer').textContent.includes('stop_config')")
    assert asked(bench, going_on, "stop_config") == (key, {}, "done", True)
    page.click("#chosen [value=continue_config]")
    assert asked(bench, going_on, "continue_config") == (key, {}, "done", True)
    page.fill("#chosen [name=epochs]", "4000")
    page.click("#chosen [value=set_epochs]")
    assert asked(bench, going_on, "set_epochs")[0] == key
    page.fill("#chosen [name='new.lr']", "0.002")
    page.click("#chosen [value=clone_config]")
    clone = asked(bench, going_on, "clone_config")
    assert clone[0] == key and "0.002" in str(clone[1]) and clone[2] == "done"
    page.fill("#progress [name=configs]", "2")
    page.click("#progress [value=add_configs]")
    assert asked(bench, going_on, "add_configs")[2] == "done"
    page.look("document.querySelectorAll('#board tr[data-key]').length === 6")
    page.click("#progress [value=pause_run]")
    page.click("#progress [value=continue_run]")
    assert asked(bench, going_on, "continue_run")[2] == "done"
    page.look("document.querySelector('#log-lines').textContent.includes('clone_config')")
    page.click("#progress [value=cancel]")
    assert eventually(
        lambda: (
            bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", going_on) == "cancelled"
        )
    )
    page.click("#progress [value=resume]")
    page.look("document.querySelector('#progress [value=pause_run]') !== null")
    page.click("#progress [value=pause_run]")  # what follows looks at it, and needs the processor
    page.look("document.querySelector('#progress [value=continue_run]') !== null")


def test_curves_can_be_read_and_kept(page: Browser, site: Dashboard, going_on: int) -> None:
    """A legend, values under the pointer, titles of axes, smoothing, and files."""
    page.driver.get(f"{site.root}/runs/{going_on}")
    page.driver.execute_script(
        "window.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return '#' }"
    )
    entries = "[...document.querySelectorAll('#legend button')]"
    texts = f"{entries}.map(entry => entry.innerText)"
    page.look(f"{entries}.length > 0 && {texts}.every(text => /^#[0-9][^]*[0-9]$/.test(text))")
    colours = page.look(f"{entries}.map(entry => entry.querySelector('i').style.background)")
    swatches = "[...document.querySelectorAll('#board .swatch')].map(i => i.style.background)"
    shown = page.look(f"{swatches}.filter(colour => colour)")
    assert isinstance(colours, list) and isinstance(shown, list)
    assert len(set(colours)) == len(colours) and sorted(colours) == sorted(shown)
    assert re.search(r"#\d: [\d.]+\nepoch \d+ · linear", point(page))
    page.driver.execute_script("document.querySelector('[data-save=svg]').click()")
    page.driver.execute_script("document.querySelector('[data-save=png]').click()")
    page.look(
        "saved.length === 2 && saved.map(blob => blob.type).join() === 'image/svg+xml,image/png'"
    )
    page.driver.execute_script("saved[0].text().then(text => { window.svg = text })")
    svg = str(page.look("window.svg"))
    assert svg.count("<polyline") > 6 and ">epoch</text>" in svg and ">validation" in svg
    page.driver.execute_script(
        "const field = document.querySelector('#smoothing'); field.value = 60;"
        "field.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.driver.execute_script(
        "import('/static/curves.js').then(({flatten}) => {"
        "  window.means = [flatten([1, 0, null, 1], 0.5), flatten([3, 3, 3], 0.9)] })"
    )
    means, constant = cast("list[list[float | None]]", page.look("window.means"))
    assert means == [1, pytest.approx(1 / 3), None, pytest.approx(5 / 7)]
    assert constant == pytest.approx([3, 3, 3])
    assert "smoothing=60" in str(page.look("location.search"))


def point(page: Browser) -> str:
    """Move the pointer over the last value of the first curve of the legend; return the tip.

    Curves that are drawn anew lose the pointer, so it moves again.
    """

    def move() -> object:
        return page.driver.execute_script(
            "const over = document.querySelector('#curves .u-over');"
            "if (!over) return '';"
            "const box = over.getBoundingClientRect();"
            "const tip = document.querySelector('#tip');"
            "for (let y = 2; y < box.height && tip.hidden; y += 8)"
            "  over.dispatchEvent(new MouseEvent('mousemove', {bubbles: true,"
            "    clientX: box.right - 2, clientY: box.top + y}));"
            "return tip.hidden ? '' : tip.innerText"
        )

    return str(eventually(move))


def test_ticks_are_told_apart(page: Browser, site: Dashboard, going_on: int) -> None:
    """Values that differ late have as many digits as that takes."""
    page.driver.get(f"{site.root}/runs/{going_on}")
    page.driver.execute_script(
        "import('/static/curves.js').then(({nameTicks}) => {"
        "  window.ticks = [[0.99980, 0.99985, 0.9999, 1], [0, 0.5, null], [1e6, 1e6 + 1]]"
        "    .map(values => nameTicks(values).map(([, text]) => text)) })"
    )
    assert page.look("window.ticks") == [
        ["0.9998", "0.99985", "0.9999", "1"], ["0", "0.5", ""], ["1000000", "1000001"],
    ]  # fmt: skip


TICKS = [[0, "0.00149177"], [0.08, "0.0015"], [1, "a" * 60]]
AXES = [
    [f"a_parameter_with_a_long_name_{index}", TICKS, [[1, 0.1 * index], [2, 1 - 0.1 * index]]]
    for index in range(8)
]
"""Axes as the page of a run reads them, with long names and values."""
SPY = """\
const ask = window.fetch
window.fetch = (address, ...rest) => String(address).endsWith('/axes')
  ? Promise.resolve(new Response(JSON.stringify(AXES))) : ask(address, ...rest)
window.texts = []
const write = CanvasRenderingContext2D.prototype.fillText
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (this.canvas.id === 'axes') {
    texts.push([text, x, y, this.measureText(text).width, parseFloat(this.canvas.style.width)])
  }
  write.call(this, text, x, y)
}
"""


@pytest.mark.parametrize("width", [390, 1440])
def test_texts_of_axes_do_not_overprint(
    page: Browser, site: Dashboard, going_on: int, width: int
) -> None:
    """Names are whole, also where they are long; the panel scrolls, and the page does not."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    source = SPY.replace("AXES", json.dumps(AXES))
    script = page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": source}
    )
    try:
        page.driver.get(f"{site.root}/runs/{going_on}")
        page.look(f"window.texts.length >= {4 * len(AXES)}")
        painted = cast(
            "list[tuple[str, float, float, float, float]]",
            page.look(f"window.texts.slice(-{4 * len(AXES)})"),
        )
        scroll_width = page.look("document.documentElement.scrollWidth")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert isinstance(scroll_width, int) and scroll_width <= width
    names = {str(name) for name, _, _ in AXES}
    assert names <= {text for text, *_ in painted}
    assert all(x >= 0 and x + wide <= sheet for _, x, _, wide, sheet in painted)
    for one, other in combinations(painted, 2):
        is_apart = abs(one[2] - other[2]) >= 12 or (
            one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
        )
        assert is_apart, (one, other)


def test_a_run_without_time_leads_to_more_time(
    page: Browser, site: Dashboard, shared_superuser: Workbench, going_on: int
) -> None:
    """Its page has no empty pictures, and its button fills the form with the same and more time."""
    run = shared_superuser.value(
        "INSERT INTO cerebro.run_log"
        " (name, owner, status, spec, epochs, segments, pid, error, hint)"
        " SELECT name, owner, 'failed', jsonb_set(spec, '{train,space}', '{}'), epochs, segments,"
        " pid, %s, %s FROM cerebro.run_log WHERE run_id = %s RETURNING run_id",
        f"{BUDGET_OVER} before any configuration was trained", "Give it longer.", going_on,
    )  # fmt: skip
    page.driver.get(f"{site.root}/runs/{run}")
    assert "Give it longer." in page.text("#progress .refusal")
    panels = "[...document.querySelectorAll('main > *')].filter(part => part.offsetHeight)"
    assert page.look(f"{panels}.map(part => part.id || part.getAttribute('aria-labelledby'))") == [
        None, "progress", "log-title",
    ]  # fmt: skip
    assert not page.driver.execute_script("return document.querySelector('[value=resume]')")
    page.click("#progress a[href^='/train']")
    page.look("location.pathname === '/train'")
    fields = "Object.fromEntries(new FormData(document.querySelector('#train')))"
    filled = cast("dict[str, str]", page.look(fields))
    shared_superuser.rows("DELETE FROM cerebro.run_log WHERE run_id = %s", run)
    assert "onerror" in filled["source"] and filled["budget"] == "480"
    assert {**filled, "target": "up", "task": "classification", "metric": "accuracy"} == filled
    assert filled["model"] == "long" and filled["template.linear"] == "1"


def test_a_link_brings_back_what_was_looked_at(
    page: Browser, site: Dashboard, going_on: int
) -> None:
    """The configuration, the comparison, the order and the filter are in the address."""
    page.driver.get(f"{site.root}/runs/{going_on}")
    page.click("#board tr[data-key='3'] .choose")
    for key in (1, 3):
        page.click(f"#board tr[data-key='{key}'] .compare")
    assert "lr" in page.text("#comparison .differs th")
    rows = (
        "[...document.querySelectorAll('#board tr[data-key]')].map(row => row.dataset.key).join()"
    )
    sort_by_configuration(page, descending="")
    page.look(f"{rows} === '1,2,3'")
    sort_by_configuration(page, descending="1")
    page.look(f"{rows} === '3,2,1'")
    page.type("[name=filter]", "#3")
    page.look(f"{rows} === '3'")
    link = str(page.look("location.href.includes('filter') && location.href"))
    page.driver.get(f"{site.root}/models")
    page.driver.get(link)
    assert page.look(rows) == "3"
    page.look("document.querySelector('#chosen h2').textContent.includes('#3')")
    page.look("document.querySelectorAll('#comparison thead .swatch').length === 2")
    assert page.look("document.querySelector(\"#board tr[data-key='3'] .compare\").checked")
    page.click("[data-forget]")
    page.look("document.querySelector('#comparison').hidden && !location.href.includes('compare')")


def sort_by_configuration(page: Browser, descending: str) -> None:
    page.driver.execute_script(
        "document.querySelector(\"#board th [hx-get*='sort=configuration']\").click()"
    )
    order = "document.querySelector('#board').dataset"
    page.look(f"{order}.sort === 'configuration' && {order}.descending === '{descending}'")


LATE_ANSWER = """
    const fetch = window.fetch;
    window.fetch = (url, options) => {
        if (window.release || !String(url).includes('/board')) return fetch(url, options);
        return new Promise((resolve, reject) => {
            window.release = () => fetch(url, options).then(resolve, reject).finally(
                () => setTimeout(() => { window.settled = true; }, 200));
        });
    };
    document.body.dispatchEvent(new Event('stale'));"""


def test_an_answer_in_the_old_order_comes_too_late(
    page: Browser, site: Dashboard, going_on: int
) -> None:
    """A leaderboard that somebody sorts stays sorted if a refresh was under way."""
    page.driver.get(f"{site.root}/runs/{going_on}")
    page.look("document.querySelectorAll('#board tr[data-key]').length === 3")
    page.driver.execute_script(LATE_ANSWER)
    page.look("window.release !== undefined")
    sort_by_configuration(page, descending="")
    page.driver.execute_script("window.release()")
    page.look("window.settled === true")
    assert page.look("document.querySelector('#board').dataset.sort") == "configuration"


def test_runs_are_searched(page: Browser, site: Dashboard, going_on: int) -> None:
    page.driver.get(site.root)
    rows = "document.querySelectorAll('#runs tbody tr').length"
    assert int(str(page.look(rows))) >= 1
    page.type("[name=search]", f"LONG accuracy {going_on}")
    page.look(f"{rows} === 1")
    assert re.search(r"\d:\d\d:\d\d", page.text("#runs tbody"))
    page.type("[name=search]", "no%such_run")
    assert "No run contains" in page.text("#runs p")


def test_the_form_has_what_a_plan_needs(page: Browser, site: Dashboard, bench: Workbench) -> None:
    """Kinds, task, metric and templates are chosen, and the plan shows the same call in SQL."""
    page.driver.get(f"{site.root}/train")
    table = page.look(
        "[...document.querySelectorAll('[name=source] option')].find(o => "
        "o.text.includes('onerror'))?.value"
    )
    page.fill("[name=source]", str(table))
    page.look("document.querySelector('[name=\"kind.rest\"]') !== null")
    for name, value in (
        ("target", "wave"), ("kind.rest", "category"), ("kind.up", "left out"),
        ("task", "regression"), ("metric", "mae"), ("split", "random 0.3"), ("configs", "2"),
    ):  # fmt: skip
        page.fill(f"[name='{name}']", value)
    page.click("[name='template.linear']")
    assert "by the column" in page.text("[name=task]")
    assert "classification" in page.text("[name=task] ~ small")
    page.click("[hx-post='/train/plan']")
    plan = page.text("#plan:has(table)")
    assert "regression" in plan and "mae" in plan and "random 0.3" in plan
    call = str(page.look("document.querySelector('#plan pre').textContent"))
    rows = bench.rows(call.replace("cerebro.train", "cerebro.plan").replace("%", "%%"))
    columns = {row[1]: str(row[2]) for row in rows if row[0] == "column"}
    assert columns["rest"].startswith("category") and "up" not in columns


def test_keys_and_themes(page: Browser, site: Dashboard, going_on: int) -> None:
    page.driver.get(f"{site.root}/runs/{going_on}")
    keys = page.look("[...document.querySelectorAll('#board tr[data-key]')].map(row => row.id)")
    assert isinstance(keys, list)
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.driver.execute_script(
            f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: "
            f"true}}))"
        )
        assert (
            page.look("document.querySelector('#board tr[aria-selected=true]')?.id") == keys[place]
        )
    before = page.look("getComputedStyle(document.documentElement).colorScheme")
    page.click("#theme")
    after = page.look("getComputedStyle(document.documentElement).colorScheme")
    assert {before, after} >= {"dark"} and before != after
    page.driver.refresh()
    assert page.look("getComputedStyle(document.documentElement).colorScheme") == after


def test_a_telephone(page: Browser, site: Dashboard, bench: Workbench, going_on: int) -> None:
    """Nothing is wider than the page, and the metric of the best one is seen without scrolling."""
    owner = bench.value("SELECT current_user::text")
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 700, "deviceScaleFactor": 2, "mobile": True},
    )
    try:
        for path in (
            "/",
            "/train",
            "/models",
            f"/runs/{going_on}",
            f"/runs/{going_on}?compare=1,2,3&config=1",
            f"/model?owner={owner}&model={quote_plus(HOSTILE)}",
        ):
            page.driver.get(site.root + path)
            page.look("document.readyState === 'complete'")
            assert page.look("document.documentElement.scrollWidth") == 390, path
        page.driver.get(f"{site.root}/runs/{going_on}")
        value = "document.querySelector('#board .value')?.getBoundingClientRect().right"
        assert float(str(page.look(value))) < 390
        assert fits(page, "#log-lines .scroll")
        page.driver.get(f"{site.root}/model?owner={owner}&model={quote_plus(HOSTILE)}")
        assert fits(page, "section[aria-labelledby=features-title] .scroll")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def fits(page: Browser, selector: str) -> bool:
    """Return True if an element can be read whole without scrolling it."""
    width = page.look(f"document.querySelector({selector!r})?.clientWidth")
    return width == page.look(f"document.querySelector({selector!r}).scrollWidth")


@contextmanager
def lost(superuser: Workbench, name: str) -> Iterator[None]:
    """While a database lets nobody in."""
    superuser.rows(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        superuser.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name
        )
        yield
    finally:
        superuser.rows(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.mark.long
def test_a_database_that_is_lost_and_comes_back(
    database: Database, page: Browser, superuser_of: Workbench
) -> None:
    """A page that is open goes on by itself, and so does one that was asked for meanwhile."""
    with dashboard(database.url) as site:
        page.driver.get(site.entrance)
        assert page.text("#runs")
        with lost(superuser_of, database.name):
            assert "database does not answer" in page.text("#lost:not([hidden])")
        page.look("document.querySelector('#lost').hidden")
        with lost(superuser_of, database.name):
            page.driver.get(f"{site.root}/models")
            assert "tries again" in page.text("main")
        page.look("document.querySelector('h1').textContent === 'Models'")
        page.driver.get(site.root)
        assert "There are no runs yet" in page.text("#runs")
    assert "dashboard does not answer" in page.text("#lost:not([hidden])")


@pytest.fixture
def superuser_of(shared_superuser: Workbench) -> Workbench:
    """A superuser in another database than the one that is lost."""
    return shared_superuser


@pytest.mark.long
def test_a_long_leaderboard(page: Browser, site: Dashboard, bench: Workbench) -> None:
    """The best hundred; all of them where they are asked for, also when it is read again."""
    run = bench.value(
        "SELECT run_id FROM cerebro.train(%s, 'up', 'many', models => '{linear}', configs => 120, "
        "epochs => 1, ensemble => 1, seed => 1, budget => '1 hour', background => true)",
        QUOTED,
    )
    page.driver.get(f"{site.root}/runs/{run}")
    rows = "document.querySelectorAll('#board tr[data-key]').length"
    assert page.look(rows) == 100
    page.click("[hx-get$='board?all=1']")
    page.look(f"{rows} === 120")
    bench.rows("SELECT cerebro.cancel(%s)", run)
    page.look("document.querySelector('#progress .status.cancelled') !== null")
    page.look(f"{rows} === 120")
