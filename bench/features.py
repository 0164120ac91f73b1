"""Transfer learning with what frozen layers give computed once, beside the same run that computes
it in each epoch.

Eight heads on a frozen network of convolutions, for ten epochs. Both runs have the same seed and as
many workers, and take turns; what they come to is compared, too. And a head on each of five layers
of that network as one run, beside a run for each, one after the other, that stores nothing. No run
uses what another one has kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from models import Json, dense, layer, sequential

from bench import bench_server
from bench.bench_server import BenchServer
from bench.examples import images
from bench.ratios import Span, ratios
from bench.workloads import Config, Workload

SHAPE, FILTERS, CLASSES, EPOCHS, WEIGHT_SEED = [32, 32, 3], (16, 16, 32, 32, 64, 64), 10, 10, 8
HEADS = tuple((units, rate) for units in (16, 32, 64, 128) for rate in (0.0, 0.3))
LAYERS = ("pool_1", "normal_2", "pool_3", "normal_4", "average")
PLAIN, STORED = 0, None
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
Echo = Callable[[str], None]


def front() -> Iterator[Json]:
    """Six convolutions, each with a normalization, and three poolings: fifteen layers with the last
    one.
    """
    for number, filters in enumerate(FILTERS):
        how = {"kernel_size": [3, 3], "padding": "same", "activation": "relu", "trainable": False}
        yield layer("Conv2D", f"convolution_{number}", filters=filters, **how)
        yield layer("BatchNormalization", f"normal_{number}", trainable=False)
        if number % 2:
            yield layer("MaxPooling2D", f"pool_{number}")
    yield layer("GlobalAveragePooling2D", "average")


def network(units: int, rate: float) -> str:
    """The frozen layers, and a head that is trained."""
    head = [
        dense(units, "hidden"),
        layer("Dropout", "drop", rate=rate),
        dense(CLASSES, "classes", "softmax"),
    ]
    return sequential(SHAPE, *front(), *head)


def weights(units: int) -> bytes:
    """Those of a network, of which those of the frozen layers are always the same."""
    draw, parts, before = np.random.default_rng(WEIGHT_SEED), [], SHAPE[-1]
    for filters in FILTERS:
        kernel = draw.normal(scale=np.sqrt(2 / (9 * before)), size=9 * before * filters)
        parts += [
            kernel,
            np.zeros(filters),
            np.ones(filters),
            np.zeros(2 * filters),
            np.ones(filters),
        ]
        before = filters
    for inputs, outputs in ((before, units), (units, CLASSES)):
        parts += [draw.normal(scale=np.sqrt(1 / inputs), size=inputs * outputs), np.zeros(outputs)]
    return np.concatenate(parts).astype("<f4").tobytes()


WORKLOAD = Workload(
    key="T",
    title="eight heads on a frozen network of six convolutions",
    draw=images,
    rows=1_000,
    validation=250,
    classes=CLASSES,
    architectures=tuple(network(*head) for head in HEADS),
    configs=tuple(
        Config(model=n, optimizer="Adam", learning_rate=1e-3, batch_size=32) for n in range(1, 9)
    ),
    epochs=EPOCHS,
    small_rows=200,
    small_epochs=3,
)


def measure_features(server: BenchServer, scale: str, repeats: int, echo: Echo) -> str:
    """What both comparisons have come to."""
    return f"{heads(server, scale, repeats, echo)}\n\n{explored(server, repeats, echo)}"


def explored(server: BenchServer, repeats: int, echo: Echo) -> str:
    """One run over heads on several layers, beside a run for each, over the tables of the other
    comparison.
    """
    one, each = dict[int, float](), dict[int, float]()
    with server.session() as session, session.cursor() as cursor:
        cursor.execute(EXPLORE, ([*LAYERS], "t_layers", CLASSES))
        some = {
            "t_explored": [*range(1, len(LAYERS) + 1)],
            **{f"t_layer_{n}": [n + 1] for n in range(len(LAYERS))},
        }
        for name, models in some.items():
            cursor.execute(COMBINE, ("t_layers", name, models, WORKLOAD.configs[0].compile_params))

        def seconds(name: str, budget: int | None) -> float:
            cursor.execute(f"DROP TABLE IF EXISTS {name}_m, {name}_m_info, {name}_m_summary")
            cursor.execute(ANEW)
            began = time.perf_counter()
            cursor.execute(FIT, ("t_packed", f"{name}_m", name, EPOCHS, "t_packed_valid", budget))
            return time.perf_counter() - began

        whole, *alone = some
        for number in range(repeats):
            one[number] = seconds(whole, STORED)
            each[number] = sum(seconds(name, PLAIN) for name in alone)
            echo(
                f"  one run over {len(LAYERS)} layers: {one[number]:.1f} s, a run for each: "
                f"{each[number]:.1f} s"
            )
    spans = [Span.from_values(list(found.values())).text(1) for found in (one, each)]
    faster = ratios(each, one)
    assert faster is not None
    return (
        f"The same head on {len(LAYERS)} of these layers, {EPOCHS} epochs: one run took {spans[0]} "
        f"s, a run for each, one after the other and with nothing stored, {spans[1]} s in all: "
        f"{faster.text(1)} times as long."
    )


def heads(server: BenchServer, scale: str, repeats: int, echo: Echo) -> str:
    """What both ways took, and how far apart their metrics are."""
    job = bench_server.load(server, WORKLOAD, scale, [weights(units) for units, _ in HEADS])
    seconds: dict[int | None, dict[int, float]] = {PLAIN: {}, STORED: {}}
    furthest = 0.0
    with server.session() as session, session.cursor() as cursor:
        bench_server.pack(session, job)
        for number in range(
            -1, repeats
        ):  # one turn before, so that a nursery is there, and the machine is warm
            found: list[npt.NDArray[np.float64]] = []
            for way in (PLAIN, STORED):
                cursor.execute(
                    f"DROP TABLE IF EXISTS {job.output}, {job.output}_info, {job.output}_summary"
                )
                cursor.execute(ANEW)
                began = time.perf_counter()
                cursor.execute(
                    FIT, (job.packed, job.output, job.selection, job.epochs, job.packed_valid, way)
                )
                took = time.perf_counter() - began
                seconds[way] |= {number: took} if number >= 0 else {}
                cursor.execute(LAST)
                cursor.execute(METRICS, cursor.fetchone())
                found.append(np.array([value for (value,) in cursor]))
                echo(f"  {'plain' if way == PLAIN else 'stored'}: {took:.1f} s")
            furthest = max(furthest, float(np.abs(found[0] - found[1]).max()))
    return report(seconds[PLAIN], seconds[STORED], furthest, job.epochs, scale)


def report(
    plain: dict[int, float], stored: dict[int, float], furthest: float, epochs: int, scale: str
) -> str:
    """A sentence."""
    spans = [Span.from_values(list(each.values())).text(1) for each in (plain, stored)]
    faster = ratios(plain, stored)
    assert faster is not None
    layers, rows = len([*front()]), f"{WORKLOAD.rows_at(scale):,}"
    return (
        f"{len(HEADS)} heads on {layers} frozen layers, {epochs} epochs over {rows} rows: "
        f"{spans[0]} s where the layers are computed in each epoch, {spans[1]} s where that is "
        f"done once: {faster.text(1)} times as fast. The metrics of all epochs differ by at most "
        f"{furthest:.1g}."
    )
