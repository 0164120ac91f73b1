"""The exported network of a version returns the weighted sum of what its members return."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_db.errors import FeatureNotSupported, InvalidText
from cerebro_db.export import networks
from cerebro_db.export.joined_networks import Member, join_networks
from cerebro_db.export.stored_models import StoredModel

SHARES = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4)


def make_network(units: int, *, inputs: int, seed: int) -> keras.Model:
    """Return a network with random weights, of numbers and perhaps of codes."""
    keras.utils.set_random_seed(seed)
    numbers = keras.Input((3,), name="numbers")
    tensors = [numbers]
    hidden = keras.layers.Dense(4 + seed % 2, activation="tanh", name="dense")(numbers)
    if inputs > 1:
        codes = keras.Input((2,), name="codes", dtype="int32")
        tensors.append(codes)
        flat = keras.layers.Flatten(name="flat")(keras.layers.Embedding(5, 2, name="words")(codes))
        hidden = keras.layers.Concatenate(name="both")([hidden, flat])
    output = keras.layers.Dense(units, name="out")(hidden)
    return keras.Model(tensors if len(tensors) > 1 else numbers, output)


@trials(10)
@given(shares=SHARES, units=st.integers(1, 3), inputs=st.integers(1, 2), seed=st.integers(0, 99))
def test_it_returns_the_weighted_sum_of_its_members(
    shares: list[float], units: int, inputs: int, seed: int
) -> None:
    """The first two members have different widths, others repeat one of them."""
    members = [
        make_network(units, inputs=inputs, seed=seed + number) for number in range(len(shares))
    ]
    text = join_networks(
        [Member(one.to_json(), share) for one, share in zip(members, shares, strict=True)], units
    )
    weights = [weight for one in members for weight in one.get_weights()]
    joined = networks.build_network(StoredModel(text, {}, weights))
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=(7, 3)).astype(np.float32)]
    if inputs > 1:
        arrays.append(random.integers(0, 5, (7, 2)).astype(np.int32))
    rows = arrays if inputs > 1 else arrays[0]
    outputs = [np.asarray(one(rows)) for one in members]
    expected = sum(share * output for share, output in zip(shares, outputs, strict=True))
    result = np.asarray(joined(rows))
    assert result.shape == (7, units)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "error"),
    [
        ({"class_name": "BoostedTrees", "config": {}}, FeatureNotSupported),
        ({"class_name": "Sequential", "config": {"layers": []}}, InvalidText),
        ([], InvalidText),
    ],
)
def test_other_members_are_refused(architecture: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        join_networks([Member(json.dumps(architecture), 1.0)], 1)
