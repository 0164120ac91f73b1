"""What worker sessions set for themselves, on either platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.training_platform import TrainingPlatform

OLDEST, OF_POSTGRESQL_14 = 120012, 140004
LATER = {"idle_session_timeout", "client_connection_check_interval"}


class Server:
    """A session that is asked for its version and how rows move."""

    def __init__(self, version: int, interconnect: str) -> None:
        self._version, self._interconnect = version, interconnect

    def value(self, statement: str, *values: object) -> str:
        """The answer."""
        return str(self._version) if values == ("server_version_num",) else self._interconnect


def options(platform: TrainingPlatform, version: int, interconnect: str = "") -> Mapping[str, str]:
    """The options on a platform of that version, whose rows move as it is said."""
    caller: Any = Server(version, interconnect)
    return platform.session_options(caller)


def test_nothing_of_greenplum_is_set_on_postgresql() -> None:
    assert not [name for name in options(Postgres(), OF_POSTGRESQL_14) if name.startswith("gp_")]


def test_states_hop_by_tcp_unless_the_cluster_has_proxies() -> None:
    direct, proxied = (dict(options(Greenplum(), OLDEST, how)) for how in ("udpifc", "proxy"))
    assert direct.pop("gp_interconnect_type") == "tcp"
    assert direct == proxied


@pytest.mark.parametrize("platform", [Greenplum(), Postgres()])
def test_settings_are_those_that_the_version_of_the_server_knows(
    platform: TrainingPlatform,
) -> None:
    """Also on a Greenplum that is made of PostgreSQL 14, where a waiting session would be ended."""
    assert not LATER & options(platform, OLDEST).keys()
    assert options(platform, OF_POSTGRESQL_14)["idle_session_timeout"] == "0"
    assert options(platform, OF_POSTGRESQL_14).keys() - options(platform, OLDEST).keys() == LATER
