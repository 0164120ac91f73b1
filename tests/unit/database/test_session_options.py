"""What worker sessions set for themselves, on either platform."""

from __future__ import annotations

from cerebro_plpy.database.driver import options


def test_nothing_of_greenplum_is_set_on_postgresql() -> None:
    assert not [name for name in options(greenplum=False, proxied=False) if name.startswith("gp_")]


def test_states_hop_by_tcp_unless_the_cluster_has_proxies() -> None:
    direct, proxied = (dict(options(greenplum=True, proxied=proxied)) for proxied in (False, True))
    assert direct.pop("gp_interconnect_type") == "tcp"
    assert direct == proxied


def test_greenplum_knows_no_setting_of_later_postgresql() -> None:
    later = {"idle_session_timeout", "client_connection_check_interval"}
    assert later <= options(greenplum=False, proxied=False).keys()
    assert not later & options(greenplum=True, proxied=False).keys()
