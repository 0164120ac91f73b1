"""The demo itself, with fewer images, configurations and epochs: what it prints and what it
leaves.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
import sqlalchemy as sa

from cerebro_db.driver import get_engine


class Database(Protocol):
    @property
    def url(self) -> str: ...


@pytest.mark.long
def test_the_demo_can_be_repeated(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cerebro_db.demo import digits  # scikit-learn, for which no other test shall wait
    from cerebro_db.demo.walkthrough import Plan, main

    compile_grid = {
        **digits.COMPILE_GRID,
        "optimizer_params_list": [{"optimizer": ["Adam"], "lr": [0.01]}],
    }
    plan = Plan(
        images=400,
        segments=2,
        iterations=3,
        compile_grid=compile_grid,
        fit_grid={"batch_size": [16]},
        wine_epochs=1,
        folder=tmp_path,
    )
    assert main(database.url, replace(plan, images=100, iterations=1)) == 0
    first = capsys.readouterr().out
    assert main(database.url, plan) == 0, "it drops what an earlier demo made"
    second = capsys.readouterr().out

    lines = first.splitlines()
    assert any(re.fullmatch(r"Right: \d+ of 36 new wines", line) for line in lines)
    assert "Leaderboard" in lines
    headings = ["rank", "mst_key", "params", "validation", "accuracy", "loss", "seconds"]
    assert any(line.split() == headings for line in lines)
    assert f"Learning curves: {tmp_path / 'learning-curves.png'}" in lines
    assert (tmp_path / "learning-curves.png").read_bytes().startswith(b"\x89PNG")
    assert f"psql '{database.url}'" in first

    engine = get_engine(database.url)
    with engine.connect() as connection:
        # Guessing would be right about once in ten.
        right = connection.execute(
            sa.text(
                "SELECT avg((class_value = digit::text)::int)"
                " FROM demo.predictions JOIN demo.digits_held_out USING (id)"
            )
        ).scalar_one()
        runs = connection.execute(
            sa.text(
                "SELECT count(*) FROM cerebro.run WHERE status = 'completed'"
                " AND spec -> 'train' ->> 'refit_of' IS NULL"
            )
        )
        assert runs.scalar_one() == 4
    engine.dispose()
    assert right > 0.5
    assert f"({float(right):.1%})" in second
