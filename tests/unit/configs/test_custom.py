"""Networks that somebody loaded as templates: they stand between the columns and what is predicted,
or are refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from models import dense, layer, model, sequential

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.architecture.model_shapes import have_same_sizes
from cerebro_plpy.configs.templates.layers.model_io import (
    Classes,
    Floats,
    Head,
    Measure,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.networks.custom import extract_network, wrap_network
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP
from cerebro_plpy.errors import CerebroError, FeatureNotSupported, InvalidParameter

FLOWERS = Table(3, 1)
NUMBER = Floats((Measure(5.0, 2.0, 0.0, 9.0),))


def network(text: str, table: Table, head: Head) -> dict[str, Any]:
    """What the template comes to, which may be loaded and gives what is wanted."""
    template = wrap_network("nets:1", text)
    found: dict[str, Any] = json.loads(
        template.architecture(table, head, template.params(head, 100, {}))
    )
    assert check_architecture(found).output_units == (head.units,)
    return found


def class_names(found: dict[str, Any]) -> list[str]:
    return [each["class_name"] for each in found["config"]["layers"]]


def test_probabilities_stay_and_logits_become_some() -> None:
    told = [
        class_names(network(sequential([4], dense(3, "out", activation)), FLOWERS, Classes(3)))
        for activation in ("softmax", "linear")
    ]
    assert all("Sequential" in names for names in told)
    assert "Activation" not in told[0] and told[1][-1] == "Activation"


def test_numbers_come_in_the_units_of_the_target() -> None:
    found = network(sequential([4], dense(1, "out", "linear")), FLOWERS, NUMBER)
    assert "2.0" in json.dumps(found) and "5.0" in json.dumps(found)


def test_a_network_of_the_functional_form_is_one_too() -> None:
    inside = network(sequential([4], dense(3, "out", "softmax")), FLOWERS, Classes(3))
    functional = {**inside, "config": {**inside["config"], "name": "mine"}}
    assert (
        class_names(network(json.dumps(functional), Table(4), Classes(3))).count("Functional") == 1
    )


def test_an_array_that_is_all_comes_in_its_shape() -> None:
    image = Table(wide=(Wide("image", (8, 8, 1)),))
    convolution = layer("Conv2D", "look", filters=2, kernel_size=[3, 3]), layer("Flatten", "flat")
    found = network(
        sequential([8, 8, 1], *convolution, dense(2, "out", "softmax")), image, Classes(2)
    )
    assert "Reshape" in class_names(found)


KERAS_2 = {**model([4], dense(3, "out", "softmax")), "keras_version": "2.15.0"}
REFUSED: dict[str, tuple[str, Head, type[CerebroError], str]] = {
    "another width": (
        sequential([5], dense(3, "out")),
        Classes(3),
        InvalidParameter,
        r"shape \[5\].* come to \[4\]",
    ),
    "too few classes": (
        sequential([4], dense(2, "out")),
        Classes(3),
        InvalidParameter,
        "gives 2 numbers; expected 3",
    ),
    "units unknown": (sequential([4]), Classes(3), InvalidParameter, "an unknown number"),
    "old JSON": (json.dumps(KERAS_2), Classes(3), FeatureNotSupported, "written by Keras 2.15.0"),
}


@pytest.mark.parametrize(("text", "head", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(
    text: str, head: Head, kind: type[CerebroError], words: str
) -> None:
    with pytest.raises(kind, match=words) as refused:
        network(text, FLOWERS, head)
    assert refused.value.hint


def test_what_was_loaded_is_found_in_what_was_made_of_it() -> None:
    made = network(sequential([4], dense(3, "out", "softmax")), FLOWERS, Classes(3))
    assert network(extract_network(json.dumps(made)), FLOWERS, Classes(3)) == made


@pytest.mark.parametrize(
    ("change", "fits"),
    [({"lr": 0.5, "dropout": 0.3}, True), ({"width": 384}, False), ({"depth": 4}, False)],
)
def test_weights_fit_networks_of_the_same_sizes(change: dict[str, Any], fits: bool) -> None:
    made = [
        json.loads(
            REALMLP.architecture(FLOWERS, Classes(3), REALMLP.params(Classes(3), 100, values))
        )
        for values in ({}, change)
    ]
    assert have_same_sizes(*made) is fits
