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
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING
from cerebro_plpy.database.platform_protocol import Caller, Distribution, Rules
from cerebro_plpy.errors import (
    CerebroError,
    FeatureNotSupported,
    InvalidParameter,
    ObjectNotReady,
    OutOfMemory,
)
from cerebro_plpy.operations.template_choice import TemplateChoice
from cerebro_plpy.operations.tree_support import (
    MIN_SAMPLE_ROWS,
    NO_TREES,
    Obstacle,
    TreeSupport,
    read_tree_support,
)
from cerebro_plpy.packing.buffer_sizes import choose_buffer_rows
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.run.request.visit_jobs import SHARE_BESIDE_SAMPLE
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources
from cerebro_plpy.trainer_client.settings import Settings

NUMBERS = Table(4)
TEXTS = Table(wide=(Wide(TEXT, (5,), 9),))
ROOM = TreeSupport(None, 1 << 40)
REFUSED = TreeSupport(Obstacle(ObjectNotReady, "there is no LightGBM", "Install it."))


def make_table(inputs: Table, rows: int = 100) -> Any:
    """Return what a choice reads of a raw table."""
    return SimpleNamespace(
        recipe=SimpleNamespace(table=inputs, features=(), room=inputs.elements),
        target=SimpleNamespace(head=Classes(2)),
        rows=rows,
        validation_rows=rows // 4,
        columns=(),
    )


class Cluster(Greenplum):
    """A Greenplum with segments on two machines."""

    def choose_distribution(
        self, db: Caller, module: str, rules: Rules, segments: int | None
    ) -> Distribution:
        return Distribution((0, 2, 5, 6, 9))

    def count_machines(self, db: Caller) -> int:
        return 2


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
    choice.report_trees(db, table)  # type: ignore[arg-type]
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
    named._replace(tree_support=REFUSED).report_trees(db, make_table(NUMBERS))  # type: ignore[arg-type]
    assert not db.notices


@given(st.integers(1, 10**9), st.integers(0, 10**11), st.booleans())
def test_trees_learn_from_a_sample_if_there_is_no_memory_for_all_rows(
    rows: int, cache_bytes: int, may_sample: bool
) -> None:
    """A smaller sample is of no use, and other rows have the rest of the memory."""
    table = make_table(NUMBERS, rows)
    row_bytes = (4 + 2) * 4
    support = TreeSupport(None, cache_bytes, may_sample)
    period = support.choose_period(table)
    assert (period == 1) is ((rows + rows // 4) * row_bytes <= cache_bytes)
    is_sampled = period > 1 and may_sample and rows // period >= MIN_SAMPLE_ROWS
    obstacle = support.find_obstacle(table)
    assert (obstacle is None) is (period == 1 or is_sampled)
    assert obstacle is None or obstacle.error is OutOfMemory
    if is_sampled:
        buffer_rows = choose_buffer_rows(4 + 2)
        buffers = -(-rows // buffer_rows)
        sampled_rows = min(rows, -(-buffers // period) * buffer_rows)
        assert sampled_rows * row_bytes <= cache_bytes * (1 - SHARE_BESIDE_SAMPLE)
    assert support._replace(obstacle=REFUSED.obstacle).find_obstacle(table) is REFUSED.obstacle


@pytest.mark.parametrize("named", [None, (LINEAR, BOOSTING)])
def test_a_notice_says_from_what_share_trees_learn(named: tuple[Template, ...] | None) -> None:
    table = make_table(NUMBERS, 10**7)
    large = TemplateChoice("train", named, tree_support=ROOM)
    small = large._replace(tree_support=TreeSupport(None, 100_000_000))
    db = Database()
    for choice in (large, small, small._replace(named_templates=(LINEAR,))):
        choice.report_trees(db, table)  # type: ignore[arg-type]
    periods = [choice.choose_tree_period(table) for choice in (large, small)]
    assert periods[0] == 1 < periods[1]
    assert small._replace(named_templates=(LINEAR,)).choose_tree_period(table) == 1
    (notice,) = db.notices
    assert notice.startswith(f"template boosting learns from 1/{periods[1]} of the rows")
    assert "300 MB; a trainer has 100 MB" in notice


@pytest.mark.parametrize(
    ("platform", "search", "python", "error"),
    [
        (Postgres(), None, sys.executable, None),
        (Postgres(), "asha", sys.executable, None),
        (Postgres(), "pbt", sys.executable, FeatureNotSupported),
        (Postgres(), None, "/no/such/python", ObjectNotReady),
        (Cluster(), None, sys.executable, None),
        (Cluster(), "pbt", sys.executable, FeatureNotSupported),
    ],
)
def test_trees_are_for_trainers_that_have_lightgbm(
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


@pytest.mark.parametrize(
    ("platform", "workers", "trainers"),
    [(Cluster(), 1, 3), (Postgres(), None, 4), (Postgres(), 1, 1)],
)
def test_trainers_of_a_machine_share_its_memory_for_rows(
    monkeypatch: pytest.MonkeyPatch, platform: Any, workers: int | None, trainers: int
) -> None:
    """On Greenplum, each segment has a trainer, however many workers train at a time."""
    values = Settings(trainer_python=sys.executable)
    monkeypatch.setattr(settings, "read", lambda db: values)
    monkeypatch.setattr(host_resources, "available_bytes", lambda: 1 << 40)
    monkeypatch.setattr(host_resources, "parallel_trainers", lambda: 4)
    db: Any = Database(platform)
    support = read_tree_support(db, (BOOSTING,), None, workers)
    assert support.cache_bytes == settings.cache_bytes(values, trainers)


def test_trees_are_usual_on_tables_that_they_suit() -> None:
    assert BOOSTING in choose_templates(NUMBERS) and BOOSTING not in choose_templates(TEXTS)
    mixed = Table(4, wide=TEXTS.wide)
    assert BOOSTING in choose_templates(mixed)
