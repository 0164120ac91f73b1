"""The whole product on a GPU: how busy the device is while rows come from tables, and what more
trainers on it, numbers of half the size, and training states side by side gain there.

Whether the device is busy is what its driver says: the share of time in which it executed anything,
looked at ten times a second. It counts from when each trainer has compiled until the first of them
has no visit left.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import trainer_peer
from models import Json, dense, layer, sequential
from trainer_peer import Peer, place
from trainer_programs import program

from bench.bench_server import BenchServer, load, pack
from bench.examples import images, numeric
from bench.job import Job
from bench.ours import fit
from bench.workloads import REPORT, Workload, grid, perceptron
from cerebro_plpy.run.log.form_timings import LANES

Echo = Callable[[str], None]
DEVICE = "0"
FRAMEWORKS = ("jax", "torch", "tensorflow")
EVERY_MS = 100
INPUTS, CLASSES = 20, 3
PERCEPTRONS = (((64, 32), 32), ((256, 128), 64), ((1024, 512), 128))
"""Hidden units, and rows of a batch, of networks whose states are trained side by side."""
ALONE, SIDE_BY_SIDE = {"jax": "scan", "torch": "captured"}, ("fused_8", "fused_32")
FORMS = ("eager", "graph", "captured")
"""Those of PyTorch."""
FUSED_ROWS, FUSED_BUFFERS, FUSED_PASSES, TURNS = 8_192, 2, 2, 3
NEW: Json = {"source": "new", "seed": 0}


def normalised(width: int) -> str:
    """Six convolutions with normalisation over pictures of 32 x 32 x 3, in three sizes, each twice
    as wide.
    """
    layers: list[Json] = []
    for stage in range(3):
        for number in range(2):
            name = f"{stage}_{number}"
            shape: dict[str, Any] = {"kernel_size": [3, 3], "padding": "same", "use_bias": False}
            layers.append(layer("Conv2D", f"convolution_{name}", filters=width << stage, **shape))
            layers.append(layer("BatchNormalization", f"normal_{name}"))
            layers.append(layer("Activation", f"relu_{name}", activation="relu"))
        layers.append(layer("MaxPooling2D", f"pool_{stage}"))
    layers.append(layer("GlobalAveragePooling2D", "mean"))
    return sequential([32, 32, 3], *layers, dense(10, "classes", "softmax"))


PICTURES = Workload(
    key="GP",
    title="four rates for a network of six convolutions, 128 to 512 filters, batches of 256",
    draw=images,
    rows=16_384,
    validation=1_024,
    classes=10,
    architectures=(normalised(128),),
    configs=grid(1, ["Adam"], [3e-3, 1e-3, 3e-4, 1e-4], [256]),
    epochs=2,
    small_rows=512,
)
NUMBERS = Workload(
    key="GN",
    title="32 rates for a perceptron of 64 and 32 units, batches of 32",
    draw=numeric,
    rows=16_384,
    validation=1_024,
    classes=CLASSES,
    architectures=(perceptron(INPUTS, (64, 32), CLASSES),),
    configs=grid(1, ["Adam"], [1e-2 * 0.8**number for number in range(32)], [32]),
    epochs=2,
    small_rows=512,
)
PASSES = {PICTURES.key: 3, NUMBERS.key: 16}
"""Over the rows of a segment in each visit."""


class Way(NamedTuple):
    """A run: by which framework, how many trainers share the device, and the policy of its
    numbers.
    """

    framework: str
    workers: int
    policy: str | None = None


WAYS = {
    PICTURES.key: [
        Way(name, *how) for name in FRAMEWORKS for how in ((1,), (2,), (2, "mixed_bfloat16"))
    ],
    NUMBERS.key: [Way(name, 1) for name in ALONE],
}


@dataclass(frozen=True)
class Outcome:
    """What a run came to: seconds of all of it, and what is told of its visits when all was
    compiled: the seconds until a trainer had no more of them, the share of that in which the device
    was busy, seconds of one, rows a second. And the most memory of the device in MB, and the forms
    of its loops."""

    way: Way
    wall: float
    compiled: float
    busy: float
    visit: float
    rate: float
    memory: float
    forms: str

    def line(self) -> str:
        """As a row of the table."""
        way = self.way
        return (
            f"| {way.framework} | {way.workers} | {way.policy or 'float32'} | {self.wall:.1f} | "
            f"{self.compiled:.1f} | {self.visit:.2f} | {self.busy:.1%} | {self.rate:,.0f} | "
            f"{self.memory:,.0f} | {self.forms} |"
        )


class Sample(NamedTuple):
    """What the driver said: the percentage of time in which the device was busy, and MB of its
    memory in use.
    """

    time: float
    busy: float
    memory: float


def measure_gpu(server: BenchServer, scale: str, echo: Echo) -> str:
    """All that was seen, as text."""
    device = found()
    if device is None:
        raise SystemExit("this machine has no GPU that nvidia-smi lists")
    usable = [framework for framework in FRAMEWORKS if works(framework)]
    echo(f"  {device}; {', '.join(usable)}")
    parts = [f"{device}."]
    for workload in (PICTURES, NUMBERS):
        parts += [
            f"{workload.title[0].upper()}{workload.title[1:]}:",
            runs_of(server, scale, workload, usable, echo),
        ]
    together = [framework for framework in ALONE if framework in usable]
    if together:
        parts += [
            "Rows a second of a trainer alone, one state after another and several side by side:"
        ]
        parts += [fusion(together, echo)]
    if "torch" in usable:
        parts += [
            "Rows a second of a trainer alone with PyTorch, by the form of its loop:",
            forms(echo),
        ]
    return "\n\n".join(parts)


def found() -> str | None:
    """What the driver calls the device."""
    try:
        asked = [
            "nvidia-smi",
            "--query-gpu=name,driver_version",
            "--format=csv,noheader",
            "-i",
            DEVICE,
        ]
        return (
            subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip() or None
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def works(framework: str) -> bool:
    """Whether a trainer with this framework finds the device."""
    try:
        with Peer(framework, gpu=DEVICE) as peer:
            return any(not name.startswith("CPU") for name in peer.hello["devices"])
    except EOFError:
        return False


def runs_of(
    server: BenchServer,
    scale: str,
    workload: Workload,
    usable: Sequence[str],
    echo: Echo,
) -> str:
    """The same model selection in each way."""
    if scale != REPORT and workload is PICTURES:
        workload = replace(workload, architectures=(normalised(4),))
    job = load(server, workload, scale, [None])
    with server.session() as session, session.cursor() as cursor:
        pack(session, job)
        cursor.execute(
            f"UPDATE {job.selection} SET fit_params = fit_params || "
            f"',epochs={PASSES[workload.key]}'"
        )
    lines = [
        "| framework | trainers | numbers | seconds | when compiled | a visit | device busy | "
        "rows a second | MB of the device | forms |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for way in WAYS[workload.key]:
        if way.framework in usable:
            lines.append(
                ran(server, job, workload.rows_at(scale) * PASSES[workload.key], way).line()
            )
            echo(f"  {lines[-1]}")
    return "\n".join(lines)


VISITS = """
    WITH done AS (
        SELECT v.started_at, v.ended_at, v.form,
               min(v.ended_at) OVER worker AS first, max(v.ended_at) OVER worker AS last
        FROM cerebro.visit v WHERE v.run_id = %s AND v.status = 'completed'
        WINDOW worker AS (PARTITION BY v.worker_pid))
    SELECT extract(epoch FROM d.started_at)::float8, extract(epoch FROM d.ended_at)::float8, d.form
    FROM done d WHERE d.ended_at > (SELECT max(o.first) FROM done o)
        AND d.ended_at <= (SELECT min(o.last) FROM done o)
    ORDER BY d.ended_at"""
"""Those that ended when each trainer had compiled the one program for its first one, and while all
had some.
"""


def ran(server: BenchServer, job: Job, rows: int, how: Way) -> Outcome:
    """A run of the job in this way, whose visits go through so many rows for each configuration and
    iteration.
    """
    named: dict[str, Any] = {"use_gpus": True, "workers": how.workers, "dtype_policy": how.policy}
    asked = replace(job, framework=how.framework, settings=named)
    with server.session() as session, watched() as samples:
        began = time.perf_counter()
        run_id = fit(session, asked)
        wall = time.perf_counter() - began
    with server.session() as session, session.cursor() as cursor:
        cursor.execute(VISITS, (run_id,))
        visits = cursor.fetchall()
    begin, end = min(visit[0] for visit in visits), visits[-1][1]
    inside = [sample for sample in samples if begin <= sample.time <= end]
    return Outcome(
        way=how,
        wall=wall,
        compiled=end - begin,
        busy=statistics.fmean(sample.busy for sample in inside) / 100 if inside else float("nan"),
        visit=statistics.median(visit[1] - visit[0] for visit in visits),
        rate=rows / job.segments * len(visits) / (end - begin),
        memory=max((sample.memory for sample in inside), default=0.0),
        forms=", ".join(sorted({visit[2] for visit in visits})),
    )


@contextmanager
def watched() -> Iterator[list[Sample]]:
    """What the driver says of the device, until the block ends."""
    command = [
        "nvidia-smi",
        "--query-gpu=timestamp,utilization.gpu,memory.used",
        "--format=csv,noheader,nounits",
    ]
    samples: list[Sample] = []
    with subprocess.Popen(
        [*command, "-i", DEVICE, "-lms", str(EVERY_MS)], stdout=subprocess.PIPE, text=True
    ) as process:
        reader = threading.Thread(
            target=lambda: samples.extend(map(sampled, csv.reader(process.stdout or ())))
        )
        reader.start()
        try:
            yield samples
        finally:
            process.terminate()
            reader.join()


def sampled(fields: Sequence[str]) -> Sample:
    """A line of nvidia-smi, whose times are local.

    >>> sampled(["1970/01/01 00:00:01.500", " 97", " 1024"])._replace(time=0.0)
    Sample(time=0.0, busy=97.0, memory=1024.0)
    """
    time_of_sample = datetime.strptime(fields[0], "%Y/%m/%d %H:%M:%S.%f").astimezone()
    return Sample(time_of_sample.timestamp(), float(fields[1]), float(fields[2]))


def fusion(frameworks: Sequence[str], echo: Echo) -> str:
    """Rows a second of states of one program, one after another and side by side, by a trainer
    alone.
    """
    lines = [
        "| framework | hidden units | rows of a batch | states | one after another | side by side "
        "| gain |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for framework in frameworks:
        with Peer(framework, gpu=DEVICE) as peer:
            peer.socket.settimeout(None)
            peer.load("d", buffers(), 1 << 30)
            for hidden, batch in PERCEPTRONS:
                described = of_perceptron(hidden)
                alone = statistics.median(rates(peer, described, batch, ALONE[framework], 1))
                units = " and ".join(map(str, hidden))
                for form in SIDE_BY_SIDE:
                    lanes = LANES[form]
                    together = statistics.median(rates(peer, described, batch, form, lanes))
                    gain = f"{alone:,.0f} | {together:,.0f} | {together / alone:.1f}"
                    lines.append(f"| {framework} | {units} | {batch} | {lanes} | {gain} |")
                    echo(f"  {lines[-1]}")
    return "\n".join(lines)


def forms(echo: Echo) -> str:
    """Rows a second of a state, by a trainer with PyTorch alone."""
    lines = [
        f"| hidden units | rows of a batch | {' | '.join(FORMS)} |",
        f"|---|---:|{'---:|' * len(FORMS)}",
    ]
    with Peer("torch", gpu=DEVICE) as peer:
        peer.socket.settimeout(None)
        peer.load("d", buffers(), 1 << 30)
        for hidden, batch in PERCEPTRONS:
            described = of_perceptron(hidden)
            made = (statistics.median(rates(peer, described, batch, form, 1)) for form in FORMS)
            units = " and ".join(map(str, hidden))
            lines.append(f"| {units} | {batch} | {' | '.join(f'{rate:,.0f}' for rate in made)} |")
            echo(f"  {lines[-1]}")
    return "\n".join(lines)


def rates(peer: Peer, described: Json, batch: int, form: str, states: int) -> Iterator[float]:
    """Rows a second of all states together, several times; what compiles is not counted."""
    asked, passes = (
        {"use": form, "remaining_rows": 0, "known": {}},
        trainer_peer.fit(batch, FUSED_PASSES),
    )
    for turn in range(TURNS + 1):
        if states == 1:
            peer.begin("train", described, NEW, fit=passes, order=place(), forms=asked)
        else:
            visits = [{"dataset": "d", "order": place()}]
            for key in range(states):
                more: dict[str, Any] = {
                    "fit": passes,
                    "forms": asked,
                    "visits": visits,
                    "result_key": f"state {key}",
                }
                peer.begin("fusion", described, {**NEW, "seed": key}, beside=bool(key), **more)
        began = time.perf_counter()
        peer.ask({"do": "finish"})
        if turn:
            yield states * FUSED_ROWS * FUSED_BUFFERS * FUSED_PASSES / (time.perf_counter() - began)


def of_perceptron(hidden: Sequence[int]) -> Json:
    """The program of one with so many hidden units, as the wire has it."""
    return program(
        json.loads(perceptron(INPUTS, hidden, CLASSES)),
        targets=[{"kind": "onehot", "classes": CLASSES}],
    )


def buffers() -> list[list[tuple[str, np.ndarray]]]:
    """Rows as the wire has them."""
    rng = np.random.default_rng(1)
    drawn = [numeric(rng, FUSED_ROWS) for _ in range(FUSED_BUFFERS)]
    return [[("x", x), ("y", np.eye(CLASSES, dtype=np.int16)[y])] for x, y in drawn]
