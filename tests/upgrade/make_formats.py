"""Creation of `database-formats.sql`: a small database with a run and a model of every kind.

The dump freezes what one version stores, so this script runs once for each frozen version:

    PYTHONPATH=tests/support .venv/bin/python tests/upgrade/make_formats.py FILE

It starts a server of its own. Table `frozen.answer` of the database has the answers that later
versions must give, each beside the statements that ask for it.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import psycopg2
from drawn_images import encoded
from dumps import Programs
from models import NOISY, TWO_BY_TWO, dense, sequential
from processes import eventually
from servers import started
from workbench import Workbench, compile_text, several

FILE_HEADER = """\
-- A database of version 0.3.0 as pg_dump wrote it, without pg_dump's comments, the settings, which
-- name files of a machine, and privileges on the extension, which cerebro.grant_usage grants. It
-- has a run, a model, a feature and an act of every kind. Table frozen.answer has the answers that
-- later versions must give. tests/upgrade/make_formats.py has the calls that made it.
-- Never changed: tests/upgrade/test_formats.py restores it.
"""
ROWS = 60
GRANTEE = "pg_monitor"
THINGS = f"""
CREATE TYPE mood AS ENUM ('calm', 'glad', 'sad');
CREATE TABLE things (
    id integer PRIMARY KEY, age integer, fare numeric(6, 1), price money, ratio real, doc jsonb,
    tag json, deck text, mood mood, fair boolean, opened date, noted timestamp, seen timestamptz,
    clock time, span interval, said text, place integer[], wide numeric[], wave real[],
    tile double precision[], photo bytea, same text, weight real, side text, label text,
    amount double precision);
INSERT INTO things
SELECT n, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 13 END, n * 31 % 17 / 10.0,
       (n * 17 % 11)::text::money, n * 13 % 9 / 8.0, to_jsonb(n * 13 % 7),
       to_json(chr(97 + n % 3)), (ARRAY['lower', 'upper', NULL])[n % 3 + 1],
       (ARRAY['calm', 'glad', 'sad']::mood[])[n * 5 % 7 % 3 + 1], n % 4 = 0,
       date '2020-01-01' + n % 9 * 41,
       timestamp '2021-03-04 05:06:07' + n % 7 * interval '55 hours',
       CASE WHEN n % 5 > 0 THEN timestamptz '2022-01-01 00:00:00+00' + n * interval '11 hours' END,
       time '06:00' + n % 9 * interval '83 minutes', n % 8 * interval '1 hour',
       (SELECT string_agg((ARRAY['red', 'blue', 'far', 'off'])[(n * w) % 4 + 1] || (n * w) % 7, ' ')
        FROM generate_series(1, 5) w),
       ARRAY[n % 3, n * 5 % 7, n * 3 % 11],
       (SELECT array_agg(n * w * w % 10) FROM generate_series(1, 65) w),
       CASE WHEN n % 9 > 0 THEN
           (SELECT array_agg(round(sin(n + w / 3.0)::numeric, 2)) FROM generate_series(1, 8) w) END,
       (SELECT array_agg(ARRAY[(n * w) % 7, w, n % 5, n % 11]) FROM generate_series(1, 4) w),
       NULL, 'one', 1 + n % 2, CASE n % 5 WHEN 0 THEN 'validation' ELSE 'training' END,
       (ARRAY['high', 'low', 'middle'])[n * 31 % 97 / 33 + 1], n * 31 % 97 + 0.5 * (n % 3)
FROM generate_series(1, {ROWS}) n;
CREATE TABLE copies AS SELECT deck, fair, label FROM things, generate_series(1, 2);
CREATE TABLE orders (id integer PRIMARY KEY, entered date, size real, shop text, comes text);
CREATE FUNCTION more(low integer, high integer) RETURNS void LANGUAGE sql AS $$
INSERT INTO orders SELECT n, date '2020-01-01' + n, n * 7919 % 1000 / 100.0,
                          (ARRAY['a', 'b', NULL])[n % 3 + 1],
                          (ARRAY['early', 'late', 'never'])[n * 7919 % 1000 / 334 + 1]
FROM generate_series(low, high) n $$;
SELECT more(1, 60);
CREATE TABLE kept_orders AS SELECT * FROM orders WHERE id % 4 = 0"""
PAIRS = """
SELECT training_preprocessor_dl(
    'points', 'pairs', 'label, amount', 'x, pair', 24, 2.0, n_segments => 2, seed => 7,
    dependent_type => 'class, float', sample_weight_varname => 'flag')"""
TYPES = {"wave": "series", "tile": "image", "photo": "image", "said": "text", "wide": "vector"}
NETWORKS = ("realmlp", "realmlp_simple", "tabm", "resnet", "transformer")
WIDE: dict[str, tuple[str, dict[str, object]]] = {
    "said": ("text", {"word": 2, "width": 2}),
    "wave": ("series", {"block": "recurrent", "width": 2}),
    "photo": ("cnn", {"width": 2}),
}
"""The template and its fields for a column that is an input of its own."""
SMALL: dict[str, object] = {"width": 8, "depth": 1, "batch_size": 16}
METRIC = """
import keras

def half_accuracy(y_true, y_pred):
    return keras.metrics.categorical_accuracy(y_true, y_pred) / 2
"""
WRONG = """
def wrong(y_true, y_pred):
    return undefined(y_true)
"""
FRONT = (dense(64, "wide", trainable=False), dense(6, "front", "tanh", trainable=False))
FROZEN = sequential([4], *FRONT, dense(3, "output", "softmax"))
FROZEN_FLOATS = 5 * 64 + 65 * 6 + 7 * 3
GRID = """{'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']], 'optimizer_params_list':
    [{'optimizer': ['SGD', 'Adam'], 'lr': [0.001, 0.1, 'log']}]}"""
FITS = "{'batch_size': [8], 'epochs': [1]}"
SLOW_FITS = "{'batch_size': [1], 'epochs': [8]}"
SPACE = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": [["accuracy"]],
        "optimizer_params_list": [{"optimizer": ["SGD", "Adam"], "lr": [0.001, 0.1, "log"]}],
    },
    "fit_params": {"batch_size": [8, 16]},
}
SLOW_SPACE = {**SPACE, "fit_params": {"batch_size": [1], "epochs": [8]}, "models": [2]}
DRAWN = {"space": SPACE, "configs": 4}
SEARCHES: dict[str, dict[str, object]] = {
    "grid": {"max_visits": 6, "target": 0.0},
    "halving": {"eta": 2},
    "hyperband": {"eta": 2},
    "asha": {**DRAWN, "eta": 2, "live_states": 1, "sampler": "tpe", "start_from": ["run:1"]},
    "pasha": {"eta": 2, "first_epochs": 1},
    "median": {"grace_epochs": 0, "others": 1},
    "patience": {"patience": 1, "min_delta": 0.5, "metric": "val_loss"},
    "pbt": {"interval": 1, "quantile": 0.5, "space": SPACE, "configs": 3},
    "random": {**DRAWN, "max_cpu": 3600},
    "tpe": {**DRAWN, "target": 0.999},
    "cmaes": DRAWN,
}
"""The parameters of each search, by its name."""
WITH_RUNGS = ("hyperband", "asha", "pasha")
AUTOML = {
    "by_hyperband_of_madlib": ("hyperband", "R=2, eta=2"),
    "by_hyperopt": ("hyperopt", "num_configs=3, num_iterations=2"),
    "by_rand": ("hyperopt", "num_configs=2, num_iterations=1, algorithm=rand"),
}
COMPLETED = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
CANCEL = "SELECT cerebro.cancel(%s)"
TERMINATE = "SELECT pg_terminate_backend(pid) FROM cerebro.run WHERE run_id = %s"


Call = Callable[[], object]


class Maker:
    """The sessions that fill the database.

    Attributes:
        bench: the session that makes the calls.
        watcher: a session of the same role that watches the runs, and acts on them.
        superuser: a session of the superuser.
    """

    def __init__(self, url: str, superuser_url: str) -> None:
        self.bench = Workbench(url, fit_workers=1)
        self.watcher = Workbench(url)
        self.superuser = Workbench(superuser_url)
        self.superuser.rows("SET search_path = public, madlib")

    def reconnect(self) -> None:
        """Replace the session that calls, whose backend was terminated."""
        self.bench = Workbench(self.bench.url, fit_workers=1)

    def close(self) -> None:
        for session in (self.bench, self.watcher, self.superuser):
            session.close()

    def train(self, source: str, target: str, model: str, **options: object) -> int:
        """Call `cerebro.train` with small networks and few epochs; return the run's id."""
        defaults: dict[str, object] = {
            "models": ["linear"], "configs": 1, "epochs": 2, "ensemble": 1, "seed": 1, "workers": 1,
            "space": {"batch_size": 16},
        }  # fmt: skip
        arguments = defaults | options
        named = ", ".join(f"{name} => %s{type_of(value)}" for name, value in arguments.items())
        values = [to_sql(value) for value in arguments.values()]
        print("train", model, file=sys.stderr)
        call = f"SELECT run_id FROM cerebro.train(%s, %s, %s, {named})"
        return int(self.bench.rows(call, source, target, model, *values)[0][0])

    def fit(self, output: str, configs: str, epochs: int, **options: object) -> int:
        """Call `madlib_fit_multiple_model` over the packed points; return the run's id."""
        print("fit", output, file=sys.stderr)
        named = {"seed": 1, "schedule": "rotation", "metrics_compute_frequency": 1, **options}
        return self.bench.fit("packed", output, configs, epochs, **named)

    @contextmanager
    def paused(self, call: Call) -> Iterator[tuple[int, Future[object]]]:
        """Make a call in another thread, and pause its run after the first visit or a few more."""
        before = self.watcher.newest_run()
        with self.bench.calling(call) as result:
            eventually(lambda: self.watcher.value(COMPLETED, before) >= 1 or result.done())
            run_id = self.watcher.newest_run()
            assert self.act("pause_run(%s)", run_id) == "done"
            yield run_id, result

    def act(self, call: str, *values: object) -> str:
        """Act on a live run; return the status of the act once the run has taken it up."""
        act_id = self.watcher.value(f"SELECT cerebro.{call}", *values)
        status = "SELECT status FROM cerebro.act WHERE act_id = %s"
        eventually(lambda: self.watcher.value(status, act_id) != "scheduled")
        return str(self.watcher.value(status, act_id))

    def act_at_once(self, acts: Mapping[str, tuple[object, ...]], run_id: int) -> None:
        """Act on a live run with nothing between the acts, and wait until it has taken them up."""
        values = [value for more in acts.values() for value in (run_id, *more)]
        calls = ", ".join(f"cerebro.{call}" for call in acts)
        identifiers = list(self.watcher.row(f"SELECT {calls}", *values))
        scheduled = "SELECT FROM cerebro.act WHERE act_id = ANY (%s) AND status = 'scheduled'"
        eventually(lambda: not self.watcher.rows(scheduled, identifiers))

    def interrupt(self, call: Call, statement: str = CANCEL, visits: int = 2) -> int:
        """End the run of a call by a statement after so many visits or more; return its id."""
        before = self.watcher.newest_run()
        with self.bench.calling(call) as result:
            eventually(lambda: self.watcher.value(COMPLETED, before) >= visits or result.done())
            run_id = self.watcher.newest_run()
            self.end(run_id, result, statement)
        return run_id

    def end(self, run_id: int, result: Future[object], statement: str) -> None:
        """End a run by a statement, and wait until its call has failed."""
        self.watcher.rows(statement, run_id)
        with suppress(psycopg2.Error):
            result.result()
            raise AssertionError(f"run {run_id} was not interrupted")


def type_of(value: object) -> str:
    """Return the cast that an argument of `cerebro.train` needs."""
    return "::jsonb" if isinstance(value, dict) else ""


def to_sql(value: object) -> object:
    """Return a value as the driver takes it; an object as JSON."""
    return json.dumps(value) if isinstance(value, dict) else value


def make_tables(maker: Maker) -> None:
    """Make the raw tables, the packed tables and the architectures."""
    bench = maker.bench
    bench.data()
    bench.rows(THINGS)
    drawing = np.random.default_rng(1)
    for number in range(1, ROWS + 1):
        if number % 10:
            pixels = drawing.integers(0, 4, (8, 8, 1)).astype(np.uint8) * 60
            file = psycopg2.Binary(encoded(pixels))
            bench.rows("UPDATE things SET photo = %s WHERE id = %s", file, number)
    bench.rows("CREATE VIEW columns AS SELECT id, x[1] AS a, x[2] AS b, label, amount FROM points")
    bench.model(NOISY)
    floats = drawing.normal(size=FROZEN_FLOATS).astype("<f4").tobytes()
    bench.rows("SELECT load_keras_model('models', %s::json, %s, 'frozen front')", FROZEN, floats)
    bench.model(sequential([4], dense(1, "output", "linear")))
    bench.model(json.dumps(TWO_BY_TWO))
    bench.pack("packed", 2, buffer=24)
    bench.rows("CREATE TABLE half AS SELECT * FROM points WHERE id % 4 = 0")
    pack = "SELECT validation_preprocessor_dl('half', 'packed_val', 'label', 'x', 'packed', 24)"
    bench.rows(pack)
    bench.pack("amounts", 2, target="amount", kind="float", buffer=24)
    bench.rows(PAIRS)


def make_configurations(maker: Maker) -> None:
    """Make the custom functions and the model selection tables."""
    bench = maker.bench
    for name, source in (("half_accuracy", METRIC), ("wrong", WRONG)):
        maker.superuser.rows("SELECT load_custom_function('functions', %s, %s)", source, name)
    adam = compile_text("Adam(learning_rate=0.01)")
    losses = "loss=['categorical_crossentropy','mse']"
    two_outputs = f"optimizer='SGD()',{losses},metrics=[['accuracy'],['mae']]"
    bench.configure("two", [adam, *several(1)])
    bench.configure("three", several(3))
    bench.configure("slow", several(2), ["batch_size=1,epochs=8"], 2)
    bench.configure("added", [adam], ["batch_size=2,epochs=2"], 2)
    bench.configure("heads", several(2), model=3)
    bench.configure("slow_heads", several(2), ["batch_size=1,epochs=8"], 3)
    bench.configure("regression", [compile_text(loss="mse", metrics=["mae"])], model=4)
    bench.configure("outputs", [two_outputs], model=5)
    select = """SELECT load_model_selection_table('models', %s, ARRAY[1], %s, ARRAY['batch_size=8'],
                                                  'functions')"""
    own = compile_text(metrics=["half_accuracy"])
    wrong = compile_text(metrics=["wrong"])
    bench.rows(select, "mixed", [own, wrong])
    bench.rows(select, "failing", [wrong])


def make_fits(maker: Maker) -> None:
    """Make a completed run of each kind that a fit can be."""
    bench = maker.bench
    named = {"validation_table": "packed_val"}
    maker.fit("model", "two", 2, name="first", description="a run", **named)
    maker.fit("model", "two", 1, warm_start=True, **named)
    maker.fit("own", "mixed", 1)
    with suppress(psycopg2.Error):
        maker.fit("failed", "failing", 1)
    maker.fit("short", "two", 2, dtype_policy="mixed_bfloat16", training_metrics=False, **named)
    maker.fit("averaged", "two", 2, strategy="average", schedule="longest")
    maker.fit("late", "two", 2, strategy="late_average", schedule="longest")
    maker.fit("brief", "slow", 3, max_runtime="1 ms")
    maker.fit("repeated", "two", 2, schedule="replay", seed=None, replay_run=1, **named)
    single = """SELECT madlib_fit('packed', 'single', 'models', 1, %s, 'batch_size=8', 2, seed => 1,
                                  name => 'single')"""
    bench.rows(single, compile_text())
    bench.fit("amounts", "amount_model", "regression", 2, seed=1)
    bench.fit("pairs", "pair_model", "outputs", 2, seed=1)
    lose_a_worker(maker)


def lose_a_worker(maker: Maker) -> None:
    """Make a run with a visit that failed, because its worker was terminated, and was repeated."""
    before = maker.watcher.newest_run()
    terminate = """SELECT pg_terminate_backend(worker_pid) FROM cerebro.visit
                   WHERE run_id > %s AND status = 'running' LIMIT 1"""
    failed = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'failed'"
    with maker.bench.calling(lambda: maker.fit("lossy", "slow", 4)) as result:
        eventually(lambda: maker.watcher.rows(terminate, before) or result.done())
        result.result()
    assert maker.watcher.value(failed, before) > 0


def make_searches(maker: Maker) -> None:
    """Make a completed run of each search, and the runs of `madlib_automl`."""
    for name, parameters in SEARCHES.items():
        epochs = 4 if name in WITH_RUNGS else 2
        options = {"search": name, "search_params": json.dumps(parameters)}
        maker.fit(f"by_{name}", "three", epochs, validation_table="packed_val", **options)
    call = """SELECT madlib_automl('packed', %s, 'models', %s, ARRAY[1], %s, %s, %s, %s,
                                   validation_table => 'packed_val', random_state => 1)"""
    for output, method in AUTOML.items():
        print("automl", output, file=sys.stderr)
        maker.bench.rows(call, output, f"{output}_mst", GRID, FITS, *method)


def make_acts(maker: Maker) -> None:
    """Make runs with an act of each kind: two are completed, one is paused and lost its session."""
    with maker.paused(lambda: maker.fit("acted", "slow", 3)) as (run_id, result):
        act_on_fit(maker, run_id)
        assert maker.act("continue_run(%s)", run_id) == "done"
        result.result()
    options = {"configs": 2, "epochs": 4, "columns": "age"}
    with maker.paused(lambda: maker.train("things", "label", "steered", **options)) as (
        run_id,
        result,
    ):
        drill = json.dumps({"lr": [0.02]})
        space = json.dumps({"lr": [0.001, 0.1, "log"], "models": ["linear"]})
        acts = {
            "clone_config(%s, 1, %s)": ('{"lr": 0.02}',),
            "add_configs(%s, %s, 1)": (space,),
            "drill_down(%s, 1, %s)": (drill,),
            "set_epochs(%s, 5, 1)": (),
            "continue_run(%s)": (),
        }
        maker.act_at_once(acts, run_id)
        result.result()


def act_on_fit(maker: Maker, run_id: int) -> None:
    """Act on a paused run in every way at once; one act is refused, and the run is paused again."""
    change = json.dumps({"optimizer": "SGD(learning_rate=0.05)", "batch_size": 8})
    drill = json.dumps({"compile_params": {"lr": [0.02]}})
    acts: dict[str, tuple[object, ...]] = {
        "stop_config(%s, 1)": (),
        "continue_config(%s, 1)": (),
        "prioritize(%s, 2)": (),
        "clone_config(%s, 1, %s)": (change,),
        "clone_config(%s, 2, %s, FALSE)": (json.dumps({"batch_size": 16}),),
        "add_configs(%s, selection_table => %s)": ("added",),
        "drill_down(%s, 1, %s)": (drill,),
        "set_epochs(%s, 2, 1)": (),
        "set_epochs(%s, 4)": (),
        "continue_config(%s, 2)": (),
        "pause_run(%s)": (),
    }
    maker.act_at_once(acts, run_id)


def make_models(maker: Maker) -> None:
    """Make a model by name of each kind of feature, template and split."""
    all_features = "* except side, amount, weight"
    maker.train("things", "label", "every_kind", columns=all_features, types=TYPES)
    for column, (template, fields) in WIDE.items():
        options = {"columns": column, "types": {column: TYPES[column]}, "space": SMALL | fields}
        maker.train("things", "label", template, models=[template], **options)
    times = "price, seen, clock, ratio"
    categories = dict.fromkeys(times.split(", "), "category")
    maker.train(
        "things", "label", "by_category", columns=times, split="group mood", types=categories
    )
    median: dict[str, object] = {
        "search": "median",
        "search_params": {"grace_epochs": 1, "others": 1},
        "configs": 3,
        "epochs": 3,
    }
    maker.train(
        "things", "fair", "by_side", columns="age", split="column side", metric="auc", **median
    )
    by_table = {"split": "table kept_orders", "metric": "log_loss"}
    maker.train("orders", "comes", "by_table", columns="size", **by_table)
    maker.train("orders", "comes", "by_table", columns="shop", metric="log_loss")
    maker.train("copies", "label", "of_copies")
    maker.train("points", "label", "loaded", columns="x", models=["models:1"])


def make_kept_models(maker: Maker) -> None:
    """Make models whose packed rows are kept: of searches, refreshes, groups and an ensemble."""
    bench = maker.bench
    ensemble = {"models": list(NETWORKS), "configs": len(NETWORKS), "epochs": 8, "ensemble": 4}
    space = SMALL | {"members": 2}
    maker.train("columns", "amount", "several", columns="a, b", space=space, **ensemble)
    template = "SELECT template FROM cerebro.model_version WHERE model = 'several'"
    assert bench.value(template) == "ensemble"
    make_limited_model(maker)
    groups = {"group_by": "fair", "min_group_rows": 10}
    maker.train("things", "amount", "grouped", columns="age", **groups)
    pbt = {"search": "pbt", "search_params": {"quantile": 0.5}, "configs": 3, "epochs": 3}
    maker.train("things", "label", "bred", columns="age", **pbt)
    tpe = {"columns": "age", "search": "tpe"}
    learned = maker.train("things", "label", "learned", configs=3, **tpe)
    maker.train("things", "label", "learned", configs=4, start_from=[f"run:{learned}"], **tpe)
    bench.rows("SELECT cerebro.deploy('learned', '1')")
    maker.train("orders", "comes", "grown", columns="size")
    for first in (61, 71):
        bench.rows("SELECT more(%s, %s)", first, first + 9)
        bench.rows("SELECT * FROM cerebro.refresh('grown', since => 'id')")


def make_limited_model(maker: Maker) -> None:
    """Make a regression with weights and limits, in another time zone, while work has a price."""
    maker.superuser.rows("INSERT INTO cerebro.setting VALUES ('price_per_core_hour', '0.01')")
    maker.bench.rows("SET TimeZone = 'Europe/Berlin'")
    limits = {"max_cpu": "1 hour", "max_cost": 1000.0}
    split = {"split": "last 0.25 by seen", "weight": "weight", "metric": "mae"}
    network = {"models": ["realmlp_simple"], "space": SMALL}
    maker.train("things", "amount", "amounts", columns="age, seen", **split, **network, **limits)
    maker.bench.rows("RESET TimeZone")
    maker.superuser.rows("DELETE FROM cerebro.setting WHERE name = 'price_per_core_hour'")


def make_registered_models(maker: Maker) -> None:
    """Register models of model tables, and grant a model of each kind."""
    bench = maker.bench
    bench.rows("SELECT cerebro.register('registered', 'model', 2)")
    model = bench.model(sequential([1], dense(3, "output", "softmax")))
    bench.configure("plain", several(1), model=model)
    bench.pack("plain_packed", 2, source="columns", inputs="a", buffer=24)
    bench.fit("plain_packed", "plain_model", "plain", 2, seed=1)
    bench.rows("SELECT cerebro.register('registered_number', 'plain_model', 1)")
    bench.rows("SELECT cerebro.register('registered_amount', 'amount_model', 1)")
    for name in ("series", "grouped", "registered", "model"):
        bench.rows("SELECT cerebro.grant_predict(%s, %s::regrole)", name, GRANTEE)


def make_interrupted(maker: Maker) -> None:
    """Make a run of each kind that must be resumed."""
    maker.fit("written", "heads", 2, feature_budget=1)
    make_interrupted_searches(maker)
    maker.interrupt(lambda: maker.fit("resumed_stored", "slow_heads", 3, feature_budget=1))
    single = """SELECT madlib_fit('packed', 'resumed_single', 'models', 2, %s,
                                  'batch_size=1,epochs=8', 4, seed => 1)"""
    maker.interrupt(lambda: maker.bench.rows(single, compile_text()))
    late = {"strategy": "late_average", "schedule": "longest"}
    maker.interrupt(lambda: maker.fit("resumed_late", "slow", 4, **late))
    longest = {"schedule": "longest", "workers": 2}
    run_id = maker.interrupt(lambda: maker.fit("resumed_longest", "slow", 4, **longest))
    maker.superuser.rows(REPLAN, run_id)
    maker.interrupt(
        lambda: maker.train("things", "label", "resumed", epochs=40, columns="age"),
    )
    with maker.paused(lambda: maker.fit("resumed_acts", "slow", 4)) as (run_id, result):
        act_on_fit(maker, run_id)
        maker.end(run_id, result, TERMINATE)
    maker.reconnect()
    act = "INSERT INTO cerebro.act_log (run_id, action, mst_key) VALUES (%s, 'prioritise', 1)"
    maker.bench.rows(act, run_id)
    maker.interrupt(lambda: maker.fit("resumed_lost", "slow", 4), TERMINATE)
    maker.reconnect()
    make_queued(maker)


REPLAN = """
INSERT INTO cerebro.decision_log
    (run_id, decision_no, action, rule, epoch, visits, last_epoch, reason)
VALUES (%s, 1, 'replan', 'mop', 0, 0, 4, 'as if it were expected to be done sooner')"""


def make_interrupted_searches(maker: Maker) -> None:
    """Make runs whose searches must go on: one with configurations that rest, and others."""
    drawn = {"space": SLOW_SPACE, "configs": 4}
    kinds: dict[str, dict[str, object]] = {
        "asha": {"eta": 2, "sampler": "tpe", **drawn},
        "pbt": {"quantile": 0.5, **drawn},
    }
    options = {"validation_table": "packed_val", "keep_states": False}
    for name, parameters in kinds.items():
        search = {"search": name, "search_params": json.dumps(parameters), **options}
        call = partial(maker.fit, f"resumed_{name}", "slow", 3, **search)
        maker.interrupt(call, TERMINATE, 7 if name == "asha" else 2)
        maker.reconnect()
    automl = """SELECT madlib_automl('packed', 'resumed_automl', 'models', 'resumed_automl_mst',
                                     ARRAY[2], %s, %s, 'hyperband', 'R=2, eta=2',
                                     random_state => 1)"""
    maker.interrupt(lambda: maker.bench.rows(automl, GRID, SLOW_FITS))


def make_queued(maker: Maker) -> None:
    """Make a run that lost its session in the queue, and quotas that leave later runs alone."""
    administrator = maker.superuser
    administrator.rows("INSERT INTO cerebro.quota (cpu_a_day) VALUES ('1 microsecond')")
    submit = "SELECT cerebro.submit('packed', 'resumed_queued', 'two', 1, seed => 1)"
    run_id = maker.bench.value(submit)
    status = "SELECT status FROM cerebro.run WHERE run_id = %s"
    eventually(lambda: maker.watcher.value(status, run_id) == "queued")
    maker.watcher.rows(TERMINATE, run_id)
    eventually(lambda: maker.watcher.value(status, run_id) != "queued")
    administrator.rows("UPDATE cerebro.quota SET cpu_a_day = '1000 days', trainers = 100")
    administrator.rows("INSERT INTO cerebro.quota VALUES ('cerebro', 100, 1000, 10, '1000 days')")


def tidy(maker: Maker) -> None:
    """Drop the output tables of searches, and the states of all runs so far."""
    fits = ("own", "short", "averaged", "late", "brief", "repeated", "lossy", "acted")
    for output in (*fits, *(f"by_{name}" for name in SEARCHES), *AUTOML):
        for suffix in ("", "_info", "_summary", "_mst", "_mst_summary"):
            maker.bench.rows(f"DROP TABLE IF EXISTS {output}{suffix}")
    maker.bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")


MODELS = {
    "every_kind": "things", "text": "things", "series": "things", "cnn": "things",
    "by_category": "things", "by_side": "things", "by_table": "orders", "loaded": "points",
    "several": "columns", "amounts": "things", "grouped": "things", "bred": "things",
    "learned": "things", "grown": "orders", "steered": "things", "registered": "points",
    "registered_number": "columns", "registered_amount": "points",
}  # fmt: skip
"""The models by name, each with the table that it predicts.

Model of_copies is not among them: no column names the rows of its table.
"""
EXPLAINED = (
    "every_kind",
    "amounts",
    "text",
    "series",
    "cnn",
    "grouped",
    "several",
    "registered_number",
)
FROM_RAW = [name for name in MODELS if not name.startswith("registered")]
VIEWS = {
    "run": ("spec, pid, software", "true", "run_id"),
    "config": (
        "params, architecture, compile_params, fit_params",
        "run_id % 5 = 0",
        "run_id, mst_key",
    ),
    "leaderboard": ("params", "run_id % 5 = 0", "run_id, group_value, rank, mst_key"),
    "progress": ("elapsed, eta", "run_id % 5 = 0", "run_id"),
    "timeline": ("", "run_id IN (1, 4)", "run_id, started_at, kind, mst_key"),
    "learning_curve": ("", "run_id IN (1, 4)", "run_id, mst_key, epoch, dataset, name"),
    "cost": ("stored_byte_seconds, money, kwh", "run_id % 5 = 0", "run_id, mst_key"),
    "decision": ("", "run_id % 5 = 0", "run_id, decision_no"),
    "act": ("", "true", "act_id"),
    "parameter": ("", "run_id IN (1, 3)", "run_id, mst_key, name"),
    "quota": ("", "true", "role"),
    "model": ("", "true", "model"),
    "model_version": ("params, software", "true", "model, version"),
    "model_group": ("", "true", "model, version, group_value"),
    "feature": ("", "model IN ('every_kind', 'grouped', 'registered')", "model, version, place"),
}
"""The columns of each view that are left out, the rows that are shown, and their order.

Columns are left out that depend on the time, or are compared with the tables of the log anyway.
"""
ANSWER = """
CREATE SCHEMA frozen;
CREATE TABLE frozen.answer (
    topic text, name text, preparation text, query text NOT NULL, answer jsonb,
    PRIMARY KEY (topic, name))"""


def add_answer(maker: Maker, topic: str, name: str, query: str, preparation: str = "") -> None:
    """Store a query with the answer that the database gives now.

    Args:
        preparation: a statement that is executed before the query.
    """
    if preparation:
        maker.bench.rows(preparation)
    answer = maker.bench.value(query)
    assert answer is not None, (topic, name)
    insert = "INSERT INTO frozen.answer VALUES (%s, %s, %s, %s, %s)"
    maker.bench.rows(insert, topic, name, preparation or None, query, json.dumps(answer))


def collected(row: str, order: str, source: str) -> str:
    """Return a query for the rows of a source as one array of JSON."""
    return f"SELECT jsonb_agg({row} ORDER BY {order}) FROM {source}"


def answer_views(maker: Maker) -> None:
    """Store what the views show."""
    maker.bench.rows(ANSWER)
    for view, (columns, condition, order) in VIEWS.items():
        row = f"to_jsonb(v) - '{{{columns}}}'::text[]"
        order = ", ".join(f"v.{column}" for column in order.split(", "))
        query = collected(row, order, f"cerebro.{view} v WHERE {condition}")
        add_answer(maker, "view", view, query)


def answer_predictions(maker: Maker) -> None:
    """Store what models by name predict, and how good their predictions are."""
    for model, table in MODELS.items():
        source = f"cerebro.predict('{model}', '{table}', 'id') p WHERE p.id::integer % 6 = 0"
        query = collected("to_jsonb(p)", "p.id::integer", source)
        add_answer(maker, "predict", model, query)
        row = f"cerebro.predict_row('{model}', to_jsonb(t))"
        query = collected(row, "t.id", f"{table} t WHERE t.id IN (1, 2)")
        add_answer(maker, "predict_row", model, query)
        source = f"cerebro.evaluate('{model}', '{table}') e WHERE e.class IS NULL"
        query = collected("to_jsonb(e)", "e.metric", source)
        add_answer(maker, "evaluate", model, query)
    distinct = "SELECT DISTINCT to_jsonb(p) AS row FROM cerebro.predict('of_copies', 'copies') p"
    query = collected("c.row", "c.row ->> 'probabilities'", f"({distinct}) c")
    add_answer(maker, "predict", "of_copies", query)


def answer_explanations(maker: Maker) -> None:
    """Store what predictions of models are owed to, and how far rows lie from those of training."""
    for model in EXPLAINED:
        table = MODELS[model]
        source = f"cerebro.importance('{model}', '{table}') i"
        query = collected("to_jsonb(i)", "i.column_name", source)
        add_answer(maker, "importance", model, query)
        source = f"cerebro.attribution('{model}', '{table}', 'id') a WHERE a.id = '1'"
        query = collected("to_jsonb(a)", "a.column_name, a.patch", source)
        add_answer(maker, "attribution", model, query)
    for model in FROM_RAW:
        source = f"cerebro.drift('{model}', '{MODELS[model]}') d"
        query = collected("to_jsonb(d)", "d.column_name", source)
        add_answer(maker, "drift", model, query)


PREDICTING = {
    "predict": "madlib_predict('model', 'points', 'id', 'x', '{}', mst_key => 1)",
    "predict_single": "madlib_predict('single', 'points', 'id', 'x', '{}', 'response')",
    "predict_pair": "madlib_predict('pair_model', 'points', 'id', 'x, pair', '{}', mst_key => 1)",
    "predict_byom": "madlib_predict_byom('models', 3, 'points', 'id', 'x', '{}')",
}
EVALUATING = {
    "evaluate": "madlib_evaluate('model', 'packed_val', '{}', mst_key => 2)",
    "evaluate_single": "madlib_evaluate('single', 'packed', '{}')",
}


def answer_tables(maker: Maker) -> None:
    """Store what model tables predict, and what of a run can be written again."""
    for name, call in (PREDICTING | EVALUATING).items():
        table = f"again_{name}"
        condition = " WHERE t.id % 12 = 0" if name in PREDICTING else ""
        query = collected("to_jsonb(t)", "to_jsonb(t)::text", f"{table} t{condition}")
        add_answer(maker, "madlib", name, query, f"SELECT {call.format(table)}")
        maker.bench.rows(f"DROP TABLE {table}")
    run_id = maker.bench.value("SELECT run_id FROM written_summary")
    query = """SELECT to_jsonb(bool_and(a.model_weights = w.model_weights))
               FROM again a JOIN written w USING (mst_key)"""
    write = f"SELECT cerebro.write_outputs({run_id}, 'again')"
    add_answer(maker, "madlib", "write_outputs", query, write)
    maker.bench.rows("DROP TABLE again, again_info, again_summary")


INTERRUPTED = """
SELECT run_id, spec ->> 'schedule' FROM cerebro.run
WHERE status IN ('interrupted', 'cancelled') ORDER BY 1"""


def resumed_answers(maker: Maker) -> str:
    """Resume all interrupted runs; return a statement that stores their metrics."""
    bench = maker.bench
    bench.rows("DELETE FROM frozen.answer")
    for run_id, schedule in bench.rows(INTERRUPTED):
        print("resume", run_id, file=sys.stderr)
        source = f"cerebro.metric m WHERE m.run_id = {run_id}"
        order = "m.mst_key, m.epoch, m.dataset, m.name"
        query = collected(f"jsonb_build_array({order}, m.value)", order, source)
        if schedule == "longest":
            # The order of visits depends on the clock.
            query = f"SELECT to_jsonb(count(DISTINCT m.mst_key)) FROM {source}"
        add_answer(maker, "resume", str(run_id), query, f"SELECT cerebro.resume({run_id})")
    block = io.StringIO()
    columns = "topic, name, preparation, query, answer"
    copy = f"COPY (SELECT {columns} FROM frozen.answer ORDER BY name) TO STDOUT"
    with bench.connection.cursor() as cursor:
        cursor.copy_expert(copy, block)
    return f"\nCOPY frozen.answer ({columns}) FROM stdin;\n{block.getvalue()}\\.\n"


MACHINE = re.compile(r"\\(un)?restrict |SET (transaction_timeout|default_table_access_method) ")
OF_EXTENSION = re.compile(
    r"(GRANT|REVOKE) .* ON (SCHEMA|FUNCTION|PROCEDURE|TABLE|SEQUENCE) "
    r"(cerebro|cerebro_optuna|madlib)\b"
)


def stripped(dump: str) -> str:
    """Return a dump without comments, repeated blank lines, and statements for its machine."""
    lines: list[str] = []
    copying = False
    for line in dump.splitlines():
        ignored = line.startswith("--") or MACHINE.match(line) or OF_EXTENSION.match(line)
        repeated = not line and bool(lines) and not lines[-1]
        if copying or not (ignored or repeated):
            lines.append(line)
        copying = line.startswith("COPY ") or (copying and line != "\\.")
    return "\n".join(lines) + "\n"


def write_dump(maker: Maker, file: Path) -> None:
    """Write the file: the dump, and the answers of runs that are resumed only after it was made."""
    programs = Programs(maker.superuser)
    target = file.with_suffix(".dump")
    programs.done(
        "pg_dump",
        "--exclude-table-data",
        "cerebro.setting",
        "--file",
        str(target),
        maker.superuser.url,
    )
    text = stripped(target.read_text())
    target.unlink()
    file.write_text(FILE_HEADER + text + resumed_answers(maker))


STEPS = (
    make_tables, make_configurations, make_fits, make_searches, make_acts, make_models, tidy,
    make_kept_models, make_registered_models, make_interrupted,
    answer_views, answer_predictions, answer_explanations, answer_tables,
)  # fmt: skip


def main(file: Path) -> None:
    """Make the database on a new server, and write the file."""
    with tempfile.TemporaryDirectory(prefix="cerebro-db-formats-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        data = Path(folder) / "server"
        url = started(data)
        try:
            maker = Maker(url, url.replace("//cerebro@", "//postgres@", 1))
            for step in STEPS:
                step(maker)
            write_dump(maker, file)
            maker.close()
        finally:
            subprocess.run(
                [sys.executable, "-I", "-m", "cerebro_db", "server", "stop", "--data", str(data)],
                check=True,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
