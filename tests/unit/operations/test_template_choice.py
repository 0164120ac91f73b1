"""The templates of a call, and the conditions under which trees are among them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.templates.layers.model_io import TEXT, Classes, Table, Wide
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.registry import choose_templates, put_baselines_first
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING
from cerebro_plpy.errors import (
    CerebroError,
    FeatureNotSupported,
    InvalidParameter,
    ObjectNotReady,
    OutOfMemory,
)
from cerebro_plpy.operations.template_choice import TemplateChoice
from cerebro_plpy.operations.tree_support import NO_TREES, Obstacle, TreeSupport, read_tree_support
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.settings import Settings

NUMBERS = Table(4)
TEXTS = Table(wide=(Wide(TEXT, (5,), 9),))
ROOM = TreeSupport(None, 1 << 40)
REFUSED = TreeSupport(Obstacle(ObjectNotReady, "there is no LightGBM", "Install it."))


def make_table(inputs: Table, rows: int = 100) -> Any:
    """Return what a choice reads of a raw table."""
    return SimpleNamespace(
        recipe=SimpleNamespace(table=inputs, features=()),
        target=SimpleNamespace(head=Classes(2)),
        rows=rows,
        validation_rows=rows // 4,
        columns=(),
    )


class Database:
    """A session of a caller, with the notices that it got."""

    def __init__(self, platform: Any = None) -> None:
        self.platform = platform or Postgres()
        self.notices: list[str] = []

    def notice(self, message: str) -> None:
        self.notices.append(message)


@pytest.mark.parametrize("inputs", [NUMBERS, TEXTS])
@pytest.mark.parametrize("support", [ROOM, REFUSED])
@pytest.mark.parametrize("short", [True, False])
def test_usual_templates_have_no_trees_if_these_are_refused_and_a_notice_says_why(
    inputs: Table, support: TreeSupport, short: bool
) -> None:
    table, db = make_table(inputs), Database()
    choice = TemplateChoice("train", None, short, tree_support=support)
    usual = list(choose_templates(inputs))
    chosen = choice.choose(table)
    choice.report_omitted(db, table)  # type: ignore[arg-type]
    is_omitted = BOOSTING in usual and support is REFUSED
    expected = tuple(template for template in usual if not (is_omitted and template is BOOSTING))
    ordered = expected[::-1] if short else expected
    assert chosen == put_baselines_first(ordered)
    assert choice._replace(is_counted=True).choose(table) == ordered
    assert db.notices == (
        ["template boosting is left out: there is no LightGBM. Install it."] if is_omitted else []
    )


def test_named_trees_are_refused_before_anything_is_trained() -> None:
    named = TemplateChoice("train", (LINEAR, BOOSTING), tree_support=ROOM)
    assert named.choose(make_table(NUMBERS)) == (LINEAR, BOOSTING)
    with pytest.raises(InvalidParameter, match="at most 65023 columns other than texts"):
        named.choose(make_table(TEXTS))
    with pytest.raises(ObjectNotReady, match=r"^train error: there is no LightGBM\.$") as refused:
        named._replace(tree_support=REFUSED).choose(make_table(NUMBERS))
    assert refused.value.hint == "Install it. Leave boosting out of models."
    db = Database()
    named._replace(tree_support=REFUSED).report_omitted(db, make_table(NUMBERS))  # type: ignore[arg-type]
    assert not db.notices


@given(st.integers(1, 10**9), st.integers(0, 10**12))
def test_trees_need_memory_for_all_rows(rows: int, cache_bytes: int) -> None:
    table = make_table(NUMBERS, rows)
    size = (rows + rows // 4) * (4 + 2) * 4
    obstacle = TreeSupport(None, cache_bytes).find_obstacle(table)
    assert (obstacle is not None) is (size > cache_bytes)
    assert obstacle is None or obstacle.error is OutOfMemory
    assert TreeSupport(REFUSED.obstacle, cache_bytes).find_obstacle(table) is REFUSED.obstacle


@pytest.mark.parametrize(
    ("platform", "search", "python", "error"),
    [
        (Postgres(), None, sys.executable, None),
        (Postgres(), "asha", sys.executable, None),
        (Postgres(), "pbt", sys.executable, FeatureNotSupported),
        (Postgres(), None, "/no/such/python", ObjectNotReady),
        (Greenplum(), None, sys.executable, FeatureNotSupported),
    ],
)
def test_trees_are_for_trainers_that_have_lightgbm_and_all_rows(
    monkeypatch: pytest.MonkeyPatch,
    platform: Any,
    search: str | None,
    python: str,
    error: type[CerebroError] | None,
) -> None:
    values = Settings(trainer_python=python, cache_mb=7)
    monkeypatch.setattr(settings, "read", lambda db: values)
    rule = read_search_rule("train", search, None, 9, templates=True) if search else None
    db: Any = Database(platform)
    support = read_tree_support(db, (LINEAR, BOOSTING), rule, None)
    assert (support.obstacle and support.obstacle.error) is error
    assert support.cache_bytes == (0 if error else 7 << 20)
    assert read_tree_support(db, (LINEAR,), rule, None) is NO_TREES


def test_trees_are_usual_on_tables_that_they_suit() -> None:
    assert BOOSTING in choose_templates(NUMBERS) and BOOSTING not in choose_templates(TEXTS)
    mixed = Table(4, wide=TEXTS.wide)
    assert BOOSTING in choose_templates(mixed)
