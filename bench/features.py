"""Compare transfer learning with stored activations of frozen layers and without them.

Eight heads on a frozen network of convolutions train for ten epochs, with and without stored
activations. Both runs have the same seed and the same number of workers, and take turns. Their
metrics are compared as well.

Then one run trains a head on each of five layers of that network. It is compared with a run for
each layer that stores nothing. No run uses the activations that another one has stored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from models import Json, dense, layer, sequential

from bench import bench_server
from bench.bench_server import BenchServer, Echo
from bench.examples import draw_images
from bench.ratios import Span, compute_ratios
from bench.workloads import Config, Workload

SHAPE = [32, 32, 3]
FILTERS = (16, 16, 32, 32, 64, 64)
CLASSES = 10
EPOCHS = 10
WEIGHT_SEED = 8
HEADS = tuple((units, rate) for units in (16, 32, 64, 128) for rate in (0.0, 0.3))
LAYERS = ("pool_1", "normal_2", "pool_3", "normal_4", "average")
PLAIN = 0
STORED = None
FIT = """
    SELECT madlib_fit_multiple_model(%s, %s, %s, %s, validation_table => %s,
        metrics_compute_frequency => 1, seed => 1,
                                     workers => 2, feature_budget => %s)"""
METRICS = (
    "SELECT value FROM cerebro.metric WHERE run_id = %s ORDER BY mst_key, epoch, dataset, name"
)
EXPLORE = (
    "SELECT count(*) FROM cerebro.explore_layers('t_models', 1, %s, %s, %s, hidden => ARRAY[32])"
)
COMBINE = "SELECT load_model_selection_table(%s, %s, %s, ARRAY[%s], ARRAY['batch_size=32'])"
ANEW = "SELECT cerebro.drop_features()"
LAST = "SELECT max(run_id) FROM cerebro.run"


def make_frozen_layers() -> Iterator[Json]:
    """Yield fifteen frozen layers: six convolutions with normalization, and four poolings."""
    for number, filters in enumerate(FILTERS):
        options = {
            "kernel_size": [3, 3],
            "padding": "same",
            "activation": "relu",
            "trainable": False,
        }
        yield layer("Conv2D", f"convolution_{number}", filters=filters, **options)
        yield layer("BatchNormalization", f"normal_{number}", trainable=False)
        if number % 2:
            yield layer("MaxPooling2D", f"pool_{number}")
    yield layer("GlobalAveragePooling2D", "average")


def make_network(units: int, rate: float) -> str:
    """Return the frozen layers with a trained head."""
    head = [
        dense(units, "hidden"),
        layer("Dropout", "drop", rate=rate),
        dense(CLASSES, "classes", "softmax"),
    ]
    return sequential(SHAPE, *make_frozen_layers(), *head)


def draw_weights(units: int) -> bytes:
    """Return the weights of a network; the frozen layers always have the same ones."""
    draw = np.random.default_rng(WEIGHT_SEED)
    parts = []
    channels = SHAPE[-1]
    for filters in FILTERS:
        kernel = draw.normal(scale=np.sqrt(2 / (9 * channels)), size=9 * channels * filters)
        parts += [
            kernel,
            np.zeros(filters),
            np.ones(filters),
            np.zeros(2 * filters),
            np.ones(filters),
        ]
        channels = filters
    for inputs, outputs in ((channels, units), (units, CLASSES)):
        parts += [draw.normal(scale=np.sqrt(1 / inputs), size=inputs * outputs), np.zeros(outputs)]
    return np.concatenate(parts).astype("<f4").tobytes()


WORKLOAD = Workload(
    key="T",
    title="eight heads on a frozen network of six convolutions",
    draw=draw_images,
    rows=1_000,
    validation=250,
    classes=CLASSES,
    architectures=tuple(make_network(*head) for head in HEADS),
    configs=tuple(
        Config(model=n, optimizer="Adam", learning_rate=1e-3, batch_size=32) for n in range(1, 9)
    ),
    epochs=EPOCHS,
    small_rows=200,
    small_epochs=3,
)


def measure_features(server: BenchServer, scale: str, repeats: int, echo: Echo) -> str:
    """Return the results of both comparisons."""
    heads = compare_heads(server, scale, repeats, echo)
    exploration = compare_exploration(server, repeats, echo)
    return f"{heads}\n\n{exploration}"


def compare_exploration(server: BenchServer, repeats: int, echo: Echo) -> str:
    """Compare one run over heads on several layers with a run for each layer.

    The tables are those of the other comparison.
    """
    joint_seconds: dict[int, float] = {}
    separate_seconds: dict[int, float] = {}
    with server.session() as session, session.cursor() as cursor:
        cursor.execute(EXPLORE, ([*LAYERS], "t_layers", CLASSES))
        selections = {
            "t_explored": [*range(1, len(LAYERS) + 1)],
            **{f"t_layer_{n}": [n + 1] for n in range(len(LAYERS))},
        }
        for name, models in selections.items():
            cursor.execute(COMBINE, ("t_layers", name, models, WORKLOAD.configs[0].compile_params))

        def time_fit(name: str, budget: int | None) -> float:
            cursor.execute(f"DROP TABLE IF EXISTS {name}_m, {name}_m_info, {name}_m_summary")
            cursor.execute(ANEW)
            began = time.perf_counter()
            cursor.execute(FIT, ("t_packed", f"{name}_m", name, EPOCHS, "t_packed_valid", budget))
            return time.perf_counter() - began

        joint_selection, *separate_selections = selections
        for number in range(repeats):
            joint_seconds[number] = time_fit(joint_selection, STORED)
            separate_seconds[number] = sum(time_fit(name, PLAIN) for name in separate_selections)
            echo(
                f"  one run over {len(LAYERS)} layers: {joint_seconds[number]:.1f} s, "
                f"a run for each: {separate_seconds[number]:.1f} s"
            )
    spans = [
        Span.from_values(list(seconds_by_turn.values())).text(1)
        for seconds_by_turn in (joint_seconds, separate_seconds)
    ]
    faster = compute_ratios(separate_seconds, joint_seconds)
    assert faster is not None
    return (
        f"The same head on {len(LAYERS)} of these layers, {EPOCHS} epochs: one run took {spans[0]} "
        f"s, a run for each, one after the other and with nothing stored, {spans[1]} s in all: "
        f"{faster.text(1)} times as long."
    )


def compare_heads(server: BenchServer, scale: str, repeats: int, echo: Echo) -> str:
    """Compare the times and the metrics of runs with and without stored activations."""
    job = bench_server.load(server, WORKLOAD, scale, [draw_weights(units) for units, _ in HEADS])
    seconds: dict[int | None, dict[int, float]] = {PLAIN: {}, STORED: {}}
    furthest = 0.0
    with server.session() as session, session.cursor() as cursor:
        bench_server.pack(session, job)
        # An extra turn starts the fork server and warms up the machine.
        for number in range(-1, repeats):
            metrics: list[npt.NDArray[np.float64]] = []
            for way in (PLAIN, STORED):
                cursor.execute(
                    f"DROP TABLE IF EXISTS {job.output}, {job.output}_info, {job.output}_summary"
                )
                cursor.execute(ANEW)
                began = time.perf_counter()
                cursor.execute(
                    FIT, (job.packed, job.output, job.selection, job.epochs, job.packed_valid, way)
                )
                duration = time.perf_counter() - began
                seconds[way] |= {number: duration} if number >= 0 else {}
                cursor.execute(LAST)
                cursor.execute(METRICS, cursor.fetchone())
                metrics.append(np.array([value for (value,) in cursor]))
                echo(f"  {'plain' if way == PLAIN else 'stored'}: {duration:.1f} s")
            furthest = max(furthest, float(np.abs(metrics[0] - metrics[1]).max()))
    return report(seconds[PLAIN], seconds[STORED], furthest, job.epochs, scale)


def report(
    plain: dict[int, float], stored: dict[int, float], furthest: float, epochs: int, scale: str
) -> str:
    """Return the result as text."""
    spans = [Span.from_values(list(seconds.values())).text(1) for seconds in (plain, stored)]
    faster = compute_ratios(plain, stored)
    assert faster is not None
    layers = len([*make_frozen_layers()])
    rows = f"{WORKLOAD.count_rows(scale):,}"
    return (
        f"{len(HEADS)} heads on {layers} frozen layers, {epochs} epochs over {rows} rows: "
        f"{spans[0]} s where the layers are computed in each epoch, {spans[1]} s where that is "
        f"done once: {faster.text(1)} times as fast. The metrics of all epochs differ by at most "
        f"{furthest:.1g}."
    )
