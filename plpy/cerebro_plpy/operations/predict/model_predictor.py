"""What predictions with a version of a model have in common, be they of a table or of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Optional

from cerebro_plpy.configs.architecture.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.preprocessing.kinds.feature import NetworkInput
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import raw_inputs
from cerebro_plpy.tables.models import granted_versions, model_versions
from cerebro_plpy.tables.models.granted_versions import GrantedVersion, UsableVersion
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import (
    privileged_requests,
    request_schema,
    segment_functions,
    settings,
)
from cerebro_plpy.trainer_client.predictor import Predictor, PredictorSpec
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.request_schema import Header
from cerebro_plpy.trainer_client.settings import TrainerOptions

# Whatever the model was trained with: of that nothing shows in a prediction, and this optimizer
# keeps nothing.
COMPILED = "optimizer='SGD()',loss='mean_squared_error'"
ModelOf = Callable[[str], Optional[UsableVersion]]
"""The model of the rows that have a value, by its text, if they have one of their own."""
REMEMBERED = 1000
"""Values of which it is not asked again whether rows with them have a model of their own."""
WHOLE = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}


def predictor(db: Database, gd: dict[str, Any], version: UsableVersion) -> Predictor:
    """The version in the trainer of the caller's session, as soon as it is asked for
    predictions.
    """
    return asker(
        db,
        gd,
        version,
        request_schema.build_request("tell", {"arrays": arrays(version), **_asked(db, version)}),
    )


def arrays(version: UsableVersion) -> list[dict[str, object]]:
    """How the inputs of the network are sent."""
    return [each.entry for each in inputs(version, version.recipe)]


def nothing_more() -> None:
    """Send nothing: a trainer has all that it needs."""


def asker(
    db: Database,
    gd: dict[str, Any],
    version: UsableVersion,
    asked: Header,
    started: TrainerSpec | None = None,
    bring: Callable[[], None] = nothing_more,
) -> Predictor:
    """The version in the trainer of the caller's session, as soon as this is asked of it.

    Where that was `started` in some other way than usual for one session alone, it is used as it
    is. What else the trainer needs, `bring` sends to it.
    """
    chosen = settings.read(db)
    settings.check_trainer(chosen)
    told = PredictorSpec(
        spec=started or settings.trainer_spec(chosen, TrainerOptions(framework=version.backend)),
        idle_seconds=chosen.trainer_idle_seconds,
        header=asked,
        begin=_filling(db, gd, version, bring),
    )
    return Predictor(gd, told, db.check_interrupts)


def inputs(version: UsableVersion, recipe: Recipe) -> tuple[NetworkInput, ...]:
    """What a trainer with the version takes of each row, by its recipe as it fits the rows."""
    return raw_inputs(recipe) if isinstance(version, GrantedVersion) else network_inputs(recipe)


def models_of_groups(
    db: Database, gd: dict[str, Any], module: str, version: UsableVersion
) -> tuple[ModelOf, Sequence[str] | None]:
    """What finds the model of a group of rows, and the texts of all groups where they may be
    known.
    """
    if isinstance(version, GrantedVersion):
        return lru_cache(REMEMBERED)(
            partial(granted_versions.find_group_version, db, gd, version)
        ), None
    found = model_versions.read_group_versions(db, module, version)
    return found.get, list(found)


def _filling(
    db: Database, gd: dict[str, Any], version: UsableVersion, bring: Callable[[], None]
) -> Callable[[], None]:
    if isinstance(version, GrantedVersion):
        return partial(granted_versions.fill_trainer, db, gd, version)
    rows = db.platform.state_rows_sql(version.state_table, None)
    begin = request_schema.build_request(
        "begin", privileged_requests.add_sources(db, job(version)), sealed=False
    )

    def fill() -> None:
        segment_functions.get_trainer(gd).call(begin)
        for row in db.stream(rows):
            segment_functions.add_state(gd, row["part"], row["chunk"])
        segment_functions.get_trainer(gd)  # the last chunks
        bring()

    return fill


def job(version: Version) -> dict[str, Any]:
    """The job of a trainer that predicts with a version."""
    architecture = read_architecture(version.architecture)
    units = check_architecture(architecture).output_units
    expected = len(version.classes) or 1
    if units != (expected,):
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: its network has "
            f"outputs of {', '.join(map(str, units))} units; expected one of {expected}",
            hint="Train the model again.",
        )
    program = network_program(architecture, COMPILED, version.classes)
    state = {"source": "weights_of_chunks", "key": "", "seed": 0}
    return {"job": "predict", "program": program, "state": state, "result_key": version.state_table}


def network_program(
    architecture: object, compile_params: str, classes: Sequence[str]
) -> dict[str, Any]:
    """The program of a network as a trainer wants it described; it has these classes, or gives a
    number.
    """
    target = {"kind": "onehot", "classes": len(classes)} if classes else {"kind": "float"}
    return {
        "architecture": architecture,
        "compile": parse_compile_params(compile_params).to_json(),
        "targets": [target],
        "dtype_policy": None,
    }


def _asked(db: Database, version: UsableVersion) -> dict[str, object]:
    """What is told of each row: classes, or numbers, whole ones where the target is of such a
    type.
    """
    if version.classes:
        return {"labels": list(version.classes)}
    base = (
        version.base
        if isinstance(version, GrantedVersion)
        else db.value(sql("predict.base"), version.target_type)
    )
    reach = WHOLE.get(base or "")
    return {"whole": [-reach, reach - 1]} if reach else {}


def columns_told(version: UsableVersion, answer: list[bytes]) -> tuple[bytes | None, ...]:
    """Prediction, probability, probabilities and number of a block, as arrays in text; None for
    what the task has not.

    >>> from types import SimpleNamespace
    >>> columns_told(SimpleNamespace(classes=()), [b"{2}", b"{1.9}"])
    (b'{2}', None, None, b'{1.9}')
    """
    if version.classes:
        return (*answer, None)
    return (answer[0], None, None, answer[1])
