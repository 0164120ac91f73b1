"""How a call enters: with its own path, and with one version of SQL and Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from cerebro_plpy import limits
from cerebro_plpy.database.call_checks import check_encoding
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.cpu_priority import StartupCores
from cerebro_plpy.database.sessions.spi import Database, raise_to_sql
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.platform import detect
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources


def package_version() -> str:
    """The version of this package, which the installation wrote beside it."""
    return _installed("VERSION").strip()


def reference() -> str:
    """The page that describes the SQL functions: docs/sql-reference.md of this version."""
    return _installed("sql-reference.md")


def _installed(name: str) -> str:
    """What the installation wrote beside this package."""
    with open(
        os.path.join(os.path.dirname(os.path.dirname(__file__)), name), encoding="utf-8"
    ) as file:
        return file.read()


Globals = dict[str, Any]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
VERSION_KEY, BEGUN_KEY = "cerebro_version", "cerebro_begun"


def database(plpy: Any) -> Database:
    """The caller's session, on whatever platform this is."""
    return Database(plpy, detect.detect_platform())


def bounded(function: F) -> F:
    """Make a function refuse counts above their maxima before anything else; its parameters are
    named as in SQL.
    """
    names = function.__code__.co_varnames[2 : function.__code__.co_argcount]

    @wraps(function)
    def checked(plpy: Any, gd: Globals, *arguments: Any) -> Any:
        raise_to_sql(
            plpy, lambda: limits.check_arguments(function.__name__, dict(zip(names, arguments)))
        )
        return function(plpy, gd, *arguments)

    return cast(F, checked)


def call(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """Do the work of a public function, after checking once that SQL and Python are of the same
    version.
    """

    def checked() -> T:
        db = database(plpy)
        db.platform.check_process()
        with db.pinned_path():
            return _checked(db, gd, work)

    return raise_to_sql(plpy, checked)


def call_training(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """The same of a function that trains, and loads what it needs within its work.

    That is a tenth of a second at once, and the sessions that it opens do so as well: where
    processors are spared for others they all begin on those of trainers.
    """

    def apart(db: Database) -> T:
        spare = 0 if BEGUN_KEY in gd else settings.read(db).spare_cores
        startup_cores = StartupCores((os.getpid(),), host_resources.startup_cores(spare))
        gd[BEGUN_KEY] = True
        try:
            return work(db)
        finally:
            startup_cores.release()

    return call(plpy, gd, apart)


def stepped(plpy: Any, gd: Globals, blocks: Iterator[T]) -> Iterator[T]:
    """The blocks of an answer, each as its caller takes it; between two of them the session is as
    it was.
    """
    while True:
        block = call(plpy, gd, lambda db: next(blocks, None))
        if block is None:
            return
        yield block


def call_declared(plpy: Any, gd: Globals, work: Callable[[Database], T]) -> T:
    """The same of a function that needs nothing of the caller's path, and whose declaration pins
    another: soon done.
    """

    def checked() -> T:
        db = database(plpy)
        db.platform.check_process()
        return _checked(db, gd, work)

    return raise_to_sql(plpy, checked)


def _checked(db: Database, gd: Globals, work: Callable[[Database], T]) -> T:
    if VERSION_KEY not in gd:
        _check_version(db)
        check_encoding(db)
        gd[VERSION_KEY] = package_version()
    return work(db)


def _check_version(db: Database) -> None:
    installed, package = db.value(sql("read.version")), package_version()
    if installed != package:
        raise ObjectNotReady(
            f"extension cerebro_db is version {installed}, its Python package is version {package}",
            hint="Run ALTER EXTENSION cerebro_db UPDATE, or install the package of that version; "
            "then reconnect.",
        )
