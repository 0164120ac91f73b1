"""Learning curves of whole grids: each configuration is trained to its end once, and then any
search can be judged.

What a rule, a sampler or a pruner would have seen of a configuration is a piece of its curve. So
searches are compared over the same values to the bit, as often as one likes, and nothing is trained
again. There are two kinds of grids: what `cerebro.train` draws of its templates, all of which do
well and whose learning rates rise and fall; and plain networks over wide ranges, with learning
rates that stay, of which many are of no use.
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

from bench.examples import numeric
from bench.real_tables import TABLES, write
from bench.rivals import CLASSIFICATION, encoded
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution, Range
from cerebro_plpy.configs.templates.registry import TEMPLATES

GENERATED = "generated"
ROWS, DATA_SEED, HELD_OUT = 8000, 20, 0.2
CONFIGS, EPOCHS = 54, 27
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
MEASURED = """
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
TRIED = (
    "SELECT mst_key, template, params, epochs, status FROM cerebro.config WHERE run_id = %s ORDER "
    "BY mst_key"
)

TEMPLATE_RANGES: Mapping[tuple[str, str], Distribution] = {
    (each.name, field.name): field.distribution for each in TEMPLATES for field in each.fields
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
    """A configuration and its values after each epoch until it got no better, over rows that are
    held back; smaller is better, and what is no number is the worst. Its family is its template, or
    its optimizer."""

    family: str
    params: Mapping[str, Any]
    values: tuple[float, ...]


class Pool(NamedTuple):
    """All configurations of a grid over a table, each with its curve; an epoch makes so many
    visits.
    """

    table: str
    seed: int
    metric: str
    segments: int
    curves: tuple[Curve, ...]
    ranges: Mapping[tuple[str, str], Distribution]
    """What was drawn from, by family and field."""
    searched: tuple[Curve, ...]
    """The same where a search with rungs trains them."""

    @property
    def best(self) -> float:
        """The best value that any configuration has at any epoch."""
        return min(min(curve.values) for curve in self.curves)

    @property
    def visits(self) -> int:
        """What the whole grid takes."""
        return self.segments * sum(len(curve.values) for curve in self.curves)


def templates(session: Connection, table: str, seed: int) -> Pool:
    """What `cerebro.train` draws by a seed, with nothing else chosen but how much, each until it
    gets no better; and each to its end as `asha` trains it, whose learning rates have fallen at the
    end of each rung, too."""
    frame, target = rows(table)
    write(session, table, frame)
    grid, searched = (
        _trained(session, (table, target), seed, search) for search in ("grid", "asha")
    )
    return grid._replace(searched=searched.curves)


def _trained(session: Connection, goal: tuple[str, str], seed: int, search: str) -> Pool:
    """All configurations of a table, with no regard to what a rule says of them."""
    table, target = goal
    model = f"{table}_{seed}_{search}"
    with session.cursor() as cursor:
        cursor.execute(TRAIN, (table, target, model, CONFIGS, EPOCHS, seed, search))
        (run,) = cursor.fetchone() or (None,)
        if search != "grid":
            cursor.execute(LET_ALL_GO_ON, (EPOCHS, run))
        cursor.execute(WAIT, (run,))
        pool = _pool(session, table, seed, run, TEMPLATE_RANGES)
        cursor.execute("SELECT cerebro.drop_model(%s)", (model,))
    return pool


def networks(session: Connection, table: str, seed: int) -> Pool:
    """Dense networks by three optimizers, with learning rates from 0.00001 to 1, each for all
    epochs.
    """
    frame, target = rows(table)
    classes = table == GENERATED or TABLES[table].task == CLASSIFICATION
    kinds = _written(session, frame, (target, classes), seed)
    drawn = _configured(session, kinds, seed)
    with session.cursor() as cursor:
        cursor.execute(PACK, ("class" if kinds.classes else "float", seed))
        cursor.execute(FIT, (EPOCHS, seed))
        cursor.execute("SELECT run_id FROM pool_model_summary")
        (run,) = cursor.fetchone() or (None,)
    ranges = {(family, field): draw for family in OPTIMIZERS for field, draw in RANGES.items()}
    pool = _pool(session, table, seed, run, ranges)
    both = zip(pool.curves, drawn, strict=True)
    curves = tuple(each._replace(family=family, params=params) for each, (family, params) in both)
    return pool._replace(curves=curves, searched=curves)


KINDS: Mapping[str, Callable[[Connection, str, int], Pool]] = {
    "templates": templates,
    "networks": networks,
}


def rows(table: str) -> tuple[pandas.DataFrame, str]:
    """The rows of a table, and the column that is predicted of it."""
    if table != GENERATED:
        return TABLES[table].frame(), TABLES[table].target
    x, y = numeric(np.random.default_rng(DATA_SEED), ROWS)
    frame = pandas.DataFrame(x, columns=[f"x{number}" for number in range(x.shape[1])])
    return frame.assign(y=[f"class {label}" for label in y]), "y"


class _Kinds(NamedTuple):
    """How many numbers go in, and how many classes there are; none where a number is predicted."""

    inputs: int
    classes: int


def _written(
    session: Connection, frame: pandas.DataFrame, goal: tuple[str, bool], seed: int
) -> _Kinds:
    """Tables of rows to train on and of rows that are held back, as numbers; a goal is a column, of
    classes or not.
    """
    target, classes = goal
    held = np.random.RandomState(seed).rand(len(frame)) < HELD_OUT
    x = encoded(frame.drop(columns=[target]), ~held).astype(np.float32)
    known = frame[target][~held]
    y = (
        pandas.factorize(frame[target], sort=True)[0]
        if classes
        else (frame[target] - known.mean()) / known.std()
    )
    with session.cursor() as cursor:
        cursor.execute(CLEAR)
    for name, part in (("pool_rows", ~held), ("pool_test", held)):
        write(session, name, pandas.DataFrame({"x": list(x[part]), "y": np.asarray(y)[part]}))
    return _Kinds(x.shape[1], known.nunique() if classes else 0)


def _configured(
    session: Connection, kinds: _Kinds, seed: int
) -> list[tuple[str, Mapping[str, Any]]]:
    """Make a model selection table; the configurations in it."""
    draw = random.Random(seed)
    loss = "categorical_crossentropy" if kinds.classes else "mse"
    drawn = list[tuple[str, Mapping[str, Any]]]()
    with session.cursor() as cursor:
        for hidden in LAYERS:
            layers = [dense(units, f"hidden_{number}") for number, units in enumerate(hidden)]
            last = dense(kinds.classes or 1, "output", "softmax" if kinds.classes else "linear")
            cursor.execute(
                "SELECT load_keras_model('pool_models', %s::json)",
                (sequential([kinds.inputs], *layers, last),),
            )
        cursor.execute(CONFIGURE)
        for key in range(1, CONFIGS + 1):
            family = draw.choice(sorted(OPTIMIZERS))
            params: dict[str, Any] = {name: each.draw(draw) for name, each in RANGES.items()}
            optimizer = f"{family}(learning_rate={params['lr']!r}{OPTIMIZERS[family]})"
            metric = "accuracy" if kinds.classes else "mae"
            told = f"optimizer='{optimizer}',loss='{loss}',metrics=['{metric}']"
            values = (key, params["model"], told, f"batch_size={params['batch_size']}")
            cursor.execute("INSERT INTO pool_configs VALUES (%s, %s, %s, %s)", values)
            drawn.append((family, params))
    return drawn


def _pool(
    session: Connection,
    table: str,
    seed: int,
    run: int,
    ranges: Mapping[tuple[str, str], Distribution],
) -> Pool:
    with session.cursor() as cursor:
        cursor.execute(SEGMENTS, (run,))
        segments, metric = cursor.fetchone() or (0, "")
        cursor.execute(MEASURED, (run,))
        values: dict[int, list[float]] = {}
        for key, value in cursor.fetchall():
            values.setdefault(key, []).append(
                value if value is not None and math.isfinite(value) else math.inf
            )
        cursor.execute(TRIED, (run,))
        tried = cursor.fetchall()
    curves = tuple(
        Curve(family or "", params, _curve(values.get(key, []), *end))
        for key, family, params, *end in tried
    )
    return Pool(table, seed, metric, segments, curves, ranges, curves)


def _curve(values: Sequence[float], epochs: int, status: str) -> tuple[float, ...]:
    """The values of all epochs that were trained; one that failed was of no use in the next."""
    if status == "failed":
        return (*values, math.inf)
    if len(values) != epochs:
        raise RuntimeError(f"a configuration has {len(values)} values after {epochs} epochs")
    return tuple(values)
