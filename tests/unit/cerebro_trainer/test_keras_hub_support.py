"""keras_hub is imported where an architecture names a class of it, and only there."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import networks
import pytest
from models import CLASSES

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import allowlist, architectures, keras_hub_support

ROOT = Path(__file__).parents[3]
TRANSFORMER = architectures.rewrite(networks.OF_HUB["TransformerEncoder"])


def test_it_is_imported_for_what_is_made_of_it_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(importlib, "import_module", imported.append)
    keras_hub_support.import_if_needed(architectures.rewrite(json.loads(CLASSES)))
    assert imported == []
    keras_hub_support.import_if_needed(TRANSFORMER)
    assert imported == ["keras_hub"]


def test_where_it_is_not_installed_the_configuration_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(
        ConfigError, match=r"a class of keras_hub, which the trainers' Python cannot import"
    ) as caught:
        keras_hub_support.import_if_needed(TRANSFORMER)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint is not None and keras_hub_support.INSTALLATION in caught.value.hint
    keras_hub_support.import_if_needed(architectures.rewrite(json.loads(CLASSES)))


def test_where_it_is_not_installed_it_has_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keras_hub_support.get_release() == f"keras-hub {importlib.metadata.version('keras-hub')}"

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert keras_hub_support.get_release() == "no keras-hub"


def test_one_line_says_how_it_is_installed() -> None:
    """Developers, users and whoever meets the error install the same."""
    for page in ("Makefile", "docs/how-to/own-networks.md"):
        assert keras_hub_support.INSTALLATION in (ROOT / page).read_text(), page


def test_the_page_names_each_class() -> None:
    page = (ROOT / "docs" / "how-to" / "own-networks.md").read_text()
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert rows == {name for names in allowlist.HUB.values() for name in names}
    assert set(networks.OF_KERAS) <= set(re.findall(r"`(\w+)`", page))
