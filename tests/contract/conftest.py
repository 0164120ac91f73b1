"""One trainer of each framework for many tests: starting one takes seconds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import plain_keras
import pytest
from marks import matches
from trainer_peer import Peer
from trainer_programs import FORMS

from cerebro_plpy.trainer_client.process import fork_server_client


def _installed(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(name) is None, reason=f"without {name}, which is not installed"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A framework with fewer forms has fewer tests; so has one that a test needs not be repeated
    for.
    """
    gone = [
        item
        for item in items
        if isinstance(item, pytest.Function) and (_is_of_no_form(item) or _is_repeated(item))
    ]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]


def _is_of_no_form(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    form, framework = params.get("form"), params.get("framework")
    return isinstance(form, int) and framework in FORMS and form >= len(FORMS[str(framework)])


def _is_repeated(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    marks = item.iter_markers("one_framework")
    return params.get("framework") not in (None, "tensorflow") and any(
        matches(mark.kwargs, params) for mark in marks
    )


@pytest.fixture(
    scope="session", params=[pytest.param(name, marks=_installed(name)) for name in FORMS]
)
def framework(request: pytest.FixtureRequest) -> str:
    """Each framework in turn; the laws are the same."""
    return str(request.param)


@pytest.fixture(params=range(3))
def form(framework: str, request: pytest.FixtureRequest) -> str:
    """Each form of the framework in turn."""
    return FORMS[framework][int(request.param)]


@pytest.fixture(scope="session")
def trainer(framework: str) -> Iterator[Peer]:
    """A trainer with a framework; no test may rely on what another left in it."""
    with Peer(framework) as peer:
        yield peer


@pytest.fixture(scope="session")
def second_trainer(framework: str) -> Iterator[Peer]:
    """Another process, for states that move."""
    with Peer(framework) as peer:
        yield peer


@pytest.fixture
def own_nurseries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A test has nurseries of its own, as if another server asked for them, and forgets those that
    failed.
    """
    parts = fork_server_client._installation_times
    monkeypatch.setattr(fork_server_client, "_excluded", set())
    monkeypatch.setattr(
        fork_server_client, "_installation_times", lambda python: [*parts(python), str(tmp_path)]
    )


@pytest.fixture
def packer() -> Iterator[Peer]:
    """A trainer without a framework."""
    with Peer("none") as peer:
        yield peer


@pytest.fixture(scope="session")
def plain(framework: str) -> Iterator[ProcessPoolExecutor]:
    """A process with Keras alone, on the trainer's backend."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, plain_keras.choose, (framework,)) as process:
        yield process
