"""Steps on the machine of the server: Debian's packages, our files, the trainers' libraries."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

from cerebro_db.errors import InsufficientPrivilege, InvalidParameter, ObjectNotReady
from cerebro_db.server import deployment
from cerebro_db.server.provision import find_extension_folder
from cerebro_db.setup import backend_python
from cerebro_db.setup.step import Step
from cerebro_db.setup.system_user import act_as, can_act_as, find_owner
from cerebro_db.setup.target import Target

# The extras that trainers use, and a module that each brings.
EXTRAS = {
    "tensorflow": "tensorflow",
    "cuda": "tensorflow",
    "jax": "jax",
    "torch": "torch",
    "boosting": "lightgbm",
    "automl": "optuna",
}
EXTRA_MARKER = re.compile(r"(?:^|\s+and\s+)extra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']")


def plan_packages(target: Target) -> Step:
    """Plan PL/Python for the server, and psycopg2 for the Python in it."""
    with target.address.connect() as connection:
        version = connection.exec_driver_sql("SHOW server_version").scalar_one()
        major = version.split(".")[0].split()[0]
        if not backend_python.has_language(connection):
            packages = [f"postgresql-plpython3-{major}", "python3-psycopg2"]
            summary = f"PostgreSQL {version} has no PL/Python 3"
            return _plan_install(summary, packages)
        python = backend_python.probe(connection)
    if not python.has_psycopg2:
        summary = f"the server's Python {python.version} has no psycopg2"
        return _plan_install(summary, ["python3-psycopg2"])
    summary = f"PostgreSQL {version}, PL/Python with Python {python.version}, psycopg2"
    return Step(name="packages", summary=summary)


def _plan_install(summary: str, packages: list[str]) -> Step:
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    obstacle = ""
    if shutil.which("apt-get") is None:
        obstacle = f"{summary}; on this system the packages may have other names"
    elif os.geteuid() != 0:
        obstacle = f"{summary}, and only root can install packages"

    def install() -> None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["apt-get", "-qq", "update"], command):
            _run(words, environment)

    return Step(
        name="packages",
        summary=summary if obstacle else f"{summary}: {' '.join(packages)}",
        commands=("apt-get update", shlex.join(command)),
        apply=None if obstacle else install,
        obstacle=obstacle,
    )


def plan_files(target: Target) -> Step:
    """Plan the files of the extension, and the package for backends."""
    build = deployment.read_build()
    with target.address.connect() as connection:
        if not backend_python.has_language(connection):  # a dry run, in which nothing was installed
            command = "the same as `make install`"
            return Step(name="files", summary=f"version {build.version}", commands=(command,))
        python = backend_python.probe(connection)
        extension = find_extension_folder(connection)
    summary = f"version {build.version} in {extension} and {python.folder}"
    is_extension_current = deployment.is_extension_current(extension)
    is_backend_current = deployment.is_backend_current(python.folder)
    if is_extension_current and is_backend_current:
        return Step(name="files", summary=summary)
    source = deployment.EXTENSION
    package = python.folder / deployment.PACKAGE
    owners = [find_owner(extension), find_owner(python.folder)]

    def place() -> None:
        with act_as(owners[0]):
            deployment.place_extension(extension)
        with act_as(owners[1]):
            python.folder.mkdir(parents=True, exist_ok=True)
            deployment.place_backend(python.folder)
            if python.interpreter.exists():  # compiled here: backends may not write there
                _compile(python.interpreter, package)

    return Step(
        name="files",
        summary=summary,
        commands=(
            f"cp {source}/*.sql {source}/*.control {extension}/",
            f"cp -R {deployment.find_backend()} {python.folder}/",
            f"cp {source / deployment.REFERENCE} {package}/",
            f"echo {build.version} > {package}/VERSION",
        ),
        apply=place if all(map(can_act_as, owners)) else None,
        obstacle=f"the files belong to {owners[0].pw_name}",
    )


def _compile(interpreter: Path, package: Path) -> None:
    mode = "--invalidation-mode=checked-hash"  # copies have other times
    subprocess.run([interpreter, "-I", "-m", "compileall", "-q", mode, package], check=True)


def plan_trainers(target: Target) -> Step:
    """Plan the libraries of trainers, which run in this very environment."""
    python = deployment.find_interpreter()
    check_extras(target.extras)
    _check_interpreter(target, python)
    missing_extras = [name for name in target.extras if find_spec(EXTRAS[name]) is None]
    if not missing_extras:
        return Step(name="trainers", summary=f"{python} with {', '.join(target.extras)}")
    command = [str(python), "-m", "pip", "install", *list_requirements(missing_extras)]
    owner = find_owner(python.parent)

    def install() -> None:
        words = [*command[:4], "--quiet", "--disable-pip-version-check", *command[4:]]
        with act_as(owner):
            environment = dict(os.environ)
        _run(words, environment)

    return Step(
        name="trainers",
        summary=f"{', '.join(missing_extras)} for {python}",
        commands=(shlex.join(command),),
        apply=install if os.geteuid() == owner.pw_uid else None,
        obstacle=f"the environment {sys.prefix} belongs to {owner.pw_name}",
    )


def check_extras(extras: Iterable[str]) -> None:
    """Check the names of extras.

    Raises:
        InvalidParameter: an extra is not one for trainers.
    """
    for name in extras:
        if name not in EXTRAS:
            raise InvalidParameter(
                f"there is no extra {name!r} for trainers; expected {', '.join(EXTRAS)}",
                hint="Write several with commas: --extras tensorflow,automl.",
            )


def list_requirements(extras: Iterable[str]) -> list[str]:
    """Return what pip installs for the extras, with the bounds of this package.

    A name such as `package[extra]` would be looked up in an index that may not have this package.
    """
    requirements = []
    for line in requires("cerebro_db") or ():
        requirement, _, marker = line.partition(";")
        marker = marker.strip()
        match = EXTRA_MARKER.search(marker)
        if match is None or match["extra"] not in extras:
            continue
        marker = EXTRA_MARKER.sub("", marker)
        requirements.append(f"{requirement.strip()}; {marker}" if marker else requirement.strip())
    return sorted(set(requirements))


def _check_interpreter(target: Target, python: Path) -> None:
    """Check that the server can start trainers with this interpreter."""
    user = target.address.user
    try:
        with act_as(user):
            is_executable = os.access(python, os.X_OK, effective_ids=True)
    except InsufficientPrivilege:
        return
    if not is_executable:
        raise InsufficientPrivilege(
            f"the system user {user.pw_name}, who runs the server, cannot execute {python}",
            hint="Make the environment where that user can read it, such as /opt/cerebro.",
        )


def _run(words: list[str], environment: dict[str, str]) -> None:
    result = subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if result.returncode:
        lines = result.stdout.strip().splitlines()
        raise ObjectNotReady(
            f"{words[0]} failed with exit status {result.returncode}",
            detail="\n".join(lines[-10:]),
            hint=f"Try it by hand: {shlex.join(words)}",
        )
