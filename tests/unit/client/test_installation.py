"""The PostgreSQL of the embedded server, and the error if none is suitable."""

from __future__ import annotations

from pathlib import Path

import pytest

from cerebro_db.errors import FeatureNotSupported
from cerebro_db.server import installation


@pytest.mark.parametrize(("version", "plpython"), [("13.18", True), ("15.4", False)])
def test_an_unsuitable_server_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, plpython: bool
) -> None:
    config = tmp_path / "pg_config"
    facts = (
        f"BINDIR = {tmp_path}\nPKGLIBDIR = {tmp_path}\nSHAREDIR = {tmp_path}\nVERSION = PostgreSQL "
        f"{version}\n"
    )
    config.write_text(f"#!/bin/sh\ncat <<'END'\n{facts}END\n")
    config.chmod(0o755)
    (tmp_path / "postgres").touch()
    if plpython:
        (tmp_path / "plpython3.so").touch()
    monkeypatch.setenv("PG_CONFIG", str(config))
    with pytest.raises(FeatureNotSupported) as caught:
        installation.find()
    assert "PostgreSQL 14 or newer" in caught.value.message
    assert f"PostgreSQL {version} in {tmp_path}" in str(caught.value.detail)
    assert ("without PL/Python" in str(caught.value.detail)) is not plpython


def test_a_missing_pg_config_is_not_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_CONFIG", "/nowhere/pg_config")
    with pytest.raises(FeatureNotSupported, match="none at all"):
        installation.find()
