"""Which runs leave their number of workers open, and what earlier ones tell of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.hopping.schedule import AVERAGING
from cerebro_plpy.run import widths
from cerebro_plpy.run.request import Repeat
from cerebro_plpy.run.timings import Timings
from cerebro_plpy.trainer import machine, settings

ROWS = 1000


def request(**more: Any) -> Any:
    """A request of two configurations, of which one trains nine times as many rows, and what else is said."""
    spec = {"epochs": 2, "train": None, "search": None, "schedule": "longest", "dtype_policy": None}
    arguments = SimpleNamespace(workers=more.pop("asked", None))
    about = {key: more.pop(key) for key in spec.keys() & more.keys()}
    return SimpleNamespace(
        **{
            "spec": SimpleNamespace(arguments=arguments, **{**spec, **about}),
            "source": SimpleNamespace(rows=ROWS, segments=(0, 1), decoded_bytes=80, targets=list),
            "validation": SimpleNamespace(decoded_bytes=20),
            "configs": [config(1, 9), config(2, 1)],
            "architectures": {1: SimpleNamespace(json="[]")},
            "features": {},
            "workers": 2,
            "gpus": (),
            "backends": {1: "tensorflow", 2: "tensorflow"},
            "repeat": Repeat(),
            **more,
        }
    )


def config(mst_key: int, passes: int, steps: int | None = None) -> Any:
    compiled = SimpleNamespace(to_json=dict)
    fit = SimpleNamespace(batch_size=8, passes=passes, steps_per_epoch=steps)
    return SimpleNamespace(mst_key=mst_key, model_id=1, compile=compiled, fit=fit)


class Place:
    """A call on a server with two cores, where wide trainers took half as long as narrow ones."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, local: bool = False, room: int = 100, shared: bool = True
    ) -> None:
        self.local, self.told, self.settings = local, list[str](), None
        self.platform = SimpleNamespace(widths=lambda n: {k: 2 // k for k in range(1, n + 1)} if shared else {})
        self.db = SimpleNamespace(info=self.told.append)
        self.control = SimpleNamespace(run=self.timings)
        monkeypatch.setattr(settings, "cache_bytes", lambda chosen, trainers: room)
        self.machine = machine.described("tensorflow") + "2.21.0, Keras 3.15.1"

    def timings(self, text: str, values: Any) -> list[tuple[Any, ...]]:
        ((program,),) = values
        return [(self.machine, program, 8, *each, 0.0) for each in ((1, "graph_loop", 1e-2), (2, "graph_loop", 5e-3))]

    def workers(self, request: Any) -> int:
        workplace: Any = self
        return widths.workers(workplace, request)


def test_a_run_that_one_configuration_dominates_has_one_wide_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(monkeypatch)
    assert place.workers(request()) == 1
    assert len(place.told) == 1
    assert place.workers(request(configs=[config(1, 1), config(2, 1)])) == 2
    assert place.workers(request(configs=[config(1, 9, steps=7), config(2, 1)])) == 2
    assert len(place.told) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"asked": 2},
        {"train": "a budget"},
        {"search": "of many runs"},
        {"schedule": AVERAGING},
        {"gpus": (0,)},
        {"backends": {}},
        {"repeat": Repeat(threads=1)},
        {"repeat": Repeat(threads=2, orders={(1, 1): (0, 1)})},
        {"asked": 2, "repeat": Repeat(threads=2)},
    ],
)
def test_whoever_says_how_many_workers_there_are_is_heard(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(monkeypatch)
    assert place.workers(request(**more)) == 2
    assert not place.told


def test_a_run_goes_on_with_as_many_threads_and_the_workers_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Place(monkeypatch).workers(request(repeat=Repeat(threads=2))) == 1
    assert Place(monkeypatch).workers(request(repeat=Repeat(threads=64))) == 2, "on a machine with fewer cores"


def test_where_there_is_nothing_to_choose_the_usual_number_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Place(monkeypatch, local=True).workers(request()) == 2
    assert Place(monkeypatch, shared=False).workers(request()) == 2
    assert Place(monkeypatch, room=50).workers(request()) == 2, "one trainer has no room for all rows"
    elsewhere = Place(monkeypatch)
    elsewhere.machine = f"another, CPU:0, {elsewhere.machine}"
    assert elsewhere.workers(request()) == 2


def test_speeds_are_those_of_this_machine_framework_program_and_batch_size() -> None:
    here = machine.described("jax")
    rows = [
        (f"{here}0.9, Keras 3", "p", 8, 2, "scan", 3.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 2, "scan", 2.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 2, "jit_step", None, 0.0),
        (f"{here}1.0, Keras 3", "p", 8, 1, "scan", 4.0, 0.0),
        (f"{here}1.0, Keras 3", "p", 16, 1, "scan", 5.0, 0.0),
        (f"{here}1.0, Keras 3", "q", 8, 1, "scan", 6.0, 0.0),
        (f"{machine.described('tensorflow')}2, Keras 3", "p", 8, 1, "scan", 7.0, 0.0),
        (f"another {here}1.0, Keras 3", "p", 8, 1, "scan", 8.0, 0.0),
    ]
    assert Timings(rows).speeds(here, "p", 8) == {2: {"scan": 2.0}, 1: {"scan": 4.0}}
