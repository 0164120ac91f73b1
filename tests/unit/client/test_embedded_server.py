"""The embedded server's files when its processes start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cerebro_db.server.cluster import Cluster
from cerebro_db.server.embedded_server import EmbeddedServer


class Started(Exception):
    """Raised instead of starting the cluster."""


def test_the_package_is_complete_before_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that waits for a restart may connect before the process that restarts it."""

    def start(cluster: Cluster, socket: Path, environment: Mapping[str, str]) -> None:
        package = cluster.data / environment["PYTHONPATH"] / "cerebro_plpy"
        assert (package / "__init__.py").exists()
        raise Started

    monkeypatch.setattr(Cluster, "initialise", lambda cluster: cluster.data.mkdir())
    monkeypatch.setattr(Cluster, "start", start)
    with pytest.raises(Started):
        EmbeddedServer(tmp_path)._start()
