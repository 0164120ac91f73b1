"""The session of a background run is asked what its caller was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import pytest
from specs import NOTHING

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.operations.live import background_worker
from cerebro_plpy.operations.train_arguments import TrainArguments
from cerebro_plpy.platform.connection_limit import BACKGROUND, session_label
from cerebro_plpy.records import asdict, fields, replace

T = TypeVar("T")


def make_arguments(kind: type[T]) -> T:
    """Return arguments each of which is a text with its own name."""
    return kind(**{each.name: f"the {each.name}" for each in fields(cast(Any, kind))})


FIT = replace(NOTHING, source_table="packed", num_iterations=3, warm_start=True)
CALLS = {
    "fit": (FIT, {"num_iterations": "three"}),
    "automl": (make_arguments(AutomlArguments), {"horizon": 3}),
    "train": (make_arguments(TrainArguments), {"horizon": 3}),
}
"""By the name of a call its arguments, and some that are wrong."""


class Session:
    """A session that another one has opened for a background run."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def value(self, statement: str, name: str) -> str:
        return session_label(BACKGROUND)

    def adopt_caller(self, path: str, settings: Mapping[str, object]) -> None:
        self.caller = path, settings

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def detach_client(self) -> None:
        self.last_notice = self.notices[-1]


def work(task: dict[str, Any]) -> Session:
    session = Session()
    caller = {"path": "public", "schema": None, "settings": {"timezone": "Asia/Tokyo"}}
    background_worker.run_task(cast(Database, session), {}, json.dumps({**task, **caller}), "1")
    assert session.caller == ("public", {"timezone": "Asia/Tokyo"})
    return session


@pytest.mark.parametrize("call", CALLS)
def test_a_call_has_the_arguments_of_its_caller(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, _ = CALLS[call]
    requests: list[object] = []

    def record(
        db: Database, gd: dict[str, Any], request: object, version: str, logged: Any
    ) -> None:
        requests.append(request)
        logged(12)

    operation = "run_automl" if call == "automl" else call
    monkeypatch.setattr(background_worker, operation, record)
    session = work({call: asdict(cast(Any, arguments))})
    assert requests == [arguments]
    assert session.last_notice == "run 12 goes on in the background", (
        "the client goes once it knows the run"
    )


@pytest.mark.parametrize("call", CALLS)
def test_arguments_that_a_call_does_not_have_are_refused(call: str) -> None:
    with pytest.raises(InvalidParameter, match="no arguments of a"):
        work({call: CALLS[call][1]})
