"""One trainer for many tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trainer_peer import Peer


@pytest.fixture(scope="session")
def trainer() -> Iterator[Peer]:
    """A trainer with TensorFlow; no test may rely on what another left in it."""
    with Peer() as peer:
        yield peer


@pytest.fixture(scope="session")
def second_trainer() -> Iterator[Peer]:
    """Another process, for states that move."""
    with Peer() as peer:
        yield peer


@pytest.fixture
def packer() -> Iterator[Peer]:
    """A trainer without a framework."""
    with Peer("none") as peer:
        yield peer
