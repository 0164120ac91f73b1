"""When a trainer is taken to hold more memory than it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cerebro_plpy.errors import ConfigurationLimit, OutOfMemory
from cerebro_plpy.trainer_client.process import memory_limit

MEGABYTE = 1 << 20


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets what the next looks at a process find, in MB; each of them has to be made."""
    looks: list[int] = []

    def find(*megabytes: int) -> None:
        looks[:] = megabytes
        monkeypatch.setattr(memory_limit, "used_bytes", lambda _: looks.pop(0) * MEGABYTE)

    yield find
    assert looks == []


def test_memory_that_a_starting_child_shares_for_a_moment_does_not_count(
    seen: Callable[..., None],
) -> None:
    """The second look decides, and nothing is raised."""
    seen(913, 457)
    memory_limit.check_limit(1, 900 * MEGABYTE, is_starting=True)


@pytest.mark.parametrize(("starting", "error"), [(True, ConfigurationLimit), (False, OutOfMemory)])
def test_memory_that_stays_above_the_limit_is_an_error(
    seen: Callable[..., None], starting: bool, error: type[Exception]
) -> None:
    seen(913, 902)
    with pytest.raises(error, match="used 902 MB of memory and was ended; its limit is 900 MB"):
        memory_limit.check_limit(1, 900 * MEGABYTE, is_starting=starting)
