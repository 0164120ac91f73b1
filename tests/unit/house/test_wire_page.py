"""docs/internals/wire.md describes the protocol as both ends have it: what a backend sends, and
what a trainer looks at.

The trainer is the real one on a program that does nothing. Its requests are dictionaries that
remember which of their fields were looked at, so that no field can be read, left or made necessary
without the page.
"""

from __future__ import annotations

import ast
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from sources import nodes

from cerebro_plpy.trainer_client import connection, request_schema
from cerebro_trainer import service
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.commands.trainer import UNANSWERED, Trainer
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.learner import ColumnPositions, Sums
from cerebro_trainer.programs.program import Framework, PendingLoss, Program
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire import frames
from cerebro_trainer.wire.frames import Array, Connection, Frame, Message, PeerGone
from cerebro_trainer.wire.prefetch import Prefetcher

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "internals" / "wire.md").read_text()
FIELD = re.compile(r"`(\w+)`(\??): ([^;|]+)")
PLAIN = {"text", "integer", "number", "boolean", "json"}
Header = dict[str, Any]
Request = tuple[Header, bytes]


class Field(NamedTuple):
    type: str
    optional: bool


Fields = dict[str, Field]


def rows_of(page: str, first: str) -> dict[str, list[str]]:
    """The rows of the table whose first column has this title, by what stands there in code."""
    table = page.split(f"\n| {first} |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table]
    found = {row[0].strip("`"): row[1:] for row in cells}
    assert len(found) == len(cells), "a name stands twice"
    return found


def fields(cell: str) -> Fields:
    """
    >>> fields("`a`: text; `b`?: list of `c`")["b"]
    Field(type='list of `c`', optional=True)
    """
    return {name: Field(kind.strip(), bool(mark)) for name, mark, kind in FIELD.findall(cell)}


REQUESTS = {name: fields(row[0]) for name, row in rows_of(PAGE, "`do`").items()}
ANSWERS = {name: row[-1] for name, row in rows_of(PAGE, "`do`").items()}
JOBS = {name: row[-1] for name, row in rows_of(PAGE, "`job`").items()}
OBJECTS = {name: fields(row[0]) for name, row in rows_of(PAGE, "object").items()}


class Looked(dict[str, Any]):
    """An object of JSON that remembers under its name which of its fields were looked at."""

    def __init__(self, values: Mapping[str, Any], name: str, seen: dict[str, set[str]]) -> None:
        self._seen = seen.setdefault(name, set())
        described = {**REQUESTS, **OBJECTS}[name]
        assert values.keys() <= described.keys(), name
        super().__init__(
            {key: watched(value, described[key].type, seen) for key, value in values.items()}
        )

    def __getitem__(self, key: str) -> Any:
        self._seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._seen.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._seen.add(str(key))
        return super().__contains__(key)


def watched(value: Any, kind: str, seen: dict[str, set[str]]) -> Any:
    """A value of a type of the page, with what is looked at in its objects."""
    if kind.startswith("list of ") and isinstance(value, list):
        return [watched(item, kind.removeprefix("list of "), seen) for item in value]
    if kind.startswith("map of ") and isinstance(value, dict):
        return {
            name: watched(item, kind.removeprefix("map of "), seen) for name, item in value.items()
        }
    return (
        Looked(value, kind.strip("`"), seen)
        if kind.startswith("`") and isinstance(value, dict)
        else value
    )


def has_type(value: Any, kind: str) -> bool:
    """Whether a value of an answer is of that type of the page; what may be null is said in
    words.
    """
    if value is None:
        return True
    if kind.startswith("list of "):
        return isinstance(value, (list, tuple)) and all(has_type(item, kind[8:]) for item in value)
    if kind.startswith("map of "):
        return isinstance(value, dict) and all(has_type(item, kind[7:]) for item in value.values())
    if kind.startswith("`"):
        described = OBJECTS[kind.strip("`")]
        return value.keys() == described.keys() and all(
            has_type(value[name], f.type) for name, f in described.items()
        )
    types: dict[str, Any] = {
        "text": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "json": dict,
    }
    return isinstance(value, types[kind])


class Still(Program):
    """A program of one variable, which never changes."""

    modes = ("still",)
    compilation_factor = 1.0
    layout = Layout(
        shapes=((2,),), dtypes=("float32",), weights=(0,), trainable=(0,), paths=("w",),
        architecture="a", optimizer="o", framework="f", keras="3",
    )  # fmt: skip
    step = 0

    def __init__(self, spec: ProgramSpec) -> None:
        self.values: list[Array] = [np.zeros(2, np.float32)]
        self._units = 1 if [target.classes for target in spec.targets] == [0] else 2

    def wipe(self) -> None: ...

    def read(self) -> list[Array]:
        return self.values

    def assign(self, position: int, value: Array) -> None:
        self.values[position] = value

    def create_initial_state(self, seed: int) -> list[Array]:
        return [np.zeros(2, np.float32)]

    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        pass

    def dispatch(self, buffer: Buffer, order: Any, batch_size: int, mode: str) -> PendingLoss:
        return lambda: 0.5

    def evaluate(self, buffer: Buffer) -> Sums:
        return [[0.5, 1.0]]

    def zero_sums(self) -> Sums:
        return [[0.0, 0.0]]

    def compute_results(self, sums: Sums) -> dict[str, object]:
        return {"loss": 0.5, "metrics": [1.0]}

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        return [np.ones((len(inputs[0]), self._units), np.float32)]

    def predict_baseline(self, inputs: Sequence[Array]) -> Array:
        return np.zeros(self._units)

    def attribute(
        self, inputs: Sequence[Array], columns: Sequence[ColumnPositions], unit_weights: Array
    ) -> Array:
        return np.zeros((len(inputs[0]), len(columns)))

    def describe_cuts(self) -> list[dict[str, object]]:
        return [{"layer": "hidden", "shape": (2,), "flops": 1, "digest": "d"}]

    def describe_prefixes(self, layers: Sequence[str]) -> list[dict[str, object]]:
        return [
            {"layer": layer, "shape": (2,), "architecture": {}, "weights": [[0, 2]]}
            for layer in layers
        ]

    def compute_features(self, layer: str, inputs: Sequence[Array]) -> Array:
        return np.zeros((len(inputs[0]), 2), np.float32)

    def open_board(self, folder: str) -> Any:
        return Board()


class Board:
    def write_scalars(self, kind: str, values: Mapping[str, float], step: int) -> None: ...

    def write_histograms(self, step: int) -> None: ...

    def write_graph(self) -> None: ...


FRAMEWORK = Framework(
    name="still", version="1", keras_version="3", devices=("CPU:0",), threads=1, errors=(),
    make_program=lambda spec, budget: Still(spec), memory_errors=(MemoryError,),
    describe_gpus=lambda: ("GPU 0",),
)  # fmt: skip


class Wire:
    """Both sides of a socket that is none: frames that are taken one by one, and what was answered
    to each.
    """

    def __init__(self, taken: Sequence[Frame]) -> None:
        self.handle_concurrently: Callable[[Frame], bool] = lambda frame: False
        self._taken = iter(taken)
        self.answers: list[list[Message]] = []

    def receive(self, longest: float | None = None) -> Frame:
        while True:
            self.answers.append([])
            try:
                frame = next(self._taken)
            except StopIteration:
                raise PeerGone("closed") from None
            if not self.handle_concurrently(frame):
                return frame

    def send(self, message: Message) -> None:
        self.answers[-1].append(message)

    def check_peer(self) -> None: ...


def conversation(
    requests: Sequence[Request], seen: dict[str, set[str]] | None = None
) -> list[list[Message]]:
    """What a trainer answers to each of the requests."""
    both = Wire(
        [
            Frame(header_of(header, seen), np.frombuffer(payload, np.uint8))
            for header, payload in requests
        ]
    )
    with suppress(PeerGone):
        Trainer(cast(Connection, both), cast(Prefetcher, both), ProgramCache(FRAMEWORK)).serve()
    return both.answers[: len(requests)]


def header_of(header: Header, seen: dict[str, set[str]] | None) -> Header:
    """The header as it is, or one that remembers what was looked at."""
    if seen is None:
        return header
    looked = Looked(
        {name: value for name, value in header.items() if name != "do"}, header["do"], seen
    )
    looked["do"] = header["do"]
    return looked


PROGRAM = {
    "architecture": {"class_name": "Sequential"}, "compile": {"optimizer": {"class_name": "sgd"}},
    "targets": [{"kind": "onehot", "classes": 2}, {"kind": "float"}], "dtype_policy": "float32",
    "sources": {"f": ""},
    "cut": "hidden",
}  # fmt: skip
BARE: Header = {"architecture": {}, "compile": {}, "targets": []}
ARRAYS = [
    {"role": "x", "dtype": "float32", "shape": [2, 1]},
    {"role": "y", "dtype": "int16", "shape": [2, 1]},
]
FIT = {"batch_size": 1, "epochs": 1, "shuffle": True}
ORDER = {"seed": 1, "mst_key": 1, "epoch": 1, "segment_id": 0}
TIMING = {"seconds_per_row": 0.1, "compile_seconds": 1.0}
FORMS = {
    "use": None,
    "remaining_rows": 10,
    "known": {"still": TIMING, "gone": {"compile_seconds": 1.0}},
}
NEW = {"source": "new", "seed": 1}
SCALE = {"low": 0, "high": 2.0, "offset": 1.0, "deviation": 0.5}
SHOWN = {
    "folder": "/f", "epoch": 1, "histograms": True, "graph": True, "metrics": ["m"],
    "datasets": {"train": "d"},
}  # fmt: skip
NUMBERS = np.arange(2, dtype=">i8").tobytes()
COLUMN = {"kind": "float32", "divide": 2.0, "array": "x", "column": "x", "source": "points"}
FLOATS = np.array([1, 0, 700, 1, 1], np.int32).tobytes() + np.ones(1, np.float32).tobytes()
DOUBLES = np.array([1, 0, 701, 2, 1], np.int32).tobytes() + np.ones(2).tobytes()
IMAGE = struct.pack(">iiIiii", 1, 0, 17, 1, 1, 4) + b"none"
POINT = {"alternative": 0, "values": {"c": 1, "w": 2, "r": 0.5}}
SPACE = [
    [{"name": "c", "kind": "choice", "count": 3}, {"name": "w", "kind": "whole", "low": 1,
    "high": 3, "log": False},
     {"name": "r", "kind": "real", "low": 0.1, "high": 1.0, "log": True}],
]  # fmt: skip
DATASET: list[Request] = [
    ({"do": "open", "dataset": "d", "cache_bytes": 1000}, b""),
    ({"do": "buffer", "dataset": "d", "buffer_id": 0, "arrays": ARRAYS}, bytes(12)),
    ({"do": "close", "dataset": "d"}, b""),
]
STREAMED: list[Request] = [
    ({**DATASET[0][0], "cache_bytes": 0}, b""),
    ({**DATASET[1][0], "pass": 0}, bytes(12)),
    DATASET[2],
]


def begun(job: str, state: Header = NEW, **more: object) -> Request:
    header = {"do": "begin", "job": job, "program": BARE, "state": state, "result_key": "k", **more}
    return {name: value for name, value in header.items() if value is not None}, b""


def ask(do: str, payload: bytes = b"", **more: object) -> Request:
    return {"do": do, **more}, payload


def predicted(want: Header, **more: object) -> Request:
    return ask(
        "rows", FLOATS * 2, rows=2, arrays=[{"kind": "float32"}], classes=[2], want=want, **more
    )


TREES = {
    "architecture": {
        "class_name": "BoostedTrees",
        "config": {
            "inputs": {"numbers": 1, "indicators": 0, "missing": [], "cardinalities": [],
            "vectors": []},
            "units": 1, "low": None, "high": None, "trees": 1, "epochs": 1, "leaves": 2,
            "learning_rate": 0.1, "min_rows": 1, "l2": 0.0, "row_share": 1.0, "column_share": 1.0,
            "max_bins": 10, "category_levels": 2,
        },
    },
    "compile": {"loss": "mean_squared_error"}, "targets": [{"kind": "float"}],
}  # fmt: skip
FINISH = ask("finish")
TRAINING: Header = {"datasets": ["d"], "fit": FIT, "order": ORDER}
FUSION: Header = {"visits": [{"dataset": "d", "order": ORDER}], "fit": FIT, "forms": FORMS}
CHANNEL = {
    "scales": [], "parts": [], "missing": [], "categories": [],
    "wide": [{"kind": "float64", "scales": [[0, 1, 0, 1, 4]]}],
}  # fmt: skip
CONVERSATIONS: dict[str, list[Request]] = {
    "train": [
        *DATASET,
        begun("train", program=PROGRAM, program_key="p", compilation="c", forms=FORMS,
        callbacks=SHOWN, sealed=False,
              **{**TRAINING, "fit": {**FIT, "steps_per_epoch": 1, "class_weight": [1.0, 2.0]}}),
        FINISH, ask("state_get", key="k", chunk_bytes=100), ask("state_get", key="k",
        chunk_bytes=100, part="own"),
        begun("train", **TRAINING, program=None, program_key="p", unstored=["k"]),
        ask("state_get", key="k", chunk_bytes=100, aside=1), FINISH,
        begun("evaluate", {"source": "kept", "key": "k"}, program=None, program_key="p",
        datasets=["d"]),
    ],
    "fusion": [
        *DATASET, begun("fusion", **FUSION), begun("fusion", **FUSION, beside=True), FINISH,
        ask("state_get", key="k", chunk_bytes=100),
        begun("fusion", **FUSION), begun("fusion", {"source": "chunks"}, **FUSION, beside=True),
    ],
    "stream": [*STREAMED, begun("train", **TRAINING), STREAMED[1], FINISH, ask("reset",
    idle_seconds=60), ask("reset")],
    "time": [*DATASET, begun("time", **TRAINING), FINISH],
    "average": [
        begun("average", {"source": "averaged", "shares": [1]}, datasets=[]), ask("state", b"state",
        sealed=False),
    ],
    "mean": [begun("average", {"source": "new", "seed": 1, "shares": [1]}, datasets=[]), FINISH],
    "evaluate": [*DATASET, begun("evaluate", datasets=["d"], callbacks=SHOWN), FINISH],
    "total": [*DATASET, begun("evaluate", datasets=["d"], total={"training": ["d"]}), FINISH],
    "sealed": [
        begun("evaluate", {"source": "weights", "seed": 1}, datasets=["d"], sealed=True),
        ask("state", bytes(8), sealed=True), STREAMED[1], FINISH,
    ],
    "recipe": [
        begun(
            "predict", sealed=True,
            recipe={
                "scales": [], "parts": [], "missing": [], "categories": [],
                "wide": [{"kind": "float64", "scales": [[0, 1, 0, 1, 4]]}],
            },
        ),
        ask("tell", DOUBLES, rows=1, arrays=[{"kind": "float64"}], labels=["a", "b"]),
    ],
    "weights": [begun("predict", {"source": "weights", "seed": 1}), ask("state", bytes(8)), FINISH],
    "predict": [
        begun("predict"), predicted({"kind": "prob"}, lengths=[48]), predicted({"kind": "top",
        "n": 1}),
        predicted({"kind": "threshold", "threshold": 0.5}), FINISH,
    ],
    "members": [
        begun("predict", share=0.5), begun("predict", share=0.5, beside=True),
        predicted({"kind": "prob"}), FINISH,
    ],
    "trees": [
        *DATASET, begun("train", program=TREES, **TRAINING), FINISH,
        begun("train", {"source": "kept", "key": "k"}, program=TREES, **TRAINING, grows=["d"]),
        FINISH,
    ],
    "cuts": [begun("cuts", datasets=[]), FINISH],
    "fronts": [begun("fronts", datasets=[], layers=["hidden"]), FINISH],
    "features": [begun("predict"), ask("features", bytes(8), layer="hidden", buffer_id=0,
    arrays=ARRAYS[:1])],
    "tell": [
        begun("predict"),
        ask("tell", FLOATS * 2, rows=2, arrays=[{"kind": "float32"}], labels=["a", "b"],
        lengths=[48]),
        begun("predict", calibration={"temperature": 2.0, "threshold": 0.3}),
        ask("tell", FLOATS * 2, rows=2, arrays=[{"kind": "float32"}], labels=["a", "b"]),
        begun("predict", calibration={"temperature": 2.0}),
        begun(
            "predict",
            calibration={
                "temperature": 2.0,
                "costs": [{"actual": 0, "predicted": 1, "cost": 5.0}],
            },
        ),
        begun("predict", program={**BARE, "targets": [{"kind": "float"}]}, scale=SCALE),
        ask("tell", FLOATS, rows=1, arrays=[{"kind": "float32"}], whole=[0, 1], idle_seconds=60),
    ],
    "permute": [
        begun("predict"),
        ask("permute", FLOATS * 4, rows=2, arrays=[{"kind": "float32"}], lengths=[48, 48],
        target={"kind": "float32"},
            columns=[[[0]]], metric="auc", classes=2, repeats=2, seed=1),
        begun("predict", program={**BARE, "targets": [{"kind": "float"}]}),
        ask("permute", FLOATS * 4, rows=2, arrays=[{"kind": "float32"}], lengths=[48, 48],
        target={"kind": "float32"},
            columns=[[[0]]], metric="r2", classes=0, repeats=2, seed=1, seconds=60,
            idle_seconds=60),
    ],
    "permute a dataset": [
        *DATASET, begun("predict"),
        ask("permute", dataset="d", columns=[[[0]]], metric="accuracy", classes=2, repeats=2,
        seed=1),
    ],
    "outputs": [
        *DATASET, begun("outputs", datasets=["d"]), FINISH, ask("outputs", units=2,
        chunk_bytes=100),
        *STREAMED, begun("outputs", datasets=["d"]), STREAMED[1], FINISH, ask("outputs", units=2,
        chunk_bytes=1),
    ],
    "attribute": [
        begun("predict"),
        ask("attribute", FLOATS * 2, rows=2, arrays=[{"kind": "float32"}], lengths=[48],
        columns=[[[0]]], patches=[]),
        ask("attribute", FLOATS, rows=1, arrays=[{"kind": "float32"}], columns=[], patches=[[[0]]],
        idle_seconds=60),
    ],
    "results": [
        ask("results", program=BARE, program_key="p", sums={"training": [[0.5, 1.0]]}),
        ask("results", program_key="p", sums={}),
        ask("results", program=BARE, sums={}, scale=SCALE),
    ],
    "pack": [
        ask("block", NUMBERS + FLOATS * 2, rows=2, arrays=[COLUMN], lengths=[16, 48]),
        ask("block", NUMBERS + FLOATS * 2, rows=2, arrays=[COLUMN], lengths=[16, 48]),
        ask("pack", seed=1, buffer_id=0),
        ask("block", NUMBERS + bytes(8), rows=2, arrays=[{"kind": "onehot", "classes": 2}],
        lengths=[16, 8]),
        ask("pack", shapes_only=True),
        ask("block", NUMBERS[:8] + DOUBLES, rows=1, arrays=[{"kind": "float64",
        "recipe": json.dumps(CHANNEL)}],
            lengths=[8, len(DOUBLES)]),
        ask("pack"),
    ],
    "suggest": [
        ask("suggest", space=SPACE, algorithm="rand", seed=1, count=1,
            trials=[{"point": POINT, "state": "completed", "values": [[1, 0.5]]},
                    {"point": POINT, "state": "running", "values": []}]),
    ],
    "gpus": [ask("gpus")],
}  # fmt: skip

NAN = FLOATS[:-4] + np.array([np.nan], np.float32).tobytes()
REFUSED = [
    begun("predict", {"source": "chunks", "base": "0" * 32}),
    ask("block", NUMBERS + NAN * 2, rows=2, arrays=[COLUMN], lengths=[16, 48]),
    ask("pack"),
    ask(
        "block",
        NUMBERS[:8] + IMAGE,
        rows=1,
        arrays=[{**COLUMN, "kind": "image"}],
        lengths=[8, len(IMAGE)],
    ),
]
"""What is looked at for messages only."""


def parts(value: Any, kind: str) -> Iterator[tuple[str, Header]]:
    """All objects of the page in a value of that type, with their names."""
    if kind.startswith("list of ") and isinstance(value, list):
        for item in value:
            yield from parts(item, kind.removeprefix("list of "))
    elif kind.startswith("map of ") and isinstance(value, dict):
        for item in value.values():
            yield from parts(item, kind.removeprefix("map of "))
    elif kind.startswith("`") and isinstance(value, dict):
        yield kind.strip("`"), value
        for name, field in OBJECTS[kind.strip("`")].items():
            yield from parts(value.get(name), field.type)


def all_parts(header: Header) -> Iterator[tuple[str, Header]]:
    yield header["do"], header
    for name, field in REQUESTS[header["do"]].items():
        yield from parts(header.get(name), field.type)


def test_the_page_is_read() -> None:
    """Otherwise an empty page would agree with everything."""
    assert REQUESTS["open"] == {
        "dataset": Field("text", False),
        "cache_bytes": Field("integer", False),
    }
    assert OBJECTS["trial"] == {
        "point": Field("`point`", False),
        "state": Field("text", False),
        "values": Field("list of list of number", False),
    }
    named = {kind for described in (*REQUESTS.values(),
    *OBJECTS.values()) for field in described.values()
             for kind in [re.sub(r"(list|map) of ", "", field.type)]}  # fmt: skip
    assert {kind.strip("`") for kind in named} <= {*PLAIN, *OBJECTS}


def test_both_ends_have_the_requests_of_the_page() -> None:
    commands = Trainer(
        cast(Connection, Wire([])), cast(Prefetcher, Wire([])), ProgramCache(FRAMEWORK)
    )._commands
    assert set(REQUESTS) == set(request_schema.FIELDS) == set(commands)
    assert {name for name, told in ANSWERS.items() if told == "none"} == set(UNANSWERED)
    bare = Trainer(cast(Connection, Wire([])), cast(Prefetcher, Wire([])), None)._commands
    (listed,) = re.findall(r"A trainer without a framework knows (.*?)\.", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == set(bare)


def test_a_backend_sends_the_fields_of_the_page() -> None:
    assert {name: set(fields.split()) for name, fields in request_schema.FIELDS.items()} == {
        n: set(f) for n, f in REQUESTS.items()
    }


def test_a_backend_makes_requests_in_one_place() -> None:
    """Only `request_schema.build_request` makes requests, with fields that they have."""
    made = set()
    for path in (ROOT / "plpy" / "cerebro_plpy").rglob("*.py"):
        for node in nodes(path):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "request_schema.build_request"
            ):
                (do, *rest), named = node.args, {str(keyword.arg) for keyword in node.keywords}
                assert isinstance(do, ast.Constant), path
                made.add(do.value)
                keys = {key.value for part in rest if isinstance(part,
                ast.Dict) for key in part.keys
                        if isinstance(key, ast.Constant)}  # fmt: skip
                assert named | keys <= set(REQUESTS[str(do.value)]), path
            elif isinstance(node, ast.Dict) and path.stem != "request_schema":
                assert "do" not in {getattr(key, "value", None) for key in node.keys}, path
    assert made == set(REQUESTS)


def test_what_a_session_says_by_hand_is_cut_to_the_fields() -> None:
    told = {"do": "reset", "job": "train", "sealed": True, "sources": {}}
    assert request_schema.build_request("begin", told, sealed=False) == {
        "do": "begin",
        "job": "train",
        "sealed": False,
    }


def test_a_backend_knows_the_fields_of_objects() -> None:
    """Each name on the page is one that the backend's code writes, as a text or as a field of a
    record.
    """
    written = set()
    for path in (ROOT / "plpy" / "cerebro_plpy").rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                written.add(node.value)
            elif isinstance(node, ast.AnnAssign):
                written.add(ast.unparse(node.target))
    assert {name for described in OBJECTS.values() for name in described} <= written


@pytest.mark.parametrize("requests", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_these_conversations_go_well(requests: list[Request]) -> None:
    """But for a state that is none, which comes last. Otherwise nothing would be shown by them."""
    for (header, _), answers in zip(requests, conversation(requests), strict=True):
        assert not any("error" in message.header for message in answers), answers[-1].header
        assert bool(answers) == (ANSWERS[header["do"]] != "none")


def test_a_trainer_looks_at_the_fields_of_the_page() -> None:
    seen: dict[str, set[str]] = {}
    for requests in (*CONVERSATIONS.values(), REFUSED):
        conversation(requests, seen)
    asked = {name: named - {"do"} for name, named in seen.items()}
    inside = {
        name: set(described) for name, described in {**REQUESTS, **OBJECTS}.items() if name in asked
    }
    assert asked == inside
    assert set(OBJECTS) - set(asked) == {
        "cut",
        "evaluation",
        "front",
        "loss_and_metrics",
        "shard",
        "trained",
    }, "those of answers"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_field_that_is_not_optional_is_missed(name: str) -> None:
    for number, (header, payload) in enumerate(CONVERSATIONS[name]):
        for place, (kind, part) in enumerate(all_parts(header)):
            for field, described in {**REQUESTS, **OBJECTS}[kind].items():
                if described.optional:
                    continue
                assert field in part, f"{kind} lacks {field}"
                without = copied(header)
                (_, cut) = [*all_parts(without)][place]
                del cut[field]
                requests = [
                    *CONVERSATIONS[name][:number],
                    (without, payload),
                    *CONVERSATIONS[name][number + 1 :],
                ]
                told = [
                    str(m.header["error"])
                    for a in conversation(requests)
                    for m in a
                    if "error" in m.header
                ]
                assert any(f'"{field}"' in message for message in told), (kind, field, told)


def copied(value: Any) -> Any:
    """A deep copy without what two places share."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def test_a_field_that_is_optional_is_missing_somewhere() -> None:
    found = [
        part
        for requests in CONVERSATIONS.values()
        for header, _ in requests
        for part in all_parts(header)
    ]
    for kind, described in {**REQUESTS, **OBJECTS}.items():
        for name, field in described.items():
            lacking = any(of == kind and part.get(name) is None for of, part in found)
            assert not field.optional or lacking, f"{name} of {kind}"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_answers_have_the_fields_of_the_page(name: str) -> None:
    requests, job = CONVERSATIONS[name], ""
    for (header, _), answers in zip(requests, conversation(requests), strict=True):
        job = header.get("job", job)
        if not answers:
            continue
        *more, last = (message.header for message in answers)
        cell = ANSWERS[header["do"]]
        if header["do"] == "finish":
            cell = JOBS["train" if job == "average" else job]
        number = {
            name: value
            for name, value in header.items()
            if header["do"] == "state_get" and name == "aside"
        }
        assert (
            all(part == {"more": True, **number} for part in more)
            and number.items() <= last.items()
        )
        if cell.startswith("map of"):
            assert has_type(last["ok"], cell)
            continue
        described = fields(cell)
        assert cast(Header, last["ok"]).keys() == described.keys()
        for field, value in cast(Header, last["ok"]).items():
            assert has_type(value, described[field].type), (field, value)


def test_the_first_frame_says_what_the_page_says() -> None:
    (listed,) = re.findall(r"`ok` with (.*?)\.", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == {
        *service._describe_trainer(None, 1),
        "compilations",
    }


def test_frames_are_those_of_the_page() -> None:
    assert (
        f"A frame is `{frames.PREFIX.format}`" in PAGE
        and f"the four bytes `{frames.MAGIC.decode()}`" in PAGE
    )
    assert (connection.FRAME.format, connection.MAGIC, connection.PROTOCOL) == (
        frames.PREFIX.format,
        frames.MAGIC,
        service.PROTOCOL,
    )
    assert frames.HEADER_LIMIT == 256 << 20 and connection.MAX_BYTES == 1 << 30
