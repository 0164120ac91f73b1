"""Train whole grids, and record the learning curves with which searches are simulated.

A rule, a sampler or a pruner sees a part of a configuration's curve. Searches are therefore
compared over the same values, to the bit, without training again. There are two kinds of grids.
The first one is drawn by `cerebro.train` from its templates, which all perform well, and whose
learning rates rise and fall. The second one has plain networks over wide ranges, with constant
learning rates, many of which are useless.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas
from models import dense, sequential
from psycopg2.extensions import connection as Connection

from bench.examples import draw_numeric
from bench.quality.task import CLASSIFICATION
from bench.real_tables import TABLES, write
from bench.rivals import encode
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution, Range
from cerebro_plpy.configs.templates.registry import NETWORK_TEMPLATES as TEMPLATES

GENERATED = "generated"
ROWS = 8000
DATA_SEED = 20
HELD_OUT = 0.2
CONFIGS = 54
EPOCHS = 27
TRAIN = """
    SELECT DISTINCT run_id FROM cerebro.train(
        %s, %s, %s, configs => %s, epochs => %s, seed => %s, search => %s, ensemble => 1,
        budget => '3 hours', background => true)"""
LET_ALL_GO_ON = (
    "SELECT cerebro.set_epochs(run_id, %s, mst_key) FROM cerebro.config WHERE run_id = %s"
)
WAIT = "SELECT cerebro.wait(%s)"
FIT = """
    SELECT madlib_fit_multiple_model('pool_packed', 'pool_model', 'pool_configs', %s,
        validation_table => 'pool_held',
        metrics_compute_frequency => 1, training_metrics => false, seed => %s)"""
PACK = """
    SELECT training_preprocessor_dl('pool_rows', 'pool_packed', 'y', 'x', dependent_type => %s,
        n_segments => 2,
        seed => %s);
    SELECT validation_preprocessor_dl('pool_test', 'pool_held', 'y', 'x', 'pool_packed')"""
CLEAR = """
    DROP TABLE IF EXISTS pool_packed, pool_packed_summary, pool_held, pool_held_summary, pool_model,
        pool_model_info,
        pool_model_summary, pool_configs, pool_configs_summary, pool_models"""
CONFIGURE = """
    CREATE TABLE pool_configs (
        mst_key integer PRIMARY KEY, model_id integer, compile_params varchar, fit_params varchar);
    CREATE TABLE pool_configs_summary AS
    SELECT 'pool_models'::varchar AS model_arch_table, NULL::varchar AS object_table"""
METRICS = """
    SELECT m.mst_key, CASE WHEN (r.spec ->> 'rank_descending')::boolean THEN -m.value ELSE m.value
        END
    FROM cerebro.metric m JOIN cerebro.run r USING (run_id)
    WHERE m.run_id = %s AND m.dataset = r.spec ->> 'rank_dataset'
        AND m.name = r.spec ->> 'rank_metric'
    ORDER BY m.mst_key, m.epoch"""
SEGMENTS = (
    "SELECT jsonb_array_length(spec -> 'segments'), spec ->> 'rank_metric' FROM cerebro.run WHERE "
    "run_id = %s"
)
CONFIG_ROWS = (
    "SELECT mst_key, template, params, epochs, status FROM cerebro.config WHERE run_id = %s ORDER "
    "BY mst_key"
)

TEMPLATE_RANGES: Mapping[tuple[str, str], Distribution] = {
    (template.name, field.name): field.distribution
    for template in TEMPLATES
    for field in template.fields
}
OPTIMIZERS = {"Adam": "", "RMSprop": "", "SGD": ",momentum=0.9"}
LAYERS = ((16,), (64, 32), (256, 128))
RANGES: Mapping[str, Distribution] = {
    "lr": Range(1e-5, 1.0, "log"),
    "batch_size": Choices((32, 128)),
    "model": Choices(tuple(range(1, len(LAYERS) + 1))),
}
"""What is drawn for each optimizer."""


class Curve(NamedTuple):
    """A configuration with its learning curve."""

    family: str  # its template or optimizer
    params: Mapping[str, Any]
    # Values on the held-out rows after each epoch; smaller is better, infinity is the worst.
    values: tuple[float, ...]


class Pool(NamedTuple):
    """The configurations of a grid over a table, with their curves."""

    table: str
    seed: int
    metric: str
    segments: int  # visits of an epoch
    curves: tuple[Curve, ...]
    ranges: Mapping[tuple[str, str], Distribution]  # the distributions, by family and field
    searched: tuple[Curve, ...]  # the curves if a search with rungs trains the configurations

    @property
    def best(self) -> float:
        """The best value of any configuration at any epoch."""
        return min(min(curve.values) for curve in self.curves)

    @property
    def visits(self) -> int:
        """The visits of the whole grid."""
        return self.segments * sum(len(curve.values) for curve in self.curves)


def train_templates(session: Connection, table: str, seed: int) -> Pool:
    """Train the configurations that `cerebro.train` draws with a seed, as a grid and with `asha`.

    With `asha`, learning rates fall towards the end of each rung.
    """
    frame, target = read_rows(table)
    write(session, table, frame)
    grid, searched = (
        _train_grid(session, (table, target), seed, search) for search in ("grid", "asha")
    )
    return grid._replace(searched=searched.curves)


def _train_grid(session: Connection, goal: tuple[str, str], seed: int, search: str) -> Pool:
    """Train all configurations of a table, regardless of a rule's decisions."""
    table, target = goal
    model = f"{table}_{seed}_{search}"
    with session.cursor() as cursor:
        cursor.execute(TRAIN, (table, target, model, CONFIGS, EPOCHS, seed, search))
        (run,) = cursor.fetchone() or (None,)
        if search != "grid":
            cursor.execute(LET_ALL_GO_ON, (EPOCHS, run))
        cursor.execute(WAIT, (run,))
        pool = _read_pool(session, table, seed, run, TEMPLATE_RANGES)
        cursor.execute("SELECT cerebro.drop_model(%s)", (model,))
    return pool


def train_networks(session: Connection, table: str, seed: int) -> Pool:
    """Train dense networks with three optimizers and learning rates from 0.00001 to 1."""
    frame, target = read_rows(table)
    classes = table == GENERATED or TABLES[table].task == CLASSIFICATION
    shape = _write_tables(session, frame, (target, classes), seed)
    drawn_configs = _write_configs(session, shape, seed)
    with session.cursor() as cursor:
        cursor.execute(PACK, ("class" if shape.classes else "float", seed))
        cursor.execute(FIT, (EPOCHS, seed))
        cursor.execute("SELECT run_id FROM pool_model_summary")
        (run,) = cursor.fetchone() or (None,)
    ranges = {(family, field): draw for family in OPTIMIZERS for field, draw in RANGES.items()}
    pool = _read_pool(session, table, seed, run, ranges)
    pairs = zip(pool.curves, drawn_configs, strict=True)
    curves = tuple(
        curve._replace(family=family, params=params) for curve, (family, params) in pairs
    )
    return pool._replace(curves=curves, searched=curves)


KINDS: Mapping[str, Callable[[Connection, str, int], Pool]] = {
    "templates": train_templates,
    "networks": train_networks,
}


def read_rows(table: str) -> tuple[pandas.DataFrame, str]:
    """Return the rows of a table, and the name of its target column."""
    if table != GENERATED:
        return TABLES[table].frame(), TABLES[table].target
    x, y = draw_numeric(np.random.default_rng(DATA_SEED), ROWS)
    frame = pandas.DataFrame(x, columns=[f"x{number}" for number in range(x.shape[1])])
    return frame.assign(y=[f"class {label}" for label in y]), "y"


class _Shape(NamedTuple):
    """The shape of a network."""

    inputs: int
    classes: int  # 0 for a regression


def _write_tables(
    session: Connection, frame: pandas.DataFrame, goal: tuple[str, bool], seed: int
) -> _Shape:
    """Write tables of training rows and held-out rows as numbers.

    Args:
        goal: the target column, and if it contains classes.
    """
    target, classes = goal
    is_held_out = np.random.RandomState(seed).rand(len(frame)) < HELD_OUT
    x = encode(frame.drop(columns=[target]), ~is_held_out).astype(np.float32)
    training_targets = frame[target][~is_held_out]
    y = (
        pandas.factorize(frame[target], sort=True)[0]
        if classes
        else (frame[target] - training_targets.mean()) / training_targets.std()
    )
    with session.cursor() as cursor:
        cursor.execute(CLEAR)
    for name, part in (("pool_rows", ~is_held_out), ("pool_test", is_held_out)):
        write(session, name, pandas.DataFrame({"x": list(x[part]), "y": np.asarray(y)[part]}))
    return _Shape(x.shape[1], training_targets.nunique() if classes else 0)


def _write_configs(
    session: Connection, shape: _Shape, seed: int
) -> list[tuple[str, Mapping[str, Any]]]:
    """Create a model selection table; return its configurations."""
    draw = random.Random(seed)
    loss = "categorical_crossentropy" if shape.classes else "mse"
    drawn_configs = list[tuple[str, Mapping[str, Any]]]()
    with session.cursor() as cursor:
        for hidden in LAYERS:
            layers = [dense(units, f"hidden_{number}") for number, units in enumerate(hidden)]
            last = dense(shape.classes or 1, "output", "softmax" if shape.classes else "linear")
            cursor.execute(
                "SELECT load_keras_model('pool_models', %s::json)",
                (sequential([shape.inputs], *layers, last),),
            )
        cursor.execute(CONFIGURE)
        for key in range(1, CONFIGS + 1):
            family = draw.choice(sorted(OPTIMIZERS))
            params: dict[str, Any] = {
                name: distribution.draw(draw) for name, distribution in RANGES.items()
            }
            optimizer = f"{family}(learning_rate={params['lr']!r}{OPTIMIZERS[family]})"
            metric = "accuracy" if shape.classes else "mae"
            compile_params = f"optimizer='{optimizer}',loss='{loss}',metrics=['{metric}']"
            values = (key, params["model"], compile_params, f"batch_size={params['batch_size']}")
            cursor.execute("INSERT INTO pool_configs VALUES (%s, %s, %s, %s)", values)
            drawn_configs.append((family, params))
    return drawn_configs


def _read_pool(
    session: Connection,
    table: str,
    seed: int,
    run: int,
    ranges: Mapping[tuple[str, str], Distribution],
) -> Pool:
    with session.cursor() as cursor:
        cursor.execute(SEGMENTS, (run,))
        segments, metric = cursor.fetchone() or (0, "")
        cursor.execute(METRICS, (run,))
        values: dict[int, list[float]] = {}
        for key, value in cursor.fetchall():
            values.setdefault(key, []).append(
                value if value is not None and math.isfinite(value) else math.inf
            )
        cursor.execute(CONFIG_ROWS, (run,))
        config_rows = cursor.fetchall()
    curves = tuple(
        Curve(family or "", params, _make_curve(values.get(key, []), *end))
        for key, family, params, *end in config_rows
    )
    return Pool(table, seed, metric, segments, curves, ranges, curves)


def _make_curve(values: Sequence[float], epochs: int, status: str) -> tuple[float, ...]:
    """Return the values of all trained epochs; those of a failed one end with infinity."""
    if status == "failed":
        return (*values, math.inf)
    if len(values) != epochs:
        raise RuntimeError(f"a configuration has {len(values)} values after {epochs} epochs")
    return tuple(values)
