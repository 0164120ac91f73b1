"""A model goes from one database into another as a file, and predicts the same bits there; nothing
else in a file is accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from commands import called
from hypothesis import given
from hypothesis import strategies as st
from roles import refused
from servers import Database
from shops import make_shops, train
from workbench import Workbench, opened

import cerebro_db
from cerebro_db import errors
from cerebro_plpy.operations.models.model_file import FORMAT, LENGTH, MAGIC

ENSEMBLE = "boats ensemble"
NUMBERS = "boats numbers"
FAR = "boats far"
GROUPED = "boats grouped"
TABLE = """
    CREATE DOMAIN knots AS integer;
    CREATE TABLE boats AS
    SELECT n AS id, n * 7919 % 101 AS length, (ARRAY['sail', 'motor', NULL])[n % 3 + 1] AS kind,
           (ARRAY['ab', 'c'])[n % 2 + 1]::char(4) AS port, date '2020-01-01' + n % 400 AS built,
           timestamptz '2020-01-01 00:00+00' + n % 5 * interval '7 hours' AS seen,
           (n * 31 % 19)::knots AS speed,
           to_char(1.7e9 + n * 7919 % 101 * 2.5, 'FM$9,999,999,999.00') AS price,
           n * 7919 % 101 > 50 AS large
    FROM generate_series(1, 300) n;
    ALTER TABLE boats ADD PRIMARY KEY (id)"""
CALLS = {
    ENSEMBLE: "'large', '{}', models => '{{linear}}', configs => 2, epochs => 2, ensemble => 2, "
    "refit => 'none', "
    "seed => 2",
    NUMBERS: "'speed', '{}', models => '{{linear}}', configs => 1, epochs => 2, ensemble => 1, "
    "refit => 'none', "
    "seed => 1",
    FAR: "'price', '{}', models => '{{linear}}', configs => 1, epochs => 2, ensemble => 1, "
    "refit => 'none', "
    "seed => 1, columns => 'length, kind'",
    GROUPED: "'large', '{}', models => '{{linear}}', configs => 1, epochs => 1, ensemble => 1, "
    "seed => 1, group_by => 'port', min_group_rows => 50",
}


@pytest.fixture(scope="module")
def models(bench: Workbench) -> tuple[str, ...]:
    """Models of each form; that with groups is not made on Greenplum."""
    bench.rows(TABLE)
    names = (ENSEMBLE, NUMBERS, FAR) if bench.greenplum else tuple(CALLS)
    for name in names:
        bench.rows(f"SELECT FROM cerebro.train('boats', {CALLS[name].format(name)})")
    return names


@pytest.fixture(scope="module")
def exported(bench: Workbench, models: tuple[str, ...]) -> bytes:
    """The bytes of a file."""
    return bytes(bench.value("SELECT cerebro.export_model(%s)", NUMBERS))


def answers(session: Workbench, model: str) -> list[list[tuple[Any, ...]]]:
    """Return what calls return about the rows of the table."""
    calls = (
        "SELECT p::text FROM cerebro.predict(%s, 'boats') p ORDER BY p.id::integer",
        "SELECT cerebro.predict_row(%s, to_jsonb(t))::text FROM boats t ORDER BY id LIMIT 20",
        "SELECT e::text FROM cerebro.evaluate(%s, 'boats') e",
        "SELECT d::text FROM cerebro.drift(%s, 'boats') d",
        "SELECT f.column_name, f.kind, f.importance FROM cerebro.feature f WHERE f.model = %s"
        " ORDER BY 1",
        "SELECT v.task, v.target, v.source, v.metric, v.value, v.training_rows, v.validation_rows,"
        " v.margin, v.fingerprint, v.backend, v.software::text FROM cerebro.model_version v"
        " WHERE v.model = %s",
    )
    return [session.rows(call, model) for call in calls]


def test_predictions_in_another_database_are_equal_to_the_bit(
    bench: Workbench, models: tuple[str, ...], database: Database, folder: Path
) -> None:
    """By commands, by methods and by SQL; the other database has the rows, and nothing else."""
    with opened(database.url) as other:
        other.rows(TABLE)
        for model in models:
            file = folder / "it.model"
            called("export", "model", model, "-o", str(file), "--force", "--url", bench.url)
            printed = called("import", str(file), "--url", database.url)
            assert printed.stdout.split() == ["1"], printed.stderr
            assert answers(other, model) == answers(bench, model)
        level = "SELECT p::text FROM cerebro.predict(%s, 'boats', level => 0.5) p"
        assert sorted(other.rows(level, FAR)) == sorted(bench.rows(level, FAR))
        recipe = "SELECT recipe FROM cerebro.version_log WHERE model = %s"
        assert other.value(recipe, FAR) == bench.value(recipe, FAR)
        with cerebro_db.connect(bench.url) as session:
            (path,) = session.export_model(NUMBERS, folder / "again.model", version=1)
            with pytest.raises(errors.DuplicateObject):
                session.export_model(NUMBERS, path)
        with cerebro_db.connect(database.url) as session:
            assert session.import_model(path) == 2
            assert session.import_model(path, "Ann's") == 1
            with pytest.raises(errors.UndefinedObject):
                session.import_model(folder / "none")
        deployed = "SELECT version, deployed, template FROM cerebro.model_version WHERE model = %s"
        assert sorted(other.rows(deployed, NUMBERS)) == [
            (1, True, "imported"),
            (2, False, "imported"),
        ]
        exported = other.value("SELECT cerebro.export_model('Ann''s')")
        assert other.value("SELECT cerebro.import_model(%s, 'third')", exported) == 1
        assert answers(other, "third")[:2] == answers(bench, NUMBERS)[:2]
        train_on(other)


@pytest.mark.long
def test_every_kind_of_feature_is_in_the_file(bench: Workbench) -> None:
    make_shops(bench)
    train(bench, "shops", "turning", "turnover", "realmlp")
    exported = bench.value("SELECT cerebro.export_model('shops')")
    bench.rows("SELECT cerebro.import_model(%s, 'copied')", exported)
    for source in ("turning", "turning_later"):
        query = "SELECT p::text FROM cerebro.predict(%s, %s, 'id') p ORDER BY p.id::integer"
        assert bench.rows(query, "copied", source) == bench.rows(query, "shops", source)
    kinds = "SELECT DISTINCT kind FROM cerebro.feature WHERE model = 'copied'"
    assert len(bench.rows(kinds)) > 5


def test_a_target_far_from_0_is_read_from_its_texts(
    bench: Workbench, models: tuple[str, ...]
) -> None:
    """The model that is transferred has both: the scale of labels, and the format of texts."""
    recipe = bench.value("SELECT recipe FROM cerebro.version_log WHERE model = %s", FAR)
    assert recipe["target_format"] == "text as $1,234.50"
    assert recipe["target_scale"]["low"] == 1.7e9
    low, high = bench.row(
        "SELECT min(prediction), max(prediction) FROM cerebro.predict(%s, 'boats')", FAR
    )
    assert 1.7e9 <= float(low) < float(high) <= 1.7e9 + 250


def train_on(other: Workbench) -> None:
    """The imported version is compared with others over rows that are held back alike."""
    refused(other, "SELECT cerebro.refresh(%s)", NUMBERS, code="55000", words="was imported")
    split = "SELECT split, split_seed FROM cerebro.model_log WHERE model = %s"
    before = other.row(split, NUMBERS)
    other.rows(f"SELECT FROM cerebro.train('boats', {CALLS[NUMBERS].format(NUMBERS)})")
    assert other.row(split, NUMBERS) == before
    other.rows("SELECT cerebro.drop_model(%s)", NUMBERS)
    left = "SELECT FROM cerebro.version_log WHERE model = %s"
    assert not other.rows(left, NUMBERS)


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [("NULL", "22004"), ("'nobody'", "42704"), (f"'{NUMBERS}', 7", "42704")],
)
def test_what_is_not_there_is_not_exported(
    bench: Workbench, models: tuple[str, ...], arguments: str, sqlstate: str
) -> None:
    refused(bench, f"SELECT cerebro.export_model({arguments})", code=sqlstate)


def rewritten(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a file with another header."""
    begin = len(MAGIC) + LENGTH.size
    (length,) = LENGTH.unpack_from(data, len(MAGIC))
    header = json.loads(data[begin : begin + length])
    change(header)
    text = json.dumps(header).encode()
    return MAGIC + LENGTH.pack(len(text)) + text + data[begin + length :]


def put(*path: str | int, value: object) -> Callable[[dict[str, Any]], object]:
    """Return a change that replaces an entry of a header."""

    def change(header: dict[str, Any]) -> None:
        place: Any = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


LAMBDA = '{"class_name": "Lambda", "config": {"function": "x"}, "module": "keras.layers"}'
WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "task": put("fields", "task", value="guessing"),
    "classes": put("fields", "classes", value=["a", "b"]),
    "one class": put("fields", "classes", value="ab"),
    "recipe": put("fields", "recipe", "features", value=[{"kind": "code", "column": "x"}]),
    "recipe's column": put("fields", "recipe", "features", 0, "column", value=7),
    "metric": put("fields", "metric", value="luck"),
    "margin": put("networks", 0, "margin", value=-1),
    "calibration": put("networks", 0, "calibration", value={"errors": {"rows": 3}}),
    "a calibration that is a list": put("networks", 0, "calibration", value=[]),
    "backend": put("networks", 0, "backend", value="pickle"),
    "architecture": put("networks", 0, "architecture", value=LAMBDA),
    "no members": put("networks", 0, "members", value=[]),
    "one half": lambda header: header["networks"][0].update(
        members=[{**header["networks"][0], "share": 0.5}]
    ),
    "no architecture": put("networks", 0, "architecture", value="{"),
    "another network": put("networks", 0, "architecture", value=json.dumps({"class_name": "x"})),
    "state": put("networks", 0, "state", value=1),
    "boolean": put("networks", 0, "state", value=False),
    "no network": put("networks", value=[]),
    "group": put("networks", 0, "group", value="x"),
    "hash": put("states", 0, "sha256", value="0" * 64),
    "size": put("states", 0, "bytes", value=1 << 40),
    "no states": put("states", value=[]),
    "types": put("fields", "reading", "types", value={"length": 1}),
    "zone": put("fields", "reading", "timezone", value=3),
    "no zone": put("fields", "reading", "timezone", value="Nowhere/Land"),
    "split": put("split", "rule", value="by chance"),
    "seed": put("split", "seed", value=1 << 70),
    "identity": put("split", "identity", value=[1]),
    "profile": put("fields", "profile", value={"version": 1}),
    "importance": put("fields", "importance", value=[1.0]),
    "zero": put("fields", "target", value="a\u0000b"),
    "format": put("format", value="something else"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_changed_file_is_refused(
    bench: Workbench, exported: bytes, change: Callable[[dict[str, Any]], object]
) -> None:
    """Nothing of it stays."""
    refuse(bench, rewritten(exported, change))


def refuse(bench: Workbench, data: bytes, code: str = "XX001") -> None:
    left = "SELECT count(*) FROM cerebro.model_log UNION ALL SELECT count(*) FROM pg_class"
    before = bench.rows(left)
    refused(bench, "SELECT cerebro.import_model(%s, 'refused')", psycopg2.Binary(data), code=code)
    assert bench.rows(left) == before


def test_a_newer_format_is_refused_by_name(bench: Workbench, exported: bytes) -> None:
    newer = rewritten(exported, put("format", value=f"{FORMAT}0"))
    refuse(bench, newer, code="0A000")


def test_types_of_a_stranger_are_no_part_of_a_statement(bench: Workbench, exported: bytes) -> None:
    """A type that PostgreSQL does not have is left out, whatever it is."""
    types = {"length": "integer); DROP TABLE boats; --", "port": "character"}
    file = rewritten(exported, put("fields", "reading", "types", value=types))
    assert bench.value("SELECT cerebro.import_model(%s, 'typed')", psycopg2.Binary(file)) == 1
    assert bench.rows("SELECT FROM boats LIMIT 1")


def test_weights_must_fit_the_network(bench: Workbench, exported: bytes) -> None:
    """Tensors of other shapes, sizes and names are refused, with a hash that is right."""
    begin = len(MAGIC) + LENGTH.size
    (length,) = LENGTH.unpack_from(exported, len(MAGIC))
    state = exported[begin + length :]
    (size,) = LENGTH.unpack_from(state)
    tensors = json.loads(state[LENGTH.size : LENGTH.size + size])
    data = state[LENGTH.size + size :]
    names = json.loads(tensors["__metadata__"]["weights"])
    largest = max(names, key=lambda name: tensors[name]["data_offsets"][1])
    entry = tensors[largest]
    changed = (
        {**tensors, largest: {**entry, "shape": [1, *entry["shape"]]}},
        {**tensors, largest: {**entry, "shape": [*entry["shape"], 2]}},
        {**tensors, largest: {**entry, "dtype": "OBJECT"}},
        {**tensors, largest: {**entry, "data_offsets": [0, 1 << 50]}},
        {name: value for name, value in tensors.items() if name != largest},
        {**tensors, "__metadata__": {"weights": "[1]"}},
        {**tensors, "__metadata__": {}},
    )
    assert len(changed) == 7
    for header in changed:
        text = json.dumps(header).encode()
        other = LENGTH.pack(len(text)) + text + data
        entries = [{"bytes": len(other), "sha256": hashlib.sha256(other).hexdigest()}]
        file = rewritten(exported[: begin + length], put("states", value=entries)) + other
        refuse(bench, file)


@given(st.data())
def test_damage_is_found(bench: Workbench, exported: bytes, data: st.DataObject) -> None:
    """Wherever a file is cut, or a byte of it is another one."""
    position = data.draw(st.integers(0, len(exported) - 1))
    if data.draw(st.booleans()):
        refuse(bench, exported[:position])
        return
    byte = exported[position] ^ data.draw(st.integers(1, 255))
    damaged = exported[:position] + bytes([byte]) + exported[position + 1 :]
    begin = len(MAGIC) + LENGTH.size + LENGTH.unpack_from(exported, len(MAGIC))[0]
    if position < begin:  # a header may say something else that is possible
        try:
            bench.rows("SELECT cerebro.import_model(%s, 'changed')", psycopg2.Binary(damaged))
        except psycopg2.Error as error:
            assert error.pgcode in ("XX001", "0A000"), error
    else:
        refuse(bench, damaged)


@pytest.fixture(autouse=True)
def without_messages(bench: Workbench) -> Iterator[None]:
    yield
    bench.messages()
