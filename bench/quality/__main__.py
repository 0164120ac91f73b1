"""Measure the quality of models on real tables, and report it.

Each attempt adds a line to a file. Conditions that the file has are not measured again, so that a
long bench can be done in pieces, on a machine on which nothing else runs.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from bench import document
from bench.quality.contenders import KEYS
from bench.quality.measurement import Settings, measure
from bench.quality.report import report
from bench.quality.results import read_results
from bench.real_tables import TABLES, TWENTY

RESULTS = Path(__file__).with_name("results.jsonl")
USUAL = ("ours", "medium", "flaml", "lightgbm", "boosting", "mlp")
NONE = "none"
SECTION = "quality"


def main() -> None:
    """Measure what the command line names, and print the report of the whole file."""
    args = _parse_arguments()
    # SIGTERM stops and removes the server, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = Settings(
        tables=[name for name in args.tables if name != NONE],
        contenders=[KEYS[key] for key in args.contenders],
        seeds=args.seeds,
        seconds=args.seconds,
        busy=args.busy,
        again=[KEYS[key] for key in args.again],
    )
    measure(settings, args.results, lambda line: print(line, flush=True))
    text = report(read_results(args.results).values())
    print(f"\n{text}\n", flush=True)
    if args.write:
        document.write_section(SECTION, text)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.quality", description=__doc__)
    parser.add_argument(
        "--tables", nargs="+", choices=(*TABLES, NONE), default=[*TWENTY], metavar="TABLE",
        help=f"of {', '.join(TABLES)}; default: twenty of them; {NONE}: only report",
    )  # fmt: skip
    parser.add_argument(
        "--contenders", nargs="+", choices=KEYS, default=[*USUAL], metavar="CONTENDER",
        help=f"of {', '.join(KEYS)}; default: {', '.join(USUAL)}",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, from 1 on")
    parser.add_argument("--seconds", type=float, default=30, help="of each contender on a table")
    parser.add_argument(
        "--busy", type=int, default=0, help="processes that compute something else meanwhile"
    )
    parser.add_argument(
        "--again", nargs="+", choices=KEYS, default=[], metavar="CONTENDER",
        help="contenders that are measured again; their new lines replace the old ones",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results")
    parser.add_argument(
        "--write", action="store_true", help="write the report into docs/internals/benchmarks.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
