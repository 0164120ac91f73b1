"""A model is exported only if its architecture has listed classes, and the weights that are
stored.
"""

from __future__ import annotations

import contextlib
import copy
import json
import resource
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.errors import (
    CerebroError,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    MissingLibrary,
)
from cerebro_db.export import networks, states
from cerebro_db.export.architecture import allowlist
from cerebro_db.export.stored_models import StoredModel

Json = dict[str, Any]
MEGABYTES = 1 << 10  # of ru_maxrss, which counts kilobytes


def layer(class_name: str, module: str = "keras.layers", /, **config: object) -> Json:
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def network(*layers: Json, inputs: int = 3) -> Json:
    first = layer("InputLayer", batch_shape=[None, inputs], dtype="float32", name="first")
    return layer("Sequential", "keras", name="network", layers=[first, *layers])


def stored(architecture: Json, numbers: int) -> StoredModel:
    """What a stranger's table may have: any architecture beside any weights."""
    return StoredModel(
        json.dumps(architecture), {}, [np.arange(numbers, dtype="<f4")], is_flat=True
    )


DENSE = network(layer("Dense", units=2, name="dense"))
FOREIGN = [
    layer("Lambda", function={"class_name": "__lambda__", "config": {"code": "4wEA"}}),
    layer("TorchModuleWrapper", "keras.src.utils.torch_utils", module="gASVAAAA"),
    layer("TFSMLayer", "keras.src.export.tfsm_layer", filepath="/tmp/model"),
    layer("JaxLayer", "keras.src.utils.jax_layer", call_fn="f"),
    layer("FlaxLayer", "keras.src.utils.jax_layer", module="f"),
    layer("StringLookup", vocabulary="/etc/passwd"),
    layer("TextVectorization", vocabulary="/etc/passwd"),
    layer("Popen", "subprocess", args=["id"]),
    layer("Dense", "os.path", units=1),
    layer(
        "Dense", units=2, activation={"class_name": "function", "config": "system", "module": "os"}
    ),
    layer(
        "Dense", units=2, kernel_initializer={"class_name": "system", "module": "os", "config": {}}
    ),
    layer("Wrapper", layer=layer("Dense", units=2)),
    layer("BertTokenizer", "keras_hub.tokenizers", vocabulary="/etc/passwd"),
    {
        **layer("TransformerEncoder", "keras_hub.layers"),
        "registered_name": "own>TransformerEncoder",
    },
    layer("Dense", units=2, bias={"class_name": "__lambda__", "config": {"value": "4wEA"}}),
]
CONTRACT = Path(__file__).parents[2] / "contract"
OF_KERAS_2 = {
    **json.loads((CONTRACT / "keras2_architectures.json").read_text()),
    **{
        f"{version} {name}": architecture
        for version, models in json.loads((CONTRACT / "keras2_versions.json").read_text()).items()
        for name, architecture in models.items()
    },
}
"""What the trainer builds of Keras 2, by its name."""


@pytest.mark.parametrize(
    "foreign", FOREIGN, ids=lambda foreign: f"{foreign['module']}.{foreign['class_name']}"
)
def test_a_class_that_is_not_listed_is_refused(foreign: Json) -> None:
    for architecture in (
        network(foreign),
        network(network(foreign)),
        network(layer("TimeDistributed", layer=foreign)),
    ):
        with pytest.raises((FeatureNotSupported, InvalidParameter)):
            networks.build_network(stored(architecture, 8))


@pytest.mark.parametrize(
    "foreign", FOREIGN, ids=lambda foreign: f"{foreign['module']}.{foreign['class_name']}"
)
def test_keras_reads_no_part_that_was_not_rewritten(foreign: Json) -> None:
    architecture = copy.deepcopy(DENSE)
    architecture |= {"compile_config": foreign, "build_config": foreign, "x": foreign}
    architecture["config"]["layers"][1] |= {
        "build_config": foreign,
        "compile_config": foreign,
        "x": foreign,
    }
    rewritten = json.dumps(networks.rewrite(json.dumps(architecture)))
    assert rewritten == json.dumps(networks.rewrite(json.dumps(DENSE)))


def test_weights_are_put_where_they_belong() -> None:
    model = networks.build_network(stored(DENSE, 8))
    kernel, bias = model.get_weights()
    assert kernel.tolist() == [[0, 1], [2, 3], [4, 5]] and bias.tolist() == [6, 7]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_normalization_has_the_statistics_that_are_stored(tmp_path: Path) -> None:
    """They are weights, and a saved network has them, too."""
    normal = network(layer("Normalization", name="normal", axis=[-1]), inputs=2)
    numbers = np.array([10, 20, 4, 25, 7], "<f4")
    model = networks.build_network(StoredModel(json.dumps(normal), {}, [numbers], is_flat=True))
    model.save(tmp_path / "saved.keras")
    for each in (model, keras.saving.load_model(tmp_path / "saved.keras")):
        outputs = each(np.array([[12, 25]], np.float32))
        assert outputs.numpy().tolist() == [[1, 1]]


@pytest.mark.parametrize("name", OF_KERAS_2)
def test_who_exports_an_exported_architecture_gets_it_as_it_is(name: str) -> None:
    """Of every version of Keras 2."""
    once = networks.rewrite(json.dumps(OF_KERAS_2[name]))
    assert networks.rewrite(json.dumps(once)) == once


def make_functional() -> keras.Model:
    """Return a model with named inputs and outputs, operations between layers, and layers within
    layers.
    """
    layers = keras.layers
    one, two = keras.Input((3, 4), name="z"), keras.Input((4,), name="y")
    states = layers.RNN([layers.GRUCell(4), layers.LSTMCell(4)])(one)
    sums = layers.Dense(4, activation=layers.LeakyReLU(negative_slope=0.5))(states + two[:, :4])
    even = layers.BatchNormalization()(keras.ops.maximum(sums, np.float32(0.1)))
    return keras.Model(
        {"z": one, "y": two}, {"q": layers.Dense(3, dtype="float32")(even), "p": even * 2}
    )


def test_a_rewritten_model_computes_the_same() -> None:
    model = make_functional()
    rewritten = networks.build_network(StoredModel(model.to_json(), {}, model.get_weights()))
    draws = np.random.default_rng(1)
    inputs = {"z": draws.normal(size=(5, 3, 4)), "y": draws.normal(size=(5, 4))}
    expected = [model(inputs)[name] for name in ("p", "q")]
    found = rewritten([inputs["y"], inputs["z"]])
    assert all(np.array_equal(*pair) for pair in zip(expected, found, strict=True))


def test_separate_weights_must_have_the_shapes_of_the_architecture() -> None:
    kernel, bias = np.ones((3, 2), "<f4"), np.zeros(2, "<f4")
    for wrong in ([kernel.T, bias], [bias, kernel], [kernel], [kernel, bias, bias]):
        with pytest.raises(DatatypeMismatch, match=f"the architecture: {len(wrong)} where 2"):
            networks.build_network(StoredModel(json.dumps(DENSE), {}, wrong))


@pytest.mark.parametrize("numbers", [0, 7, 9])
def test_other_weights_are_refused(numbers: int) -> None:
    with pytest.raises(DatatypeMismatch, match=f"{numbers} numbers, the architecture 8"):
        networks.build_network(stored(DENSE, numbers))


def test_weights_are_counted_before_they_are_built() -> None:
    """600,000,000 numbers would take 2.4 GB."""
    huge = network(layer("Dense", units=30_000, use_bias=False, name="huge"), inputs=20_000)
    networks.build_network(stored(DENSE, 8))  # what Keras itself takes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatatypeMismatch, match="8 numbers, the architecture 600000000"):
        networks.build_network(stored(huge, 8))
    networks.build_network(stored(DENSE, 8))  # nor is it made up for later
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * MEGABYTES


def test_what_keras_cannot_build_is_refused() -> None:
    for wrong in (
        layer("Dense", units=-1, name="a"),
        layer("Conv2D", filters=1, kernel_size=3),
        layer("Dot", axes=1),
    ):
        with pytest.raises(FeatureNotSupported, match="cannot build the model"):
            networks.build_network(stored(network(wrong), 8))


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        (network(layer("LSTM", units=2, stateful=True), inputs=2), "no order between batches"),
        (network(layer("Dense", units=2, dtype="float33")), "dtype 'float33' is not supported"),
        (layer("Sequential", "keras", layers=[]), "does not say the shape of its input"),
        (
            layer("Sequential", "keras", layers=[layer("Dense", units=2)]),
            "does not say the shape of its input",
        ),
        (
            layer("Functional", "keras", layers=[], input_layers=1),
            "expected references to layers, received 1",
        ),
        ({"class_name": "Sequential", "config": 1}, "a model's config is an object, received 1"),
        (network(layer("Reshape", target_shape=json.loads("[" * 30 + "]" * 30))), "levels deep"),
    ],
)
def test_what_is_missing_or_wrong_in_an_architecture_is_named(
    architecture: Json, words: str
) -> None:
    with pytest.raises((FeatureNotSupported, InvalidParameter), match=words):
        networks.build_network(stored(architecture, 8))


def test_an_architecture_has_an_end() -> None:
    many = network(*(layer("ReLU", name=f"relu_{n}") for n in range(allowlist.MAX_LAYERS)))
    with pytest.raises(InvalidParameter, match=f"{allowlist.MAX_LAYERS + 2} layers"):
        networks.rewrite(json.dumps(many))
    with pytest.raises(InvalidParameter, match="characters"):
        networks.rewrite(json.dumps({**DENSE, "x": "x" * allowlist.MAX_CHARACTERS}))
    for text in ("[" * 100_000, "", "NaN", "nothing"):
        with pytest.raises((InvalidText, InvalidParameter)):
            networks.rewrite(text)


keys = st.sampled_from(
    [
        "module",
        "class_name",
        "config",
        "registered_name",
        "layers",
        "layer",
        "name",
        "batch_shape",
        "dtype",
        "x",
    ]
)
words = st.sampled_from(
    [
        "keras.layers",
        "keras",
        "Dense",
        "Sequential",
        "Functional",
        "InputLayer",
        "Lambda",
        "os",
        "float32",
        "a",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_no_json_makes_the_rewriting_fail(value: object) -> None:
    with contextlib.suppress(CerebroError):
        networks.rewrite(json.dumps(value))


@given(where=st.data(), value=values)
def test_no_change_of_an_architecture_makes_an_export_fail(
    where: st.DataObject, value: object
) -> None:
    architecture = copy.deepcopy(DENSE)
    place: Any = architecture
    while True:
        key = where.draw(
            st.sampled_from(sorted(place))
            if isinstance(place, dict)
            else st.integers(0, len(place) - 1)
        )
        if not isinstance(place[key], (dict, list)) or not place[key] or where.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    with contextlib.suppress(CerebroError):
        networks.build_network(stored(architecture, 8))


@pytest.mark.parametrize("library", ["keras", "safetensors.numpy"])
def test_a_missing_library_is_named_with_all_extras_that_an_export_needs(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = safetensors.numpy.save({"w": np.ones(1, "f4")}, {"weights": '["w"]'})
    assert states.read_weights(state) == [np.ones(1, "f4")]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingLibrary) as caught:
        states.read_weights(state)
        networks.build_architecture(json.dumps(DENSE))
    assert caught.value.hint and ".[export,tensorflow]" in caught.value.hint
