"""Steps of `cerebro-db setup` that need no server."""

from __future__ import annotations

from importlib.metadata import metadata

import pytest

from cerebro_db.errors import ObjectNotReady
from cerebro_db.setup import machine_steps
from cerebro_db.setup.step import Step, run_steps


@pytest.mark.parametrize("extra", machine_steps.EXTRAS)
def test_extras_of_trainers_are_those_of_the_package(extra: str) -> None:
    """What pip would install for the extra, with bounds, and without a name of this package."""
    assert extra in (metadata("cerebro_db").get_all("Provides-Extra") or ())
    requirements = machine_steps.list_requirements([extra])
    module = machine_steps.EXTRAS[extra]
    assert [line for line in requirements if line.startswith(module)]
    assert not [line for line in requirements if "extra" in line or "cerebro_db" in line]
    has_keras = any(line.startswith("keras") for line in requirements)
    assert has_keras is (extra not in ("automl", "boosting"))


def test_several_extras_name_each_requirement_once() -> None:
    both = machine_steps.list_requirements(["tensorflow", "jax"])
    assert len(both) == len(set(both))
    for extra in ("tensorflow", "jax"):
        assert set(machine_steps.list_requirements([extra])) <= set(both)


def step(name: str, log: list[str], **fields: str) -> Step:
    return Step(
        name=name, summary="a", commands=("do it",), apply=lambda: log.append(name), **fields
    )


def test_a_dry_run_applies_nothing_and_goes_on_past_an_obstacle() -> None:
    log: list[str] = []
    lines: list[str] = []
    blocked = Step(name="b", summary="b", commands=("ask root",), obstacle="only root may")
    plans = [lambda: step("a", log), lambda: blocked, lambda: Step(name="c", summary="there")]
    assert run_steps(plans, lines.append, dry_run=True) == 2
    assert log == []
    assert [line[:4] for line in lines] == ["TODO", "    ", "TODO", "    ", "OK  "]


def test_a_step_that_cannot_be_done_ends_the_setup_with_its_commands() -> None:
    """Steps before it are done; those behind it are not even planned."""
    log: list[str] = []
    blocked = Step(name="b", summary="b", commands=("ask root",), obstacle="only root may")

    def fail() -> Step:
        raise AssertionError("planned too early")

    with pytest.raises(ObjectNotReady, match="only root may") as caught:
        run_steps([lambda: step("a", log), lambda: blocked, fail], log.append, dry_run=False)
    assert "ask root" in str(caught.value.hint)
    assert log[0] == "a"
