"""What worker sessions set for themselves, on either platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.platform.greenplum import Greenplum
from cerebro_plpy.platform.postgres import Postgres
from cerebro_plpy.platform.protocol import TrainingPlatform


class Answer:
    """A session in which every question has the same answer."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def value(self, statement: str, *values: object) -> str:
        """The answer."""
        return self._answer


def options(platform: TrainingPlatform, interconnect: str = "") -> Mapping[str, str]:
    """The options on a platform whose rows move as it is said."""
    caller: Any = Answer(interconnect)
    return platform.session_options(caller)


def test_nothing_of_greenplum_is_set_on_postgresql() -> None:
    assert not [name for name in options(Postgres()) if name.startswith("gp_")]


def test_states_hop_by_tcp_unless_the_cluster_has_proxies() -> None:
    direct, proxied = (dict(options(Greenplum(), how)) for how in ("udpifc", "proxy"))
    assert direct.pop("gp_interconnect_type") == "tcp"
    assert direct == proxied


def test_greenplum_knows_no_setting_of_later_postgresql() -> None:
    later = {"idle_session_timeout", "client_connection_check_interval"}
    assert later <= options(Postgres()).keys()
    assert not later & options(Greenplum()).keys()
