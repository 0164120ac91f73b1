"""A version predicts the sum of what its members predict, each times its share.

The members are models of one run that were registered one by one: what each predicts alone is the
measure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from dashboards import dashboard
from hypothesis import example, given
from hypothesis import strategies as st
from roles import another_role, own_schema
from trials import trials
from versions import copy_state, deploy
from workbench import Workbench, compile_text

import cerebro_db
from cerebro_db.export import stored_models
from cerebro_db.export.stored_models import ModelReference
from cerebro_plpy.configs.templates.layers.model_io import Classes
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import SIMPLE
from cerebro_plpy.operations.models.model_file import LENGTH, MAGIC, write_file
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.scale import Scale

LABELS = ("high", "low", "middle")
SINGLES = ("first", "second", "third")
"""The first two have one architecture."""
CALLS = (
    "SELECT id::integer, probabilities FROM cerebro.predict(%s, 'places', 'id', owner => 'cerebro')"
    " ORDER BY 1",
    "SELECT (p.row).id, p.probabilities FROM cerebro.predict_rows(%s, NULL::places, owner => "
    "'cerebro') p",
    "SELECT id, cerebro.predict_row(%s, to_jsonb(t), 'cerebro') -> 'probabilities' FROM places t "
    "ORDER BY id LIMIT 20",
)
NAMES = (f"together {number}" for number in count())
Shares = Sequence[tuple[str, float]]


@pytest.fixture(scope="module")
def trained(bench: Workbench) -> Workbench:
    """The session of the owner of the members, which are trained in one run."""
    bench.rows(
        "CREATE TABLE places AS SELECT id, x[1] AS a, x[2] AS b, x[3] AS c, x[4] AS d, label FROM "
        "points; ALTER TABLE places ADD PRIMARY KEY (id)"
    )
    recipe = Recipe(tuple(Number(name, "real", Scale(0.0, 1.0), missing=False) for name in "abcd"))
    head = Classes(len(LABELS))
    architectures = []
    for template, width in ((SIMPLE, {"width": 8}), (LINEAR, {})):
        params = template.params(head, 100, {"batch_size": 8, **width})
        architectures.append(template.architecture(recipe.table, head, params))
    bench.pack("packed", 2)
    compiled = [compile_text(f"Adam(learning_rate={rate})") for rate in (0.03, 0.01)]
    first, last = map(bench.model, architectures)
    bench.configure("three", compiled, model=first)
    bench.rows(
        "INSERT INTO three SELECT 3, %s, compile_params, fit_params FROM three WHERE mst_key = 1",
        last,
    )
    run_id = bench.fit("packed", "flat", "three", 1, seed=1, workers=1)
    for key, name in enumerate(SINGLES, 1):
        copy_state(bench, "flat", run_id, key)
        deploy(
            bench, name, 1, run_id=run_id, mst_key=key, source="places", target="label",
            recipe=recipe, classes=LABELS, architecture=architectures[key // 3],
            compiled=compiled[0], margin=None, template="realmlp",
        )  # fmt: skip
    return bench


@pytest.fixture(scope="module")
def guest(trained: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    with another_role(trained, shared_superuser, "sharer") as session:
        own_schema(shared_superuser, "sharer")
        trained.rows("GRANT SELECT ON places TO sharer")
        session.rows("SET search_path = public, madlib")
        yield session


def read_header(data: bytes) -> tuple[dict[str, Any], bytes]:
    begin = len(MAGIC) + LENGTH.size
    (length,) = LENGTH.unpack_from(data, len(MAGIC))
    return json.loads(data[begin : begin + length]), data[begin + length :]


def join_files(files: Sequence[bytes], shares: Sequence[float]) -> bytes:
    """Return the file of a model with the members of several files."""
    headers, states = zip(*map(read_header, files), strict=True)
    header = headers[0]
    (model,) = header["networks"]
    members = [
        {**one["networks"][0], "share": share, "state": number}
        for number, (one, share) in enumerate(zip(headers, shares, strict=True))
    ]
    header["networks"] = [{**model, "members": members}]
    return write_file(header, states)


def join(bench: Workbench, shares: Shares) -> str:
    """Return the name of a version with these members."""
    query = "SELECT cerebro.export_model(%s)"
    files = [bytes(bench.value(query, single)) for single, _ in shares]
    name = next(NAMES)
    data = join_files(files, [share for _, share in shares])
    assert bench.value("SELECT cerebro.import_model(%s, %s)", data, name) == 1
    return name


def ask(session: Workbench, model: str) -> list[dict[int, dict[str, float]]]:
    """Return the probabilities that each call gives the rows, by id."""
    return [dict(session.rows(call, model)) for call in CALLS]


def add_up(
    parts: Sequence[dict[int, dict[str, float]]], shares: Shares
) -> dict[int, dict[str, float]]:
    """Return the sum of probabilities times shares, as a trainer computes it."""
    total: dict[int, dict[str, float]] = {}
    for row, first in parts[0].items():
        total[row] = {}
        for label in first:
            terms = [
                part[row][label] * share for part, (_, share) in zip(parts, shares, strict=True)
            ]
            total[row][label] = float(np.float32(sum(terms)))
    return total


PICKS = st.lists(st.tuples(st.sampled_from(SINGLES), st.integers(1, 9)), min_size=2, max_size=4)


@trials(5)
@given(picks=PICKS)
@example([("first", 1), ("third", 1), ("second", 2), ("first", 3)])
def test_a_version_predicts_the_weighted_sum_of_its_members(
    trained: Workbench, guest: Workbench, picks: list[tuple[str, int]]
) -> None:
    """For its owner, for whom it was granted, and exported and imported; to the bit."""
    total = sum(number for _, number in picks)
    shares = [(single, number / total) for single, number in picks]
    answers = [ask(trained, single) for single, _ in shares]
    expected = [add_up(parts, shares) for parts in zip(*answers, strict=True)]
    model = join(trained, shares)
    try:
        assert ask(trained, model) == expected
        trained.rows("SELECT cerebro.grant_predict(%s, 'sharer')", model)
        assert ask(guest, model) == expected
        exported = trained.value("SELECT cerebro.export_model(%s)", model)
        trained.rows("SELECT cerebro.import_model(%s, 'again')", exported)
        assert ask(trained, "again") == expected
        members = (
            "SELECT position, share, template, backend FROM cerebro.model_member WHERE model = %s"
            " AND deployed AND group_value IS NULL ORDER BY position"
        )
        assert [share for _, share, *_ in trained.rows(members, model)] == [
            share for _, share in shares
        ]
        assert trained.rows(members, "again") == trained.rows(members, model)
    finally:
        trained.rows("SELECT cerebro.drop_model(%s), cerebro.drop_model('again')", model)


def test_it_is_measured_explained_and_dropped_as_one(trained: Workbench) -> None:
    states = (
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace "
        "AND relkind = 'r' ORDER BY 1"
    )
    before = trained.rows(states)
    model = join(trained, [("first", 0.25), ("third", 0.5), ("first", 0.25)])
    assert len(trained.rows(states)) == len(before) + 3
    predicted = trained.rows(
        "SELECT p.prediction = t.label FROM cerebro.predict(%s, 'places', 'id') p JOIN places t ON "
        "t.id::text = p.id",
        model,
    )
    accuracy = "SELECT value FROM cerebro.evaluate(%s, 'places') WHERE metric = 'accuracy'"
    share = sum(hit for (hit,) in predicted) / len(predicted)
    assert trained.value(accuracy, model) == pytest.approx(share)
    importances = "SELECT count(importance) FROM cerebro.importance(%s, 'places')"
    assert trained.value(importances, model) == 4
    attributed = "SELECT count(attribution) FROM cerebro.attribution(%s, 'places', 'id')"
    assert trained.value(attributed, model) > 0
    trained.rows("SELECT cerebro.drop_model(%s)", model)
    assert trained.rows(states) == before
    assert not trained.rows("SELECT FROM cerebro.member_log WHERE model = %s", model)


def test_the_page_of_a_model_lists_its_members(trained: Workbench) -> None:
    model = join(trained, [("first", 0.125), ("third", 0.875)])
    with dashboard(trained.url) as page:
        several, single = (
            page.ask(f"/model?owner=cerebro&model={quote(name)}") for name in (model, "first")
        )
    assert several.status == single.status == 200
    assert "Members of version 1" in several.text
    assert "0.125" in several.text and "0.875" in several.text
    assert "Members of version" not in single.text
    trained.rows("SELECT cerebro.drop_model(%s)", model)


def test_the_client_reads_all_members_as_one_network(trained: Workbench) -> None:
    model = join(trained, [("third", 0.25), ("second", 0.75)])
    with cerebro_db.connect(trained.url) as session:
        stored = {
            name: stored_models.read_model(session.engine, ModelReference(name))
            for name in (model, "third", "second")
        }
    joined = stored[model]
    layers = json.loads(joined.architecture)["config"]["layers"]
    names = [layer["name"] for layer in layers if layer["class_name"] == "Functional"]
    assert names == ["member_1", "member_2"]
    expected = [*stored["third"].weights, *stored["second"].weights]
    for weight, other in zip(joined.weights, expected, strict=True):
        np.testing.assert_array_equal(weight, other)
    trained.rows("SELECT cerebro.drop_model(%s)", model)


def test_the_hash_of_each_state_is_its_own(trained: Workbench) -> None:
    """A state that members share stands in the file once for each."""
    model = join(trained, [("first", 0.5), ("first", 0.5)])
    header, states = read_header(bytes(trained.value("SELECT cerebro.export_model(%s)", model)))
    (entry,) = header["networks"]
    assert [member["state"] for member in entry["members"]] == [0, 1]
    half = states[: header["states"][0]["bytes"]]
    assert states == half * 2
    assert {entry["sha256"] for entry in header["states"]} == {hashlib.sha256(half).hexdigest()}
    trained.rows("SELECT cerebro.drop_model(%s)", model)
