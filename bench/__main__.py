"""`make bench`: measure and print; a full report becomes docs/internals/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Mapping, Sequence

from bench import (
    bench_server,
    calibration,
    document,
    estimates,
    features,
    first_model,
    gpu,
    groups,
    must,
    search_job,
    searching,
    sharing,
    strategies,
    tables,
    tree_predictions,
)
from bench.bench_server import BenchServer
from bench.contenders import ALONE, OURS, PEERS, TORCH, Contender
from bench.limits import Bench
from bench.seeds import contest as seeds
from bench.seeds import report as seeds_report
from bench.seeds import scale
from bench.turns import WorkloadResults, measure_workload
from bench.workloads import REPORT, SMALL, WITH_TORCH, WORKLOADS, Workload

SMALL_BATCH = 64
MUST = "must"
SEARCHES = "searches"
JOB = "search-job"
GROUPS = "groups"
FEATURES = "features"
SHARING = "sharing"
ESTIMATES = "estimates"
STRATEGIES = "strategies"
SEEDS = "seeds"
GPU = "gpu"
FIRST_MODEL = "first-model"
TREE_PREDICTIONS = "tree-predictions"
CALIBRATION = "calibration"
PARTS = (
    *WORKLOADS,
    WITH_TORCH.key,
    MUST,
    SEARCHES,
    JOB,
    GROUPS,
    FEATURES,
    SHARING,
    ESTIMATES,
    STRATEGIES,
    SEEDS,
    FIRST_MODEL,
    TREE_PREDICTIONS,
    CALIBRATION,
)
ESTIMATES_PER_WORKLOAD = 5
TITLES = {key: workload.title for key, workload in WORKLOADS.items()}


def main() -> None:
    """Measure the parts of the command line."""
    args = _parse_arguments()
    # SIGTERM stops and removes the server, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results: dict[str, WorkloadResults] = {}
    with bench_server.start_server(echo) as server:
        publish(
            args.scale,
            "machine",
            document.describe_machine(str(server.value("SHOW server_version"))),
        )
        for key in (key for key in args.only if key in WORKLOADS):
            results |= _measure_workload_parts(server, key, args)
        if WITH_TORCH.key in args.only:
            results[WITH_TORCH.key] = _measure_contenders(server, WITH_TORCH, TORCH, args)
        rows = must.make_workload_rows(results)
        if MUST in args.only:
            echo("must reach: single parts")
            rows += must.measure_parts(
                Bench(server=server, scale=args.scale, repeats=args.repeats, echo=echo)
            )
        if SEEDS in args.only:
            rows += _measure_seeds(server, args)
        if args.scale == REPORT:  # rows that were not measured now are kept
            rows = document.merge_rows(document.DOCUMENT.read_text(), "must reach", rows)
        if rows:
            publish(args.scale, "must reach", must.format_table(rows))
        for name, measure in REPORTS.items():
            if name in args.only:
                publish(args.scale, name, measure(server, args))


def _measure_workload_parts(
    server: BenchServer, key: str, args: argparse.Namespace
) -> dict[str, WorkloadResults]:
    """Measure a workload with all contenders.

    If its small batches have a target, they are measured with ours and the best peer.
    """
    workload = WORKLOADS[key]
    # One configuration cannot be shared among processes or trials.
    contenders = (*OURS, *(PEERS if len(workload.configs) > 1 else ALONE))
    results = {key: _measure_contenders(server, workload, contenders, args)}
    part = workload.limit_batches(SMALL_BATCH)
    if part.key in must.FASTER:
        finalists = [
            c for c in contenders if c.ours or c.name == tables.find_best_peer(results[key])
        ]
        results[part.key] = _measure_contenders(server, part, finalists, args)
    return results


def _measure_contenders(
    server: BenchServer,
    workload: Workload,
    contenders: Sequence[Contender],
    args: argparse.Namespace,
) -> WorkloadResults:
    """Measure a workload with contenders, and publish the results."""
    results = measure_workload(server, workload, args.scale, contenders, args.repeats, echo)
    publish(args.scale, workload.key, document.describe_workload(results, args.repeats))
    return results


def _measure_seeds(server: BenchServer, args: argparse.Namespace) -> list[list[str]]:
    """Compare methods, and simulate the schedule of a cluster; return rows of "must reach"."""
    contest = seeds.measure_contest(server, args.scale, args.repeats, args.seconds, echo)
    echo("the schedule at the size of a cluster")
    simulated = scale.simulate(contest.visits, scale.SIZES[args.scale])
    publish(
        args.scale,
        SEEDS,
        f"{seeds_report.report(contest, args.seconds)}\n\n{scale.report(simulated)}",
    )
    return must.make_seed_rows(contest)


def publish(scale: str, name: str, content: str) -> None:
    """Print a part of the report; at the scale of the report, write it into the document."""
    print(f"\n{content}\n", flush=True)
    if scale == REPORT:
        document.write_section(name, content)


def echo(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def _report_searches(server: BenchServer, args: argparse.Namespace) -> str:
    return searching.report(searching.measure_searches(server, args.seeds, echo))


def _report_search_job(server: BenchServer, args: argparse.Namespace) -> str:
    attempts = search_job.measure_search_job(server, args.scale, args.repeats, echo)
    return search_job.report(attempts, args.scale)


def _report_estimates(server: BenchServer, args: argparse.Namespace) -> str:
    expected = estimates.measure_estimates(
        server, [*WORKLOADS.values()], args.scale, ESTIMATES_PER_WORKLOAD, echo
    )
    return estimates.report(expected, TITLES)


def _report_strategies(server: BenchServer, args: argparse.Namespace) -> str:
    strategy_runs = strategies.measure_strategies(
        server, [*WORKLOADS.values()], args.scale, args.repeats, echo
    )
    return strategies.report(strategy_runs, TITLES)


def _report_first_model(server: BenchServer, args: argparse.Namespace) -> str:
    measured = first_model.measure_first_models(server, args.scale, args.repeats, echo)
    return first_model.report(measured)


def _report_tree_predictions(server: BenchServer, args: argparse.Namespace) -> str:
    speeds = tree_predictions.measure_trees(server, args.scale, args.repeats, echo)
    return tree_predictions.report(speeds, args.scale)


def _report_calibration(server: BenchServer, args: argparse.Namespace) -> str:
    measured = calibration.measure_calibrations(server, args.scale, args.repeats, echo)
    return calibration.report(measured)


REPORTS: Mapping[str, Callable[[BenchServer, argparse.Namespace], str]] = {
    SEARCHES: _report_searches,
    JOB: _report_search_job,
    GROUPS: lambda server, args: groups.measure_groups(server, echo),
    SHARING: lambda server, args: sharing.measure_sharing(server, echo),
    FEATURES: lambda server, args: features.measure_features(
        server, args.scale, args.repeats, echo
    ),
    ESTIMATES: _report_estimates,
    GPU: lambda server, args: gpu.measure_gpu(server, args.scale, echo),
    STRATEGIES: _report_strategies,
    FIRST_MODEL: _report_first_model,
    TREE_PREDICTIONS: _report_tree_predictions,
    CALIBRATION: _report_calibration,
}
"""The functions that measure a part and return its report, in the order of their execution."""


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "bench", description="Measures cerebro_db beside other ways to do the same work."
    )
    parser.add_argument(
        "--scale",
        choices=(SMALL, REPORT),
        default=SMALL,
        help="report also writes docs/internals/benchmarks.md",
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
        help="of each peer, for the part seeds",
    )
    parser.add_argument("--seeds", type=int, default=5, help="for the part searches")
    return parser.parse_args()


if __name__ == "__main__":
    main()
