"""Starts a nursery: `python -I -m cerebro_trainer.fork_server --address A --server PID --framework
F --seconds S`.

It returns at once. From then on backends can connect to the address; they are served when the
import is over.
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

WAITING = 128
"""Backends that may wait until their trainer is forked."""


def main() -> None:
    """Listen, and go on in the background, as keeper of the process that imports and forks."""
    arguments = _arguments()
    listener = _listener(arguments.address)
    if listener is None:
        os._exit(0)
    read_end, write_end = os.pipe()
    if os.fork():
        os.close(write_end)
        os.read(
            read_end, 1
        )  # whoever connects before the nursery listens itself is told the number of this process
        os._exit(0)

    os.close(read_end)
    process_isolation.set_cpu_affinity(arguments.cores)

    def nursery() -> None:
        listener.listen(
            WAITING
        )  # anew: who connects is told the number of this process, and looks whether it works
        os.write(write_end, b".")
        os.close(write_end)
        # Loaded there, because the keeper is to hold no library that could fail it.
        serve: Callable[[socket.socket, str, float], None] = import_module(
            "cerebro_trainer.fork_server.server"
        ).serve
        serve(listener, arguments.framework, arguments.seconds)

    reaper.keep(arguments.server, listener, nursery)


def _listener(name: str) -> socket.socket | None:
    """Listens in the abstract namespace, where nothing is left of an address; None where another
    process does.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind("\0" + name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    listener.listen(WAITING)
    return listener


def _arguments() -> argparse.Namespace:
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
