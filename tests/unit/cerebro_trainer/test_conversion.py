"""Arrays meet models: exactly, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.programs.io_spec import Output, matches


@given(hnp.array_shapes(min_dims=0), hnp.array_shapes(min_dims=0))
def test_shapes_match_themselves_and_no_others(
    shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    assert matches(shape, shape)
    assert matches(shape, (None,) * len(shape))
    assert matches(other, shape) == (other == shape)


@pytest.mark.parametrize(
    ("output", "target", "fitted"),
    [
        (Output((3,), 3, False), (5, 3), (5, 3)),
        (Output((3,), 3, True), (5, 3), (5, 3)),
        (Output((1,), 2, False), (5, 2), (5, 1)),
        (Output((2,), 2, False), (5, 2), (5, 2)),
        (Output((1,), 0, False), (5,), (5, 1)),
        (Output((1,), 0, False), (5, 1), (5, 1)),
        (Output((3,), 0, True), (5,), (5, 1)),
        (Output((3,), 0, True), (5, 1), (5, 1)),
        (Output((None, 2), 0, False), (5, 7, 2), (5, 7, 2)),
        (Output((4, 3), 0, True), (5, 4), (5, 4, 1)),
    ],
)
def test_targets_that_fit(output: Output, target: tuple[int, ...], fitted: tuple[int, ...]) -> None:
    assert output.convert(np.zeros(target), 0).shape == fitted
    assert matches(fitted[1:], output.target_shape)


@pytest.mark.parametrize(
    ("output", "target"),
    [
        (Output((3,), 3, False), (5, 4)),
        (Output((3,), 0, False), (5,)),
        (Output((3,), 0, False), (5, 1)),
        (Output((3,), 0, True), (5, 3)),
        (Output((2,), 0, False), (5, 3)),
    ],
)
def test_targets_that_do_not(output: Output, target: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError) as refused:
        output.convert(np.zeros(target), 0)
    assert refused.value.sqlstate == "42804"


def test_two_classes_on_one_unit_take_the_second_column() -> None:
    target = np.eye(2, dtype=np.int16)
    assert Output((1,), 2, False).convert(target, 0).tolist() == [[0], [1]]


@pytest.mark.parametrize(("shape", "classes"), [((3,), 4), ((1,), 3), ((4, 3), 3)])
def test_outputs_that_cannot_have_so_many_classes(shape: tuple[int, ...], classes: int) -> None:
    with pytest.raises(ConfigError, match=f"{classes} classes"):
        Output(shape, classes, False)
