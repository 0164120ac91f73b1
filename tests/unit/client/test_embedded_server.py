"""What the embedded server has made ready when its processes start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cerebro_db.server.cluster import Cluster
from cerebro_db.server.embedded_server import EmbeddedServer


class Started(Exception):
    """The cluster was to start."""


def test_a_server_that_answers_has_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who wait for a restart may be quicker than who restarts it."""

    def start(cluster: Cluster, socket: Path, environment: Mapping[str, str]) -> None:
        package = cluster.data / environment["PYTHONPATH"] / "cerebro_plpy"
        assert (package / "__init__.py").exists()
        raise Started

    monkeypatch.setattr(Cluster, "initialise", lambda cluster: cluster.data.mkdir())
    monkeypatch.setattr(Cluster, "start", start)
    with pytest.raises(Started):
        EmbeddedServer(tmp_path)._start()
