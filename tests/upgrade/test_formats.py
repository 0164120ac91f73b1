"""A frozen database with a run and a model of every kind is read, resumed and predicted from.

A change of names in Python changes nothing that is stored. `database-formats.sql` has the rows that
version 0.3.0 stored, the queries that its users ask, and the answers that it gave.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dumps import Programs, empty, sessions
from frozen import TOLERANCE, Rows, find_differences, read_tables
from processes import eventually
from roles import another_role, own_schema, refused
from servers import Server
from workbench import ROWS, Workbench, opened

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.database.reading import FORMATS, read_recorded
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.tables.models.granted_versions import OUTLINE_FIELDS

FILE = Path(__file__).parent / "database-formats.sql"
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
KINDS = {
    ("array", None), ("category", "money"), ("category", "real"), ("category", "text"),
    ("category", "time"), ("image", None), ("image", "real[]"), ("left out", None),
    ("long vector", "numeric[]"), ("moment", "date"), ("moment", "interval"),
    ("moment", "time"), ("moment", "timestamp"), ("moment", "timestamptz"), ("number", "integer"),
    ("number", "json"), ("number", "money"), ("number", "numeric"), ("number", "real"),
    ("series", "real[]"), ("text", None), ("vector", "integer[]"), ("vector", "real[]"),
}  # fmt: skip
"""Every kind of feature, with the families of columns of which the dump has one."""
CHECKED = {
    ("run_log", "status"): {"running", "queued", "paused", "completed", "cancelled", "failed"},
    ("config_log", "status"): {"waiting", "running", "paused", "completed", "stopped", "failed"},
    ("config_log", "source"): {"call", "act", "clone", "search"},
    ("visit", "status"): {"running", "completed", "failed"},
    ("visit", "kind"): {"train", "average"},
    ("metric", "dataset"): {"training", "validation"},
    ("decision_log", "action"): {
        "start", "continue", "promote", "rest", "hold", "stop", "clone", "replan",
    },
    ("act_log", "action"): {
        "stop_config", "continue_config", "set_epochs", "prioritise", "pause_run", "continue_run",
        "clone_config", "add_configs", "drill_down",
    },
    ("act_log", "status"): {"scheduled", "done", "refused"},
    ("version_log", "task"): {"classification", "regression"},
}  # fmt: skip
"""The values that constraints allow, each of which stands in the dump.

`prioritise` is written as `prioritize` now, and still read.
"""
SEARCHES = {
    "grid", "halving", "hyperband", "asha", "pasha", "median", "patience", "pbt", "random", "tpe",
    "cmaes", "madlib_hyperband",
}  # fmt: skip
TEMPLATES = {
    "realmlp", "realmlp_simple", "tabm", "resnet", "transformer", "linear", "text", "series", "cnn",
}  # fmt: skip
SPEC_KEYS = {
    "automl_method", "automl_params", "backend", "copies", "description", "dtype_policy",
    "earlier_trials", "epochs_before", "evaluate_epochs", "feature_budget", "functions",
    "keep_states", "max_attempts", "max_runtime", "metrics_compute_frequency", "model_arch_table",
    "model_output_table", "model_selection_table", "name", "num_iterations", "object_table", "one",
    "random_state", "rank_dataset", "rank_descending", "rank_metric", "replay_run", "schedule",
    "search", "search_params", "seed", "segments", "single", "source", "source_table", "stage",
    "strategy", "tables", "train", "training_epochs", "training_metrics", "use_caching", "use_gpus",
    "validation", "validation_table", "version", "warm_start", "workers",
}  # fmt: skip
"""The keys of specs."""
TRAIN_KEYS = {
    "additions", "block_rows", "bound", "budget", "classes", "columns", "compared", "configs",
    "counts", "ensemble", "fingerprint", "group_by", "groups", "hashes", "identity", "max_cost",
    "max_cpu", "measure", "metric", "model", "newest", "params", "profile", "reading", "recipe",
    "relation", "share", "space", "split", "split_seed", "start", "target", "target_type", "task",
    "templates", "training_rows", "tried", "types", "validation_rows", "weight",
}  # fmt: skip
"""The keys of what a call of `cerebro.train` adds to its spec."""
FAST = {
    ("predict", "every_kind"), ("predict", "grouped"), ("predict", "registered"),
    ("predict_row", "grouped"), ("evaluate", "registered"), ("madlib", "predict"),
    ("madlib", "write_outputs"), ("importance", "registered_number"),
    ("attribution", "registered_number"), ("resume", "resumed_lost"), ("resume", "resumed_queued"),
}  # fmt: skip
"""The topics and names of answers that `make test` asks for, beside those of FAST_TOPICS."""
RENAMED = {"column": "column_name", "group": "group_values"}
"""Columns of answers whose names were keywords of SQL."""
FAST_TOPICS = ("view", "drift")
GRANTED = {"series": "things", "grouped": "things", "registered": "points"}
"""The models that a role may predict with, and a table for each."""
STATE = r"the same bits came out|parts with other bits: \d+ of \d+"
"""The possible findings about a state: processors differ in their bits."""
LOGGED = {
    "config_log": """mst_key, params, source, point, compile_params, fit_params, cloned_from,
                     warm_started_from""",
    "decision_log": "decision_no, mst_key, action, epoch, visits, last_epoch, cause, rule",
    "metric": "mst_key, epoch, dataset, name",
}
"""The columns of a run that another run of the same call has, too."""
ACTS: dict[str, tuple[str, ...]] = {
    "clone_config(%s, 1, %s)": ('{"optimizer": "SGD(learning_rate=0.05)", "batch_size": 8}',),
    "clone_config(%s, 2, %s, FALSE)": ('{"batch_size": 16}',),
    "add_configs(%s, selection_table => %s)": ("added",),
    "drill_down(%s, 1, %s)": ('{"compile_params": {"lr": [0.02]}}',),
    "set_epochs(%s, 2, 1)": (),
    "set_epochs(%s, 4)": (),
}
"""The acts on the run with output table `acted` that have a `change`."""
Answer = Mapping[str, str | None]


def long(value: object) -> Any:
    """Return a parameter of a test that is long for this value."""
    return pytest.param(value, marks=pytest.mark.long)


@cache
def frozen_tables() -> Mapping[str, Rows]:
    """Return the rows of the dump, by table."""
    return read_tables(FILE.read_text())


def stored_json(table: str, column: str) -> list[Any]:
    """Return the values of a column of JSON that are not NULL."""
    texts = [row[column] for row in frozen_tables()[f"cerebro.{table}"]]
    return [json.loads(text) for text in texts if text is not None]


def copied(value: object) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value))


def answers(*topics: str) -> list[Any]:
    """Return a parameter for each stored answer of these topics; slow ones are marked long."""
    parameters = []
    for row in frozen_tables()["frozen.answer"]:
        topic, name = str(row["topic"]), str(row["name"])
        if topic in topics:
            label = run_names()[name] if topic == "resume" else name
            fast = topic in FAST_TOPICS or (topic, label) in FAST
            marks = [] if fast else [pytest.mark.long]
            parameters.append(pytest.param(row, id=f"{topic}-{label}", marks=marks))
    return parameters


@cache
def run_names() -> Mapping[str, str]:
    """Return the name of each run, or of its output table, by the run's id."""
    rows = frozen_tables()["cerebro.run_log"]
    outputs = [json.loads(row["spec"] or "")["model_output_table"] for row in rows]
    return {
        str(row["run_id"]): str(output or row["name"])
        for row, output in zip(rows, outputs, strict=True)
    }


def test_the_dump_has_every_kind_of_feature() -> None:
    """A later dump has kinds that are added: this one never changes."""
    recipes = stored_json("version_log", "recipe")
    features = [feature for recipe in recipes for feature in recipe["features"]]
    assert {(feature["kind"], feature.get("family")) for feature in features} == KINDS


def test_the_dump_has_every_template() -> None:
    tables = frozen_tables()
    configs = {row["template"] for row in tables["cerebro.config_log"]}
    assert configs == {*TEMPLATES, "models:1", None}
    versions = {row["template"] for row in tables["cerebro.version_log"]}
    assert versions >= {"ensemble", "registered", "models:1"}


@pytest.mark.parametrize(("table", "column"), CHECKED)
def test_the_dump_has_every_value_that_a_constraint_allows(table: str, column: str) -> None:
    values = {row[column] for row in frozen_tables()[f"cerebro.{table}"]}
    assert values == CHECKED[table, column]


def test_the_dump_has_every_search_and_every_key_of_a_spec() -> None:
    specs = stored_json("run_log", "spec")
    assert {spec["search"] for spec in specs} - {None} == SEARCHES
    assert {key for spec in specs for key, value in spec.items() if value is not None} == SPEC_KEYS
    trains = [spec["train"] for spec in specs if "train" in spec]
    assert {
        key for train in trains for key, value in train.items() if value is not None
    } == TRAIN_KEYS


def test_specs_are_written_as_they_were_read() -> None:
    for spec in stored_json("run_log", "spec"):
        assert copied(RunSpec.from_json(spec).to_json()) == spec


def test_plans_are_written_as_they_were_read() -> None:
    plans = stored_json("run_log", "plan")
    assert plans
    for plan in plans:
        assert copied(RunPlan.from_json(plan).to_json()) == plan


def test_recipes_are_written_as_they_were_read() -> None:
    recipes = stored_json("version_log", "recipe")
    outlines = [outline["recipe"] for outline in stored_json("grant_log", "outline")]
    for recipe in (*recipes, *outlines):
        assert copied(Recipe.from_json(recipe).to_json()) == recipe


def test_profiles_are_written_as_they_were_read() -> None:
    profiles = 0
    for row in frozen_tables()["cerebro.version_log"]:
        if row["profile"] is not None:
            recipe = Recipe.from_json(json.loads(row["recipe"] or ""))
            profile = json.loads(row["profile"])
            assert copied(Profile.from_json(profile, recipe).to_json()) == profile
            profiles += 1
    assert profiles


def test_readings_and_outlines_have_the_same_keys() -> None:
    for reading in stored_json("version_log", "reading"):
        assert read_recorded(reading).keys() == set(FORMATS)
    for outline in stored_json("grant_log", "outline"):
        assert outline.keys() == set(OUTLINE_FIELDS)


@pytest.fixture(scope="module")
def programs(server: Server) -> Iterator[Programs]:
    with opened(server.url("postgres", "postgres")) as administrator:
        yield Programs(administrator)


@pytest.fixture(scope="module")
def restored(server: Server, programs: Programs) -> Iterator[tuple[Workbench, Workbench]]:
    """Sessions of the superuser and of the owner of the runs, in a database that was restored."""
    with empty(server.url, f"formats_{WORKER}") as database:
        assert programs.run_script(FILE, database.superuser_url) == []
        with sessions(server, database) as (administrator, owner):
            administrator.rows("SELECT cerebro.grant_usage('cerebro')")
            owner.rows("SET TimeZone = 'Etc/UTC'")
            owner.fit_workers = 1
            yield administrator, owner


@pytest.fixture(scope="module")
def administrator(restored: tuple[Workbench, Workbench]) -> Workbench:
    return restored[0]


@pytest.fixture(scope="module")
def owner(restored: tuple[Workbench, Workbench]) -> Workbench:
    return restored[1]


def rename_columns(line: object) -> object:
    """Return a row with the names that its columns have now."""
    if not isinstance(line, dict):
        return line
    return {RENAMED.get(name, name): value for name, value in line.items()}


def share_ranks(board: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a leaderboard in which equal values have the rank of the first of them."""

    def place(line: dict[str, Any]) -> tuple[object, ...]:
        return line["run_id"], line["group_value"], line["status"] == "failed", line["value"]

    first: dict[tuple[object, ...], int] = {}
    for line in sorted(board, key=lambda line: int(line["rank"])):
        first.setdefault(place(line), line["rank"])
    shared = [{**line, "rank": first[place(line)]} for line in board]
    keys = ("run_id", "group_value", "rank", "mst_key")
    return sorted(shared, key=lambda line: [(line[key] is None, line[key]) for key in keys])


def check_answer(session: Workbench, row: Answer, tolerance: float = TOLERANCE) -> None:
    """Ask what was asked of the old version, and compare the answers."""
    if row["preparation"]:
        session.rows(row["preparation"])
    answer = session.value(str(row["query"]).replace('"column"', "column_name"))
    stored = json.loads(str(row["answer"]))
    if isinstance(stored, list):
        stored = [rename_columns(line) for line in stored]
    if row["topic"] == "evaluate":  # later versions have more metrics
        known = {line["metric"] for line in stored}
        answer = [line for line in answer if line["metric"] in known]
    if row["topic"] == "view":  # and their views more columns
        columns = {name for line in stored for name in line}
        answer = [{name: line[name] for name in columns & line.keys()} for line in answer]
    if row["name"] == "leaderboard":  # and rank equal values one after another
        answer = share_ranks(answer)
    assert list(find_differences(answer, stored, tolerance)) == []


@pytest.mark.parametrize("row", answers("view"))
def test_a_view_shows_what_it_showed(owner: Workbench, row: Answer) -> None:
    check_answer(owner, row, tolerance=0)


@pytest.mark.parametrize("row", answers("predict", "predict_row", "evaluate", "madlib"))
def test_a_model_predicts_what_it_predicted(owner: Workbench, row: Answer) -> None:
    check_answer(owner, row)


@pytest.mark.parametrize("row", answers("importance", "attribution", "drift"))
def test_a_model_is_explained_as_it_was(owner: Workbench, row: Answer) -> None:
    check_answer(owner, row)


@pytest.mark.long
def test_grants_hold_for_the_grantee(administrator: Workbench, owner: Workbench) -> None:
    role = f"formats_{WORKER}"
    with another_role(owner, administrator, role) as guest:
        own_schema(administrator, role)
        administrator.rows(f"GRANT pg_monitor TO {role}; GRANT SELECT ON points, things TO {role}")
        refused(guest, "SELECT model_weights FROM model")
        other_model = "SELECT * FROM cerebro.predict('text', 'things', 'id', 'cerebro')"
        refused(guest, other_model, code="42704")
        for model, source in GRANTED.items():
            query = f"SELECT * FROM cerebro.predict('{model}', '{source}', 'id', {{}}) ORDER BY id"
            rows = owner.rows(query.format("NULL"))
            assert guest.rows(query.format("'cerebro'")) == rows
            assert rows
        output = f"{role}.predicted"
        guest.rows(f"SELECT madlib_predict('model', 'points', 'id', 'x', '{output}', mst_key => 1)")
        assert guest.value(f"SELECT count(DISTINCT id) FROM {output}") == ROWS


def test_nothing_was_rewritten(
    programs: Programs, restored: tuple[Workbench, Workbench], tmp_path: Path
) -> None:
    """A second dump has the rows of the first one, but for columns that are new."""
    file = tmp_path / "dump"
    programs.done("pg_dump", "--data-only", "--file", str(file), restored[0].url)
    again = read_tables(file.read_text())
    for table, rows in frozen_tables().items():
        if table.startswith("cerebro."):
            columns = list(rows[0])
            retained = [[row[column] for column in columns] for row in again[table]]
            assert sorted(retained, key=repr) == sorted(
                ([row[column] for column in columns] for row in rows), key=repr
            ), table


@pytest.mark.parametrize(
    "model", ["bred", *map(long, ("every_kind", "several", "amounts", "grouped", "grown"))]
)
def test_a_version_is_verified(owner: Workbench, model: str) -> None:
    """The finding about the state may speak of other bits, and that about the software of it."""
    findings = owner.rows("SELECT * FROM cerebro.verify(%s, 'newest')", model)
    removed = model == "every_kind"  # by cerebro.vacuum_runs
    for what, ok, detail in findings:
        if what.startswith("state"):
            assert re.fullmatch(STATE, detail), (what, detail)
        elif what != "software":
            assert ok != (what == "packed rows" and removed), (what, detail)
    assert {what for what, _, _ in findings} >= {"source", "packed rows", "software", "state"}


@pytest.mark.parametrize("row", answers("resume"))
def test_an_interrupted_run_is_resumed(owner: Workbench, row: Answer) -> None:
    """It trains and evaluates what it did on the server where it was interrupted.

    The values of its metrics may be others: how a loop was executed decides how it rounds.
    """
    run_id = int(str(row["name"]))
    run = "SELECT status, spec ->> 'search' FROM cerebro.run WHERE run_id = %s"
    status, search = owner.row(run, run_id)
    assert status in ("interrupted", "cancelled")
    owner.rows(str(row["preparation"]))
    assert owner.row(run, run_id) == ("completed", search)
    scheduled = "SELECT FROM cerebro.act WHERE run_id = %s AND status = 'scheduled'"
    assert owner.rows(scheduled, run_id) == []
    assert evaluated_parts(owner.value(str(row["query"])), search) == evaluated_parts(
        json.loads(str(row["answer"])), search
    )


def evaluated_parts(answer: Any, search: str | None) -> Any:
    """Return what does not depend on values: the configurations of a search, else all metrics."""
    if isinstance(answer, int):
        return answer
    keys = [tuple(metric[:4]) for metric in answer]
    return {mst_key for mst_key, *_ in keys} if search else keys


@pytest.mark.parametrize(
    "output", ["by_pbt", *map(long, ("model", "acted", "by_asha", "by_halving", "by_tpe"))]
)
def test_a_completed_run_is_replayed(owner: Workbench, output: str) -> None:
    """Two replays are equal to the bit, and agree with what the old version trained.

    Adam divides gradients by their own size. Over batches of two rows, the rounding of another
    processor grows, so that only replays on one processor are compared.
    """
    run = """SELECT run_id, epochs, spec ->> 'model_selection_table', spec ->> 'validation_table'
             FROM cerebro.run WHERE spec ->> 'model_output_table' = %s ORDER BY run_id LIMIT 1"""
    run_id, epochs, configs, validation_table = owner.row(run, output)

    def replay(name: str) -> dict[tuple[object, ...], float]:
        again = owner.fit(
            "packed",
            f"{name}_{output}",
            configs,
            epochs,
            schedule="replay",
            replay_run=run_id,
            validation_table=validation_table,
            metrics_compute_frequency=1,
        )
        return metrics(owner, again)

    stored = metrics(owner, run_id)
    repeated = replay("replayed")
    assert repeated.keys() >= stored.keys()
    assert replay("repeated") == repeated
    unsteady = """SELECT mst_key FROM cerebro.config WHERE run_id = %s
                  AND compile_params ~ 'Adam' AND fit_params ~ 'batch_size=2,'"""
    keys = {key for (key,) in owner.rows(unsteady, run_id)}
    steady = {key: value for key, value in stored.items() if key[0] not in keys}
    assert steady
    assert {key: repeated[key] for key in steady} == pytest.approx(steady, abs=TOLERANCE)


def metrics(session: Workbench, run_id: int) -> dict[tuple[object, ...], float]:
    """Return the metrics of a run by configuration, epoch, data set and name."""
    query = "SELECT mst_key, epoch, dataset, name, value FROM cerebro.metric WHERE run_id = %s"
    return {tuple(key): value for *key, value in session.rows(query, run_id)}


@pytest.mark.parametrize("model", ["by_category", *map(long, ("every_kind", "series", "grouped"))])
def test_a_call_of_train_stores_the_same_json(owner: Workbench, model: str) -> None:
    """The call is made again with the arguments that its spec has, for a model of another name."""
    query = "SELECT spec FROM cerebro.run WHERE name = %s ORDER BY run_id"
    spec = owner.value(query, model)
    run_id = train_again(owner, spec, f"again_{model}")
    check_spec(owner, run_id, spec, {"name", "segments"})  # few rows lie on fewer segments now
    compile_params = """coalesce(compile_params, (
        SELECT m.compile_params FROM cerebro.member_log m
        WHERE m.model = version_log.model AND m.group_value = ''))"""  # of its only member
    columns = f"""task, target, target_type, template, params, metric, recipe, classes,
                  {compile_params}, backend, profile, group_by"""
    newer = "'{types,target_base}'::text[]"  # keys that the dump does not have
    keys = f"ARRAY(SELECT jsonb_object_keys((reading - {newer}) || software) ORDER BY 1)"
    version = f"SELECT {columns}, {keys} FROM cerebro.version_log WHERE model = %s"
    after, before = (name_forms(owner.row(version, name)) for name in (f"again_{model}", model))
    assert after == before


def name_forms(stored: Any) -> Any:
    """Return stored values with the names of forms that the dump has.

    It has neither those of labels nor the scale of a target, and no field `link`, whose usual value
    stands for what templates did before. Its rows lie on more segments, where batches end: its
    epochs have more steps.
    """
    text = re.sub(r', "(label|group)": "\w+"(?=[,}])', "", json.dumps(stored))
    text = re.sub(r'"(label|group)": "\w+", ', "", text)
    text = text.replace('"link": "identity", ', "")
    text = re.sub(r', "target_scale": \{[^}]*\}', "", text)
    text = re.sub(r"'decay_steps': \d+", "'decay_steps': 1", text)
    text = re.sub(QUOTED, r'"\1"', text)
    text = re.sub(r'"\$(\d+)\.00"', r'"\1"', text)
    for older, names in OLDER_FORMS.items():
        text = re.sub(f'"family": "({names})"', f'"family": "{older}"', text)
    return json.loads(text)


MONEY = '"family": "money"'
QUOTED = r'"\\"(\w+)\\""'
"""Amounts had a currency, and texts in JSON had quotes: rows have other hashes now."""
OLDER_FORMS = {"text": "boolean|citext|scalar", "number": "integer|real|numeric|single|money"}
"""Forms of categories; numbers had those of their types."""


def train_again(owner: Workbench, spec: Mapping[str, Any], model: str) -> int:
    """Call `cerebro.train` with the arguments of a spec; return the run's id."""
    train = spec["train"]
    arguments = {
        "columns": train["columns"],
        "types": json.dumps(train["types"]),
        "split": train["split"],
        "models": train["tried"],
        "space": json.dumps(train["space"]),
        "metric": train["metric"],
        "configs": train["configs"],
        "epochs": spec["num_iterations"],
        "seed": spec["seed"],
        "ensemble": train["ensemble"],
        "workers": spec["workers"],
        "group_by": train["group_by"],
        "min_group_rows": 10 if train["group_by"] else None,
    }
    casts = {"types": "::jsonb", "space": "::jsonb"}
    named = ", ".join(f"{name} => %s{casts.get(name, '')}" for name in arguments)
    call = f"SELECT run_id FROM cerebro.train(%s, %s, %s, {named})"
    rows = owner.rows(call, train["relation"], train["target"], model, *arguments.values())
    return int(rows[0][0])


def check_spec(owner: Workbench, run_id: int, before: Any, others: set[str]) -> None:
    """Check that a run has the spec of another one, but for names, versions and formats."""
    after = owner.value("SELECT spec FROM cerebro.run WHERE run_id = %s", run_id)
    assert after["tables"].keys() == before["tables"].keys()
    specs = []
    for spec in (before, after):
        # The packed tables of a model by name have the number of the run in their names.
        text = re.sub(r"r\d+_(training|validation)", r"r_\1", json.dumps(spec))
        specs.append(json.loads(text))
    for spec in specs:
        for name in ("version", "tables", *others):
            spec.pop(name)
        if "train" in spec:
            # NULL was the default of the argument, and meant TensorFlow.
            spec["backend"] = spec["backend"] or "tensorflow"
            spec["train"].pop("model")
            spec["train"].pop("reading")
    is_scaled = "target_scale" in json.dumps(after)
    if is_scaled or re.search(f"{MONEY}|{QUOTED}", json.dumps(before)):
        for spec in specs:
            for name in ("fingerprint", "hashes"):  # of the texts of categories, or of labels
                del spec["train"][name]
    if is_scaled:
        measures = [spec["train"].pop("measure") for spec in specs]
        assert measures[1]["mean"] == 0 and measures[1]["deviation"] == 1
    assert name_forms(specs[0]) == name_forms(specs[1])


@pytest.mark.parametrize("name", ["asha", *map(long, ("pbt", "tpe", "patience", "median"))])
def test_a_search_stores_the_same_json(owner: Workbench, name: str) -> None:
    """In the order of rotation it draws the same configurations, and decides alike."""
    run = "SELECT run_id, spec FROM cerebro.run WHERE spec ->> 'model_output_table' = %s"
    run_id, spec = owner.row(run, f"by_{name}")
    settings = ("seed", "schedule", "validation_table", "metrics_compute_frequency", "workers")
    named = {setting: spec[setting] for setting in (*settings, "search", "search_params")}
    epochs = spec["num_iterations"]
    again = owner.fit("packed", f"again_{name}", spec["model_selection_table"], epochs, **named)
    check_spec(owner, again, spec, {"model_output_table"})
    for table, columns in LOGGED.items():
        rows = f"SELECT {columns} FROM cerebro.{table} WHERE run_id = %s ORDER BY {columns}"
        assert owner.rows(rows, again) == owner.rows(rows, run_id), table


@pytest.mark.long
def test_an_act_stores_the_same_json(owner: Workbench) -> None:
    changes = """SELECT a.action, a.change FROM cerebro.act a JOIN cerebro.run r USING (run_id)
                 WHERE r.spec ->> 'model_output_table' = %s AND a.change <> '{}' ORDER BY act_id"""
    newest = owner.newest_run()
    with (
        closing(owner.another()) as person,
        owner.calling(lambda: owner.fit("packed", "acted_again", "slow", 3)) as result,
    ):
        eventually(lambda: person.rows("SELECT FROM cerebro.visit WHERE run_id > %s", newest))
        run_id = person.newest_run()
        person.rows("SELECT cerebro.pause_run(%s)", run_id)
        for call, values in ACTS.items():
            person.rows(f"SELECT cerebro.{call}", run_id, *values)
        person.rows("SELECT cerebro.continue_run(%s)", run_id)
        result.result()
    assert owner.rows(changes, "acted_again") == owner.rows(changes, "acted")


@pytest.mark.long
def test_a_model_is_refreshed_deployed_and_registered(owner: Workbench) -> None:
    newest = "SELECT max(version) FROM cerebro.model_version WHERE model = 'grown'"
    before = owner.value(newest)
    owner.rows("SELECT more(81, 90)")
    refresh = "SELECT version FROM cerebro.refresh('grown', since => 'id')"
    assert owner.value(refresh) == owner.value(newest) == before + 1
    assert owner.value("SELECT cerebro.deploy('grown', '1')") == 1
    assert owner.value("SELECT cerebro.register('registered', 'model', 1)") == 2
    columns = "recipe, classes, params -> 'table'"
    versions = f"SELECT {columns} FROM cerebro.version_log WHERE model = 'registered'"
    one, other = owner.rows(versions)
    assert one == other
