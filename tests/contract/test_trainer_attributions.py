"""Attributions: together they are what an output differs from that of a row of which nothing is
known.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer
from trainer_programs import weights

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.layers.model_io import (
    LOG,
    Classes,
    Floats,
    Head,
    Measure,
    Table,
)
from cerebro_plpy.configs.templates.networks.cnn import CNN
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP
from cerebro_plpy.configs.templates.networks.series import SERIES
from cerebro_plpy.configs.templates.registry import NETWORK_TEMPLATES as TEMPLATES
from cerebro_plpy.configs.templates.template import Template

ROWS = 300
"""More than a batch."""
TABLES = {
    "mixed": Table(3, 2, (4, 12), pieces=((-1.0, 0.0, 0.5), (0.0, 2.0), ())),
    "numbers": Table(2),
    "categories": Table(0, 0, (5, 3)),
}
HEADS: tuple[Head, ...] = (Classes(3), Floats((Measure(1.0, 3.0, -500.0, 500.0),)))
SKEWED = Floats((Measure(0.0, 1.0, -1.0, 1e6),))
"""A target that is predicted by its logarithm here."""
SMOOTH = ("linear", "realmlp", "realmlp_simple")
"""Of other networks that are drawn at random the way would need more points: the gap tells by how
much it misses.
"""
TYPES = {"float32": (700, "=f4"), "int32": (23, "=i4")}
Arrays = list[tuple[str, np.ndarray]]


def columns_of(table: Table) -> list[list[list[int]]]:
    """Each number a column with its indicator, where it has one, and each category."""
    widths = [count for count in (table.columns, len(table.cardinalities)) if count]
    found = []
    for number in range(table.numbers):
        with_indicator = [number, table.numbers + number] if number < table.indicators else [number]
        found.append([with_indicator, []][: len(widths)])
    for code in range(len(table.cardinalities)):
        found.append([[], [code]][-len(widths) :])
    return found


def rows_of(table: Table) -> Arrays:
    random = np.random.default_rng(3)
    found: Arrays = []
    if table.columns:
        found.append(("float32", random.normal(size=(ROWS, table.columns)).astype(np.float32)))
    if table.cardinalities:
        codes = random.integers(0, table.cardinalities, (ROWS, len(table.cardinalities)))
        found.append(("int32", codes.astype(np.int32)))
    return found


def sent(arrays: Arrays) -> tuple[dict[str, Any], bytes]:
    """The rows as PostgreSQL holds arrays: dimensions, no NULLs, type, size, lower bound,
    values.
    """
    parts = []
    for kind, array in arrays:
        oid, dtype = TYPES[kind]
        head = struct.pack("=iiIii", 1, 0, oid, array.shape[1], 1)
        parts.append(b"".join(head + row.astype(dtype).tobytes() for row in array))
    header = {"rows": len(arrays[0][1]), "arrays": [{"kind": kind} for kind, _ in arrays]}
    return {**header, "lengths": [len(part) for part in parts]}, b"".join(parts)


def asked(trainer: Peer, do: str, arrays: Arrays, **more: object) -> list[list[Any]]:
    """The columns of an answer."""
    header, payload = sent(arrays)
    trainer.tell({"do": do, **header, **more}, payload)
    answer, data = trainer.reply()
    found, begin = [], 0
    for length in answer["lengths"]:
        found.append(data[begin : begin + length].decode())
        begin += length
    return [
        json.loads("[" + text[1:-1].replace("NULL", "null") + "]") if '"' not in text else [text]
        for text in found
    ]


def attributed(
    trainer: Peer, arrays: Arrays, columns: list[Any], patches: Sequence[Any] = ()
) -> list[list[Any]]:
    """Attributions and gaps."""
    return asked(trainer, "attribute", arrays, columns=columns, patches=patches)


def architecture(template: Template, table: Table, head: Head) -> str:
    """A small network."""
    small: dict[str, object] = {"width": 16, "depth": 2} if template.name != "linear" else {}
    if head == SKEWED:
        small["link"] = LOG
    return template.architecture(table, head, template.params(head, 1000, small))


def begin(trainer: Peer, template: Template, table: Table, head: Head) -> None:
    """Open a job on a network whose weights are drawn."""
    target = (
        {"kind": "onehot", "classes": head.units}
        if isinstance(head, Classes)
        else {"kind": "float"}
    )
    described = {
        "architecture": json.loads(architecture(template, table, head)),
        "compile": parse_compile_params("optimizer='SGD()',loss='mean_squared_error'").to_json(),
        "targets": [target],
    }
    random = np.random.default_rng(5)
    # What begins as ones may be a variance, which cannot be anything.
    drawn = [
        weight
        if (weight == 1).all()
        else random.normal(scale=0.5, size=weight.shape).astype(np.float32)
        for weight in weights(trainer.initial(described))
    ]
    trainer.begin("predict", described, {"source": "weights", "seed": 1}, ())
    trainer.send_state(b"".join(weight.tobytes() for weight in drawn), 1 << 20)


def outputs(trainer: Peer, arrays: Arrays, head: Head) -> np.ndarray:
    """What the model gives: (rows, units)."""
    if not isinstance(head, Classes):
        return np.array(asked(trainer, "tell", arrays)[1], dtype=float)[:, np.newaxis]
    header, payload = sent(arrays)
    labels = [str(place) for place in range(head.units)]
    trainer.tell({"do": "tell", **header, "labels": labels}, payload)
    answer, data = trainer.reply()
    text = data[sum(answer["lengths"][:2]) :].decode()
    told = json.loads("[" + text[1:-1].replace('\\"', "'").replace('"', "").replace("'", '"') + "]")
    return np.array([[row[label] for label in labels] for row in told])


@pytest.mark.long_for(framework="jax")
@pytest.mark.long_for(framework="torch", template=REALMLP)
@pytest.mark.one_framework(
    table="mixed", template=tuple(each for each in TEMPLATES if each is not LINEAR)
)
@pytest.mark.long_for(template=tuple(each for each in TEMPLATES if each not in (LINEAR, REALMLP)))
@pytest.mark.long_for(table=("numbers", "categories"))
@pytest.mark.parametrize(
    ("template", "table", "head"),
    [
        *(
            pytest.param(each, "mixed", HEADS[0], id=each.name)
            for each in TEMPLATES
            if each not in (SERIES, CNN)
        ),
        pytest.param(REALMLP, "numbers", HEADS[1], id="numbers"),
        pytest.param(REALMLP, "categories", HEADS[1], id="categories"),
        pytest.param(LINEAR, "mixed", SKEWED, id="logarithms"),
    ],
)
def test_attributions_make_up_the_difference(
    trainer: Peer, template: Template, table: str, head: Head
) -> None:
    arrays, columns = rows_of(TABLES[table]), columns_of(TABLES[table])
    begin(trainer, template, TABLES[table], head)
    values, gaps = attributed(trainer, arrays, columns)
    found, gap = np.array(values).reshape(ROWS, -1), np.array(gaps).reshape(ROWS, -1)
    assert found.shape == gap.shape == (ROWS, len(columns)) and (gap == gap[:, :1]).all()
    every = outputs(trainer, arrays, head)
    empty = outputs(trainer, [(kind, np.zeros_like(array[:1])) for kind, array in arrays], head)
    chosen = every.argmax(axis=1)
    change = every[np.arange(ROWS), chosen] - empty[0, chosen]
    reach = max(np.abs(change).max(), np.abs(found).max())
    np.testing.assert_allclose(found.sum(axis=1) - gap[:, 0], change, atol=1e-4 * reach)
    assert np.abs(change).max() > 0.1 * reach > 0
    assert (template and template.name not in SMOOTH) or np.abs(gap).max() < 0.05 * reach
    repeated = attributed(trainer, arrays, columns)
    assert repeated == [values, gaps]


@pytest.mark.long_for(framework="torch")
@pytest.mark.one_framework(framework="jax")
def test_of_a_patch_it_is_what_is_lost_where_that_is_covered(trainer: Peer) -> None:
    """Whatever its positions are, and beside what columns tell, which stays as it is."""
    (template,) = (each for each in TEMPLATES if each.name == "realmlp")
    table, head = TABLES["mixed"], HEADS[0]
    arrays, columns = rows_of(table), columns_of(table)
    begin(trainer, template, table, head)
    alone, gaps = (
        np.array(values).reshape(ROWS, -1) for values in attributed(trainer, arrays, columns)
    )
    patches: list[list[list[int]]] = [[[0, 2], []], [[], [1]], [[1], [0]], [[], []]]
    values, beside = attributed(trainer, arrays, columns, patches)
    found = np.array(values, dtype=float).reshape(ROWS, -1)
    assert (found[:, : len(columns)] == alone).all() and found.shape[1] == len(columns) + len(
        patches
    )
    noted = np.array(beside, dtype=object).reshape(ROWS, -1)
    assert (noted[:, : len(columns)] == gaps).all() and {*noted[:, len(columns) :].flat} == {None}
    every = outputs(trainer, arrays, head)
    chosen = np.arange(ROWS), every.argmax(axis=1)
    for number, patch in enumerate(patches):
        covered = [(kind, array.copy()) for kind, array in arrays]
        for (_, array), part in zip(covered, patch, strict=True):
            array[:, part] = 0
        lost = every[chosen] - outputs(trainer, covered, head)[chosen]
        np.testing.assert_allclose(found[:, len(columns) + number], lost, atol=1e-5)
        assert (np.abs(lost).max() > 0.01) == any(patch)


@pytest.mark.one_framework
def test_of_a_linear_model_it_is_what_each_column_weighs(trainer: Peer) -> None:
    """And a column that is at its baseline adds nothing."""
    (linear,) = (template for template in TEMPLATES if template.name == "linear")
    arrays, columns = rows_of(TABLES["mixed"]), columns_of(TABLES["mixed"])
    (_, numbers), (_, codes) = arrays
    numbers[0], codes[0] = 0, 0
    begin(trainer, linear, TABLES["mixed"], HEADS[1])
    values, gaps = attributed(trainer, arrays, columns)
    found = np.array(values).reshape(ROWS, -1)
    assert (found[0] == 0).all() and np.abs(gaps).max() < 0.02
    slope = found[1:, 2] / numbers[1:, 2]
    np.testing.assert_allclose(slope, slope.mean(), rtol=1e-3)
    for column in (3, 4):
        for level in range(TABLES["mixed"].cardinalities[column - 3]):
            of_level = found[codes[:, column - 3] == level, column]
            np.testing.assert_allclose(of_level, of_level[0], rtol=1e-3, atol=1e-6)
            assert (of_level[0] == 0) == (level == 0)
