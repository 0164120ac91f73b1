"""A Docker engine, where there is one, and commands in its containers."""

from __future__ import annotations

import gc
import warnings

import docker
import pytest
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer


def missing() -> str | None:
    """Why there is no engine to build and run images with."""
    found = None
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # a client that finds no engine leaves its socket open
        try:
            docker.from_env().ping()
        except DockerException as error:
            found = f"no Docker engine answers: {str(error).splitlines()[0][:120]}"
        gc.collect()
    return found


MISSING = missing()
needed = [pytest.mark.docker, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]
"""The marks of a module whose tests run containers."""


def ran(
    container: DockerContainer, command: list[str], user: str = "", **environment: str
) -> tuple[int, str]:
    """The exit status of a command in the container, and what it wrote to standard output."""
    done = container.get_wrapped_container().exec_run(
        command, user=user, environment=environment, demux=True
    )
    return int(done.exit_code), (done.output[0] or b"").decode()
