"""Versions that `cerebro.refresh` trains further."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.operations.train.model_lineage import refuse_trees


def make_version(*class_names: str) -> Any:
    members = [
        SimpleNamespace(architecture=json.dumps({"class_name": name, "config": {}}))
        for name in class_names
    ]
    return SimpleNamespace(model="ships", version=3, members=members)


def test_a_version_with_trees_among_its_members_is_refused() -> None:
    refuse_trees("refresh", make_version("Functional", "Functional"))
    for names in (("BoostedTrees",), ("Functional", "BoostedTrees")):
        with pytest.raises(FeatureNotSupported, match="version 3 of model 'ships' has boosted"):
            refuse_trees("refresh", make_version(*names))
