"""Measure whole runs on a GPU.

One measurement is the utilization of the device while rows come from tables. The others are the
gains of more trainers, of numbers of half the size, and of training states side by side.

The utilization is the share of time in which the device executed anything, as its driver reports
it, sampled ten times a second. It counts from the time when each trainer has compiled, until the
first of them has no visit left.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import trainer_peer
from models import Json, dense, layer, sequential
from trainer_peer import Peer, place
from trainer_programs import program

from bench.bench_server import BenchServer, Echo, load, pack
from bench.examples import draw_images, draw_numeric
from bench.job import Job
from bench.ours import fit
from bench.workloads import REPORT, Workload, make_grid, make_perceptron
from cerebro_plpy.run.log.form_timings import LANES

DEVICE = "0"
FRAMEWORKS = ("jax", "torch", "tensorflow")
EVERY_MS = 100
INPUTS = 20
CLASSES = 3
PERCEPTRONS = (((64, 32), 32), ((256, 128), 64), ((1024, 512), 128))
"""Hidden units, and rows of a batch, of networks whose states train side by side."""
ALONE = {"jax": "scan", "torch": "captured"}
SIDE_BY_SIDE = ("fused_8", "fused_32")
FORMS = ("eager", "graph", "captured")
"""The forms of PyTorch."""
FUSED_ROWS = 8_192
FUSED_BUFFERS = 2
FUSED_PASSES = 2
TURNS = 3
NEW: Json = {"source": "new", "seed": 0}


def make_convolutional(width: int) -> str:
    """Return a network of six convolutions with normalisation, over pictures of 32 x 32 x 3.

    Its three stages have two convolutions each, and each stage is twice as wide as the last one.
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
    draw=draw_images,
    rows=16_384,
    validation=1_024,
    classes=10,
    architectures=(make_convolutional(128),),
    configs=make_grid(1, ["Adam"], [3e-3, 1e-3, 3e-4, 1e-4], [256]),
    epochs=2,
    small_rows=512,
)
NUMBERS = Workload(
    key="GN",
    title="32 rates for a perceptron of 64 and 32 units, batches of 32",
    draw=draw_numeric,
    rows=16_384,
    validation=1_024,
    classes=CLASSES,
    architectures=(make_perceptron(INPUTS, (64, 32), CLASSES),),
    configs=make_grid(1, ["Adam"], [1e-2 * 0.8**number for number in range(32)], [32]),
    epochs=2,
    small_rows=512,
)
PASSES = {PICTURES.key: 3, NUMBERS.key: 16}
"""Passes over the rows of a segment in each visit."""


class Way(NamedTuple):
    """The settings of a run."""

    framework: str
    workers: int  # number of trainers that share the device
    policy: str | None = None  # the dtype policy


WAYS = {
    PICTURES.key: [
        Way(name, *options)
        for name in FRAMEWORKS
        for options in ((1,), (2,), (2, "mixed_bfloat16"))
    ],
    NUMBERS.key: [Way(name, 1) for name in ALONE],
}


@dataclass(frozen=True)
class Outcome:
    """The measurements of a run."""

    way: Way
    wall: float  # seconds
    compiled: float  # seconds from the end of compilation to the end of a trainer's last visit
    busy: float  # share of this time in which the device was busy
    visit: float  # median seconds of a visit after compilation
    rate: float  # rows a second after compilation
    memory: float  # peak memory of the device in MB
    forms: str  # forms of the training loops

    def line(self) -> str:
        """Return a row of the table."""
        way = self.way
        return (
            f"| {way.framework} | {way.workers} | {way.policy or 'float32'} | {self.wall:.1f} | "
            f"{self.compiled:.1f} | {self.visit:.2f} | {self.busy:.1%} | {self.rate:,.0f} | "
            f"{self.memory:,.0f} | {self.forms} |"
        )


class Sample(NamedTuple):
    """A sample of the driver."""

    time: float  # seconds since the epoch
    busy: float  # percentage of time in which the device was busy
    memory: float  # used memory in MB


def measure_gpu(server: BenchServer, scale: str, echo: Echo) -> str:
    """Return all measurements as text."""
    device = find_device()
    if device is None:
        raise SystemExit("this machine has no GPU that nvidia-smi lists")
    usable = [framework for framework in FRAMEWORKS if has_device(framework)]
    echo(f"  {device}; {', '.join(usable)}")
    parts = [f"{device}."]
    for workload in (PICTURES, NUMBERS):
        parts += [
            f"{workload.title[0].upper()}{workload.title[1:]}:",
            compare_ways(server, scale, workload, usable, echo),
        ]
    fusable = [framework for framework in ALONE if framework in usable]
    if fusable:
        parts += [
            "Rows a second of a trainer alone, one state after another and several side by side:"
        ]
        parts += [compare_fusion(fusable, echo)]
    if "torch" in usable:
        parts += [
            "Rows a second of a trainer alone with PyTorch, by the form of its loop:",
            compare_forms(echo),
        ]
    return "\n\n".join(parts)


def find_device() -> str | None:
    """Return the driver's name of the device; None without one."""
    try:
        command = [
            "nvidia-smi",
            "--query-gpu=name,driver_version",
            "--format=csv,noheader",
            "-i",
            DEVICE,
        ]
        return (
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
            or None
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def has_device(framework: str) -> bool:
    """Return whether a trainer with a framework finds the device."""
    try:
        with Peer(framework, gpu=DEVICE) as peer:
            return any(not name.startswith("CPU") for name in peer.hello["devices"])
    except EOFError:
        return False


def compare_ways(
    server: BenchServer,
    scale: str,
    workload: Workload,
    usable: Sequence[str],
    echo: Echo,
) -> str:
    """Run the same model selection in each way; return a table."""
    if scale != REPORT and workload is PICTURES:
        workload = replace(workload, architectures=(make_convolutional(4),))
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
                run_way(server, job, workload.count_rows(scale) * PASSES[workload.key], way).line()
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
"""The visits that ended after each trainer had compiled the program, and while all had visits."""


def run_way(server: BenchServer, job: Job, rows: int, way: Way) -> Outcome:
    """Run a job in a way.

    Args:
        rows: rows that the visits of a configuration read in an iteration.
    """
    settings: dict[str, Any] = {
        "use_gpus": True,
        "workers": way.workers,
        "dtype_policy": way.policy,
    }
    way_job = replace(job, framework=way.framework, settings=settings)
    with server.session() as session, sample_device() as samples:
        began = time.perf_counter()
        run_id = fit(session, way_job)
        wall = time.perf_counter() - began
    with server.session() as session, session.cursor() as cursor:
        cursor.execute(VISITS, (run_id,))
        visits = cursor.fetchall()
    begin = min(visit[0] for visit in visits)
    end = visits[-1][1]
    inside = [sample for sample in samples if begin <= sample.time <= end]
    return Outcome(
        way=way,
        wall=wall,
        compiled=end - begin,
        busy=statistics.fmean(sample.busy for sample in inside) / 100 if inside else float("nan"),
        visit=statistics.median(visit[1] - visit[0] for visit in visits),
        rate=rows / job.segments * len(visits) / (end - begin),
        memory=max((sample.memory for sample in inside), default=0.0),
        forms=", ".join(sorted({visit[2] for visit in visits})),
    )


@contextmanager
def sample_device() -> Iterator[list[Sample]]:
    """Yield a list that is filled with samples of the device until the block ends."""
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
            target=lambda: samples.extend(map(read_sample, csv.reader(process.stdout or ())))
        )
        reader.start()
        try:
            yield samples
        finally:
            process.terminate()
            reader.join()


def read_sample(fields: Sequence[str]) -> Sample:
    """Return the sample in a line of nvidia-smi, whose times are local.

    >>> read_sample(["1970/01/01 00:00:01.500", " 97", " 1024"])._replace(time=0.0)
    Sample(time=0.0, busy=97.0, memory=1024.0)
    """
    time_of_sample = datetime.strptime(fields[0], "%Y/%m/%d %H:%M:%S.%f").astimezone()
    return Sample(time_of_sample.timestamp(), float(fields[1]), float(fields[2]))


def compare_fusion(frameworks: Sequence[str], echo: Echo) -> str:
    """Compare the rows a second of states that train one after another and side by side."""
    lines = [
        "| framework | hidden units | rows of a batch | states | one after another | side by side "
        "| gain |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for framework in frameworks:
        with Peer(framework, gpu=DEVICE) as peer:
            peer.socket.settimeout(None)
            peer.load("d", make_buffers(), 1 << 30)
            for hidden, batch in PERCEPTRONS:
                program_json = make_program(hidden)
                single_rate = statistics.median(
                    measure_rates(peer, program_json, batch, ALONE[framework], 1)
                )
                units = " and ".join(map(str, hidden))
                for form in SIDE_BY_SIDE:
                    lanes = LANES[form]
                    fused_rate = statistics.median(
                        measure_rates(peer, program_json, batch, form, lanes)
                    )
                    gain = (
                        f"{single_rate:,.0f} | {fused_rate:,.0f} | {fused_rate / single_rate:.1f}"
                    )
                    lines.append(f"| {framework} | {units} | {batch} | {lanes} | {gain} |")
                    echo(f"  {lines[-1]}")
    return "\n".join(lines)


def compare_forms(echo: Echo) -> str:
    """Compare the rows a second of PyTorch by the form of its training loop."""
    lines = [
        f"| hidden units | rows of a batch | {' | '.join(FORMS)} |",
        f"|---|---:|{'---:|' * len(FORMS)}",
    ]
    with Peer("torch", gpu=DEVICE) as peer:
        peer.socket.settimeout(None)
        peer.load("d", make_buffers(), 1 << 30)
        for hidden, batch in PERCEPTRONS:
            program_json = make_program(hidden)
            row_rates = (
                statistics.median(measure_rates(peer, program_json, batch, form, 1))
                for form in FORMS
            )
            units = " and ".join(map(str, hidden))
            lines.append(
                f"| {units} | {batch} | {' | '.join(f'{rate:,.0f}' for rate in row_rates)} |"
            )
            echo(f"  {lines[-1]}")
    return "\n".join(lines)


def measure_rates(
    peer: Peer, program_json: Json, batch: int, form: str, states: int
) -> Iterator[float]:
    """Yield the rows a second of all states together, several times, without compilation."""
    forms = {"use": form, "remaining_rows": 0, "known": {}}
    passes = trainer_peer.fit(batch, FUSED_PASSES)
    for turn in range(TURNS + 1):
        if states == 1:
            peer.begin("train", program_json, NEW, fit=passes, order=place(), forms=forms)
        else:
            visits = [{"dataset": "d", "order": place()}]
            for key in range(states):
                more: dict[str, Any] = {
                    "fit": passes,
                    "forms": forms,
                    "visits": visits,
                    "result_key": f"state {key}",
                }
                peer.begin("fusion", program_json, {**NEW, "seed": key}, beside=bool(key), **more)
        began = time.perf_counter()
        peer.ask({"do": "finish"})
        if turn:
            yield states * FUSED_ROWS * FUSED_BUFFERS * FUSED_PASSES / (time.perf_counter() - began)


def make_program(hidden: Sequence[int]) -> Json:
    """Return the program of a perceptron in the wire protocol."""
    return program(
        json.loads(make_perceptron(INPUTS, hidden, CLASSES)),
        targets=[{"kind": "onehot", "classes": CLASSES}],
    )


def make_buffers() -> list[list[tuple[str, np.ndarray]]]:
    """Return rows in the wire protocol."""
    rng = np.random.default_rng(1)
    batches = [draw_numeric(rng, FUSED_ROWS) for _ in range(FUSED_BUFFERS)]
    return [[("x", x), ("y", np.eye(CLASSES, dtype=np.int16)[y])] for x, y in batches]
