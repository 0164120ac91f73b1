"""What predictions with a version of a model have in common, be they of a table or of one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cerebro_plpy.configs.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.features.encoding import network_inputs
from cerebro_plpy.tables.versions import Version
from cerebro_plpy.trainer import requests, settings
from cerebro_plpy.trainer.predictor import Chunk, Predictor, Told
from cerebro_plpy.trainer.settings import TrainerOptions

# Whatever the model was trained with: of that nothing shows in a prediction, and this optimizer keeps nothing.
COMPILED = "optimizer='SGD()',loss='mean_squared_error'"
WHOLE = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}


def predictor(db: Database, gd: dict[str, Any], version: Version) -> Predictor:
    """The version in the trainer of the caller's session, as soon as it is asked."""
    chosen = settings.read(db)
    settings.check_trainer(chosen)
    told = Told(
        spec=settings.trainer_spec(chosen, TrainerOptions(framework=version.backend)),
        idle_seconds=chosen.trainer_idle_seconds,
        begin=requests.with_sources(db, _job(version)),
        asked={"arrays": [{"kind": each.kind} for each in network_inputs(version.recipe)], **_asked(db, version)},
        state=lambda: _state(db, version),
    )
    return Predictor(gd, told, db.check_interrupts)


def _job(version: Version) -> dict[str, Any]:
    architecture = read_architecture(version.architecture)
    units = check_architecture(architecture).output_units
    expected = len(version.classes) or 1
    if units != (expected,):
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: its network has outputs of"
            f" {', '.join(map(str, units))} units; expected one of {expected}",
            hint="Train the model again.",
        )
    program = network_program(architecture, COMPILED, version.classes)
    state = {"source": "weights_of_chunks", "key": "", "seed": 0}
    return {"job": "predict", "program": program, "state": state, "result_key": version.state_table}


def network_program(architecture: object, compile_params: str, classes: Sequence[str]) -> dict[str, Any]:
    """The program of a network as a trainer wants it described; it has these classes, or gives a number."""
    target = {"kind": "onehot", "classes": len(classes)} if classes else {"kind": "float"}
    return {
        "architecture": architecture,
        "compile": parse_compile_params(compile_params).to_json(),
        "targets": [target],
        "dtype_policy": None,
    }


def _asked(db: Database, version: Version) -> dict[str, object]:
    """What is told of each row: classes, or numbers, whole ones where the target is of such a type."""
    if version.classes:
        return {"labels": list(version.classes)}
    reach = WHOLE.get(db.value(sql("predict.base"), version.target_type) or "")
    return {"whole": [-reach, reach - 1]} if reach else {}


def _state(db: Database, version: Version) -> Iterator[Chunk]:
    for row in db.stream(db.platform.state_rows(version.state_table, None)):
        yield Chunk(row["part"], row["chunk"])


def columns_told(version: Version, answer: list[bytes]) -> tuple[bytes | None, ...]:
    """Prediction, probability, probabilities and number of a block, as arrays in text; None for what the task has not.

    >>> from types import SimpleNamespace
    >>> columns_told(SimpleNamespace(classes=()), [b"{2}", b"{1.9}"])
    (b'{2}', None, None, b'{1.9}')
    """
    if version.classes:
        return (*answer, None)
    return (answer[0], None, None, answer[1])
