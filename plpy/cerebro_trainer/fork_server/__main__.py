"""Entry point of a fork server: `python -I -m cerebro_trainer.fork_server --address A …`.

The command returns at once. From then on backends can connect to the address; they are served when
the import is complete.
"""

from __future__ import annotations

import argparse
import errno
import os
import socket
from collections.abc import Callable
from importlib import import_module

from cerebro_trainer import process_isolation
from cerebro_trainer.fork_server import reaper

BACKLOG = 128
"""Number of backends that may wait for a trainer."""


def main() -> None:
    """Listen, and continue in the background as the reaper of the fork server."""
    args = _parse_arguments()
    listener = _listen(args.address)
    if listener is None:
        os._exit(0)
    read_end, write_end = os.pipe()
    if os.fork():
        os.close(write_end)
        # Until the fork server listens, backends that connect see the process id of this process.
        os.read(read_end, 1)
        os._exit(0)

    os.close(read_end)
    process_isolation.set_cpu_affinity(args.cores)

    def run_fork_server() -> None:
        # Listen again: backends then see the process id of this process, and check its progress.
        listener.listen(BACKLOG)
        os.write(write_end, b".")
        os.close(write_end)
        # Loaded here, because the reaper must not depend on a library that may fail.
        module = import_module("cerebro_trainer.fork_server.server")
        serve: Callable[[socket.socket, str, float], None] = module.serve
        serve(listener, args.framework, args.seconds)

    reaper.run(args.server, listener, run_fork_server)


def _listen(name: str) -> socket.socket | None:
    """Listen at a name of the abstract namespace, which leaves no file behind.

    Returns:
        None if another process listens there.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind("\0" + name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    listener.listen(BACKLOG)
    return listener


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "cerebro_trainer.fork_server", description="Forks training processes of cerebro_db."
    )
    parser.add_argument(
        "--address", required=True, help="where to listen, a name of the abstract namespace"
    )
    parser.add_argument(
        "--server", type=int, required=True, help="process id of the server, with which it ends"
    )
    parser.add_argument("--framework", required=True)
    parser.add_argument(
        "--seconds", type=float, required=True, help="how long it stays when no trainer is wanted"
    )
    parser.add_argument(
        "--cores",
        type=int,
        nargs="*",
        default=(),
        help="the processors that all keep to, by number",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
