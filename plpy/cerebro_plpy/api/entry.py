"""Entry of a call, with a pinned search_path and equal versions of SQL and Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from cerebro_plpy import limits
from cerebro_plpy.database.call_checks import check_encoding
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.cpu_priority import StartupCores
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.sql_errors import convert_to_sql_error, raise_to_sql
from cerebro_plpy.errors import CerebroError, ObjectNotReady
from cerebro_plpy.platform import detect
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources

Globals = dict[str, Any]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
VERSION_KEY = "cerebro_version"
TRAINING_KEY = "cerebro_begun"  # is set once a call that trains has begun in the session
COUNTS_ARE_CHECKED = "counts_are_checked"
"""Attribute of functions that `check_counts` returns."""


def read_package_version() -> str:
    """Return the version of this package."""
    return _read_installed("VERSION").strip()


def read_reference() -> str:
    """Return the pages that describe the SQL functions: docs/reference/sql of this version."""
    return _read_installed("sql-reference.md")


def _read_installed(name: str) -> str:
    """Read a file that the installation wrote into the folder of this package."""
    folder = os.path.dirname(os.path.dirname(__file__))
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def get_database(plpy: Any) -> Database:
    """Return the caller's session."""
    return Database(plpy, detect.detect_platform())


def report_errors(function: F) -> F:
    """Let a function raise its errors as PostgreSQL errors.

    It is the outermost decorator of a function that SQL calls. PL/Python lists the Python frames
    that an error has left, which are then this one alone.
    """

    @wraps(function)
    def run(plpy: Any, gd: Globals, *arguments: Any) -> Any:
        try:
            return function(plpy, gd, *arguments)
        except CerebroError as error:
            failure = convert_to_sql_error(plpy, error)
        raise failure

    return cast(F, run)


def check_counts(function: F) -> F:
    """Let a function refuse counts above their maxima before it does anything else.

    Args:
        function: its parameters have the names of the SQL arguments.
    """
    names = function.__code__.co_varnames[2 : function.__code__.co_argcount]

    @wraps(function)
    def check_and_run(plpy: Any, gd: Globals, *arguments: Any) -> Any:
        limits.check_arguments(function.__name__, dict(zip(names, arguments)))
        return function(plpy, gd, *arguments)

    setattr(check_and_run, COUNTS_ARE_CHECKED, True)
    return cast(F, check_and_run)


def call(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """Do the work of a public function.

    The first call of a session checks that SQL and Python have the same version.
    """
    db = get_database(plpy)
    db.platform.check_process()
    with db.pinned_path():
        return db.explain_timeout(lambda: _check_session_and_run(db, gd, work))


def call_training(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """Do the work of a function that trains and imports its operation within its work.

    Imports take a tenth of a second, in this session and in each session that it opens. With
    reserved cores, all of these sessions therefore begin on the cores of trainers.
    """

    def run_on_startup_cores(db: Database) -> T:
        spare = 0 if TRAINING_KEY in gd else settings.read(db).spare_cores
        startup_cores = StartupCores((os.getpid(),), host_resources.startup_cores(spare))
        gd[TRAINING_KEY] = True
        try:
            return work(db)
        finally:
            startup_cores.release()

    return call(plpy, gd, run_on_startup_cores)


def call_for_blocks(plpy: Any, gd: Globals, work: Callable[[Database], Iterator[T]]) -> Iterator[T]:
    """Do the work of a public function that returns a result in blocks.

    The work has begun when this function returns. Between two blocks, the session has its own
    search_path again.
    """
    return _yield_blocks(plpy, gd, call(plpy, gd, work))


def _yield_blocks(plpy: Any, gd: Globals, blocks: Iterator[T]) -> Iterator[T]:
    while True:
        block = raise_to_sql(plpy, lambda: call(plpy, gd, lambda db: next(blocks, None)))
        if block is None:
            return
        yield block


def call_with_declared_path(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """Do the work of a function whose SQL declaration pins the search_path, which saves time."""
    db = get_database(plpy)
    db.platform.check_process()
    return _check_session_and_run(db, gd, work)


def _check_session_and_run(db: Database, gd: Globals, work: Callable[[Database], T]) -> T:
    if VERSION_KEY not in gd:
        _check_version(db)
        check_encoding(db)
        gd[VERSION_KEY] = read_package_version()
    return work(db)


def _check_version(db: Database) -> None:
    extension = db.value(sql("read.version"))
    package = read_package_version()
    if extension != package:
        raise ObjectNotReady(
            f"extension cerebro_db is version {extension}, its Python package is version {package}",
            hint=f"Install version {extension} of the Python package, and reconnect; or update the "
            "extension as an administrator: ALTER EXTENSION cerebro_db UPDATE; then reconnect.",
        )
