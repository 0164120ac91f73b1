"""Executes a trainer: `python -I -m cerebro_trainer --fd N --parent PID --framework F --threads T
…`.

The order matters. First the process ties its life to its parent's, then it makes itself the first
choice of the kernel's memory killer and the last one of its scheduler, shuts itself off from other
processes, and only then it loads a framework, which takes a second and much memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cerebro_trainer import frameworks, process_isolation
from cerebro_trainer.service import Assignment, serve


def main() -> None:
    """Serve until the backend goes."""
    arguments = _arguments()
    process_isolation.follow_parent(arguments.parent)
    process_isolation.name_trainer(arguments.framework, arguments.parent)
    process_isolation.offer_to_memory_killer()
    process_isolation.keep_to(arguments.cores)
    process_isolation.give_way(threads=True)
    process_isolation.keep_private()
    cache = arguments.compilation_cache
    serve(
        Assignment(
            arguments.fd,
            arguments.pulse,
            arguments.framework,
            arguments.threads,
            cache,
            arguments.memory,
        )
    )


def _arguments() -> argparse.Namespace:
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
