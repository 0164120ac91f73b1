"""All pages that are open hear when the database is lost and when it is back, and a server that
ends lets them go.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import groupby

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.dashboard import event_hub
from cerebro_db.dashboard.run_updates import STALE, Message
from cerebro_db.errors import ConnectionFailure

PAGES = st.lists(st.none() | st.integers(1, 3), min_size=1, max_size=4)
"""The run that each page watches; None is the list of runs."""
LAST: Message = ("last", None)


@pytest.fixture(autouse=True, scope="module")
def no_pause() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_hub, "POLL_SECONDS", 0.001)
        yield


class Dashboard:
    """A hub with open pages, whose looks at the database are those of the test.

    Args:
        look: what the hub does instead of reading, once all pages are open.
        pages: the run that each page watches.
    """

    def __init__(self, look: Callable[[], list[Message]], pages: list[int | None]) -> None:
        self._look = look
        self._is_open = False
        self._pages = pages
        self.hub = event_hub.EventHub(sa.create_engine("sqlite://"))

    def _make_channel(self, *about: object) -> event_hub.Channel:
        return event_hub.Channel((lambda: self._look() if self._is_open else [],), list)

    async def open(self) -> list[AsyncIterator[str]]:
        """Open all pages, each of which is told at once that the database is there."""
        opened = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(event_hub, "RunChannel", self._make_channel)
            patch.setattr(event_hub, "RunListChannel", self._make_channel)
            for page in self._pages:
                opened.append(self.hub.stream_events(page))
                assert parse(await anext(opened[-1])) == ("server", None)
        self._is_open = True
        return opened


def parse(event: str) -> Message:
    """Return the message that a page reads from an event."""
    name, data = event.removesuffix("\n\n").split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def read_until_last(page: AsyncIterator[str]) -> list[Message]:
    """Return what a page is told before the last message."""
    heard: list[Message] = []
    async for event in page:
        if parse(event) == LAST:
            return heard
        heard.append(parse(event))
    raise AssertionError("the page was let go")


@given(st.lists(st.none() | st.sampled_from(["lost", "gone"]), max_size=6), PAGES)
def test_every_page_hears_once_that_the_database_is_lost_or_back(
    failures: list[str | None], pages: list[int | None]
) -> None:
    """A page that could not be read meanwhile is read again."""
    coming = iter(failures)

    def look() -> list[Message]:
        failure = next(coming, "")
        if failure:
            raise ConnectionFailure(failure)
        return [LAST] if failure == "" else []

    async def listen() -> list[list[Message]]:
        dashboard = Dashboard(look, pages)
        opened = await dashboard.open()
        messages = [await read_until_last(page) for page in opened]
        dashboard.hub.close()
        for page in opened:
            assert {parse(event) async for event in page} <= {LAST}
        return messages

    changes = [state for state, _ in groupby([None, *failures, None])][1:]
    expected = [[("server", change)] if change else [("server", None), STALE] for change in changes]
    assert asyncio.run(listen()) == [[one for messages in expected for one in messages]] * len(
        pages
    )


@given(PAGES)
def test_a_server_that_ends_lets_all_pages_go(pages: list[int | None]) -> None:
    """At once: a page that waits for news and was not told would be kept alive by a comment."""
    looks = list[None]()

    def look() -> list[Message]:
        looks.append(None)
        return []

    async def end() -> list[list[str]]:
        dashboard = Dashboard(look, pages)
        waiting = asyncio.gather(*(read_rest(page) for page in await dashboard.open()))
        while len(looks) <= 2 * len(pages):  # by then, each page has been told all that is known
            await asyncio.sleep(event_hub.POLL_SECONDS)
        dashboard.hub.close()
        return await waiting

    assert asyncio.run(end()) == [[]] * len(pages)


async def read_rest(page: AsyncIterator[str]) -> list[str]:
    """Return all that a page is told until it is let go."""
    return [event async for event in page]
