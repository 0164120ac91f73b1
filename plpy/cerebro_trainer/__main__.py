"""Entry point of a trainer that a backend executes: `python -I -m cerebro_trainer --fd N …`.

The order of the steps matters. The process first ties its life to that of its parent. It then
becomes the first choice of the kernel's memory killer and the last one of its scheduler, and
isolates itself from other processes. Only then does it load a framework, which takes a second and
much memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cerebro_trainer import frameworks, process_isolation
from cerebro_trainer.service import Assignment, serve


def main() -> None:
    """Serve until the backend goes."""
    args = _parse_arguments()
    process_isolation.follow_parent(args.parent)
    process_isolation.set_trainer_title(args.framework, args.parent)
    process_isolation.prefer_for_memory_killer()
    process_isolation.set_cpu_affinity(args.cores)
    process_isolation.lower_cpu_priority(use_thread=True)
    process_isolation.keep_private()
    assignment = Assignment(
        socket=args.fd,
        heartbeat=args.pulse,
        framework=args.framework,
        threads=args.threads,
        cache=args.compilation_cache,
        memory=args.memory,
    )
    serve(assignment)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "cerebro_trainer", description="The training process of cerebro_db."
    )
    parser.add_argument(
        "--fd", type=int, required=True, help="the connected socket, an inherited descriptor"
    )
    parser.add_argument(
        "--pulse", type=int, required=True, help="shared memory for signs of life, likewise"
    )
    parser.add_argument(
        "--parent", type=int, required=True, help="process id of the backend that started this"
    )
    parser.add_argument("--framework", choices=frameworks.NAMES, required=True)
    parser.add_argument(
        "--threads", type=int, required=True, help="threads that one operation may use"
    )
    parser.add_argument("--compilation-cache", type=Path, help="a private folder for compiled code")
    parser.add_argument(
        "--memory", type=int, default=0, help="bytes above which it is ended; 0 for any number"
    )
    parser.add_argument(
        "--cores",
        type=int,
        nargs="*",
        default=(),
        help="the processors that it keeps to, by number",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
