"""`make bench`: measure, print, and at the scale of the report write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from pathlib import Path

from bench import (
    document,
    estimates,
    features,
    gpu,
    groups,
    must,
    place,
    quality,
    search_job,
    searching,
    sharing,
    strategies,
    tables,
)
from bench.contenders import ALONE, OURS, PEERS, TORCH, Contender
from bench.limits import Bench
from bench.place import Place
from bench.quality import Asked
from bench.real_tables import TABLES
from bench.seeds import contest as seeds
from bench.seeds import report as seeds_report
from bench.seeds import scale
from bench.turns import Measured, measured
from bench.workloads import REPORT, SMALL, WITH_TORCH, WORKLOADS, Workload

SMALL_BATCH = 64
MUST, QUALITY, SEARCHES, JOB, GROUPS, FEATURES = (
    "must",
    "quality",
    "searches",
    "search-job",
    "groups",
    "features",
)
SHARING, ESTIMATES, STRATEGIES, SEEDS, GPU = "sharing", "estimates", "strategies", "seeds", "gpu"
PARTS = (
    *WORKLOADS,
    WITH_TORCH.key,
    MUST,
    QUALITY,
    SEARCHES,
    JOB,
    GROUPS,
    FEATURES,
    SHARING,
    ESTIMATES,
    STRATEGIES,
    SEEDS,
)
PLANNED = 5
"""Estimates of each workload."""


def main() -> None:
    """Measure what was asked for."""
    asked = _arguments()
    # As Ctrl-C does, so that the server is stopped and removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done: dict[str, Measured] = {}
    with place.started(say) as at:
        tell(asked.scale, "machine", document.machine(str(at.value("SHOW server_version"))))
        for key in (key for key in asked.only if key in WORKLOADS):
            done |= _workload(at, key, asked)
        if WITH_TORCH.key in asked.only:
            done[WITH_TORCH.key] = _beside(at, WITH_TORCH, TORCH, asked)
        rows = must.workload_rows(done)
        if MUST in asked.only:
            say("must reach: single parts")
            rows += must.part_rows(
                Bench(place=at, scale=asked.scale, repeats=asked.repeats, say=say)
            )
        if SEEDS in asked.only:
            rows += _seeds(at, asked)
        if asked.scale == REPORT:  # what was not measured now stays as it was measured last
            rows = document.renewed(document.DOCUMENT.read_text(), "must reach", rows)
        if rows:
            tell(asked.scale, "must reach", must.table(rows))
        if QUALITY in asked.only:
            of = Asked(asked.tables, asked.seeds, asked.seconds)
            tell(asked.scale, QUALITY, quality.report(quality.measured(at, of, say), of))
        if SEARCHES in asked.only:
            tell(asked.scale, SEARCHES, searching.report(searching.measured(at, asked.seeds, say)))
        if JOB in asked.only:
            found = search_job.measured(at, asked.scale, asked.repeats, say)
            tell(asked.scale, JOB, search_job.report(found, asked.scale))
        if GROUPS in asked.only:
            tell(asked.scale, GROUPS, groups.measured(at, say))
        if SHARING in asked.only:
            tell(asked.scale, SHARING, sharing.measured(at, say))
        if FEATURES in asked.only:
            tell(asked.scale, FEATURES, features.measured(at, asked.scale, asked.repeats, say))
        if ESTIMATES in asked.only:
            planned = estimates.measured(at, [*WORKLOADS.values()], asked.scale, PLANNED, say)
            tell(
                asked.scale,
                ESTIMATES,
                estimates.report(planned, {key: w.title for key, w in WORKLOADS.items()}),
            )
        if GPU in asked.only:
            tell(asked.scale, GPU, gpu.measured(at, asked.scale, say), document.ON_A_GPU)
        if STRATEGIES in asked.only:
            tried = strategies.measured(at, [*WORKLOADS.values()], asked.scale, asked.repeats, say)
            tell(
                asked.scale,
                STRATEGIES,
                strategies.report(tried, {key: w.title for key, w in WORKLOADS.items()}),
            )


def _workload(at: Place, key: str, asked: argparse.Namespace) -> dict[str, Measured]:
    """A workload with all contenders; and, where small batches have a target, with those and the
    best peer.
    """
    workload = WORKLOADS[key]
    # One configuration cannot be shared among processes or trials.
    everyone = (*OURS, *(PEERS if len(workload.configs) > 1 else ALONE))
    done = {key: _beside(at, workload, everyone, asked)}
    part = workload.with_batches_up_to(SMALL_BATCH)
    if part.key in must.FASTER:
        chosen = [c for c in everyone if c.ours or c.name == tables.best_peer(done[key])]
        done[part.key] = _beside(at, part, chosen, asked)
    return done


def _beside(
    at: Place, workload: Workload, contenders: Sequence[Contender], asked: argparse.Namespace
) -> Measured:
    """A workload with these contenders."""
    done = measured(at, workload, asked.scale, contenders, asked.repeats, say)
    tell(asked.scale, workload.key, document.workload(done, asked.repeats))
    return done


def _seeds(at: Place, asked: argparse.Namespace) -> list[list[str]]:
    """The table of the seeds, and the schedule at the size of a cluster; the rows of "must reach"
    that follow.
    """
    contest = seeds.measured(at, asked.scale, asked.repeats, asked.seconds, say)
    say("the schedule at the size of a cluster")
    simulated = scale.simulated(contest.visits, scale.SIZES[asked.scale])
    tell(
        asked.scale,
        SEEDS,
        f"{seeds_report.report(contest, asked.seconds)}\n\n{scale.report(simulated)}",
    )
    return must.seed_rows(contest)


def tell(scale: str, name: str, content: str, place: Path = document.DOCUMENT) -> None:
    """Print a part of the report, and write it into the document where it is the report."""
    print(f"\n{content}\n", flush=True)
    if scale == REPORT:
        document.write(name, content, place)


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "bench", description="Measures cerebro_db beside other ways to do the same work."
    )
    parser.add_argument(
        "--scale",
        choices=(SMALL, REPORT),
        default=SMALL,
        help="report also writes docs/benchmarks.md",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*PARTS, GPU),
        default=PARTS,
        metavar="KEY",
        help=f"of {', '.join((*PARTS, GPU))}",
    )
    parser.add_argument("--repeats", type=int, default=3, help="attempts of each contender")
    parser.add_argument(
        "--seconds",
        type=float,
        default=300,
        help="of each contender on a table, for quality; of each peer, for seeds",
    )
    parser.add_argument("--seeds", type=int, default=5, help="for quality and searches")
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=TABLES,
        default=[*TABLES],
        metavar="TABLE",
        help="for quality",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
