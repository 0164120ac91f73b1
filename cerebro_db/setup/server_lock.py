"""The lock of a server that is being set up: two setups at once would undo each other's files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cerebro_db.setup.server_address import ServerAddress
from cerebro_db.setup.system_user import act_as

WAITING = "WAIT  server: another cerebro-db setup is changing it"


@contextmanager
def lock_server(address: ServerAddress, report: Callable[[str], None]) -> Iterator[None]:
    """Be the only setup of the server; wait until an earlier one has ended.

    The lock is that of the kernel on the data folder, which only the system user and root can open.
    It leaves no file, and ends with its process.
    """
    with address.connect() as connection:
        query = "SELECT pg_catalog.current_setting('data_directory')"
        folder = connection.exec_driver_sql(query).scalar_one()
    with act_as(address.user):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(WAITING)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
