"""Models that come as files, as the database has them afterwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from workbench import Workbench

import cerebro_db
from cerebro_db import errors
from cerebro_db.export import networks

# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
FIT_WORKERS = 1
Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[cerebro_db.Session]:
    with cerebro_db.connect(bench.url) as opened:
        yield opened


def mixed(*, flat: bool = False) -> keras.Model:
    """A model with each layer that PyTorch has alike, over images."""
    layers = keras.layers
    made = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, (2, 3), name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.Flatten(name="flat") if flat else layers.GlobalAveragePooling2D(name="pool"),
            layers.LayerNormalization(name="even"),
            layers.Dense(4, name="last"),
        ]
    )
    draws = np.random.default_rng(1)
    made.set_weights(
        [draws.uniform(0.5, 2.0, each.shape).astype(np.float32) for each in made.weights]
    )
    return made


def stored(bench: Workbench, table: str) -> tuple[str, bytes]:
    """The newest row of an architecture table."""
    query = f"SELECT model_arch::text, model_weights FROM {table} ORDER BY model_id DESC LIMIT 1"
    architecture, weights = bench.row(query)
    return architecture, bytes(weights)


def flat(model: keras.Model) -> bytes:
    return b"".join(each.astype("<f4").tobytes() for each in model.get_weights())


def test_a_keras_file_has_architecture_and_weights(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    model = mixed()
    model.save(tmp_path / "it.keras")
    session.load_model(tmp_path / "it.keras", "files")
    architecture, weights = stored(bench, "files")
    assert json.loads(architecture) == json.loads(model.to_json()) and weights == flat(model)


def test_an_exported_folder_comes_back_to_the_bit(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    bench.pack("points_packed", 2)
    bench.configure("one", ["optimizer='SGD()',loss='categorical_crossentropy'"])
    bench.fit("points_packed", "points_model", "one", 1, seed=1)
    session.export_safetensors("points_model:1", tmp_path / "it")
    session.load_model(tmp_path / "it", "files")
    row = bench.row("SELECT model_arch::text, model_weights FROM points_model")
    architecture, weights = stored(bench, "files")
    assert json.loads(architecture) == networks.rewrite(row[0]) and weights == bytes(row[1])
    session.load_model(architecture, "files", weights=tmp_path / "it" / "weights.safetensors")
    assert stored(bench, "files")[1] == weights


def state_dict(model: keras.Model, *, numbered: bool = False) -> dict[str, Array]:
    """The weights of `mixed` as PyTorch has them."""
    conv, bias, gamma, beta, mean, variance, even, odd, kernel, last = _by_layer(model)
    named = {
        "conv": {"weight": conv.transpose(3, 2, 0, 1), "bias": bias},
        "norm": {"weight": gamma, "bias": beta, "running_mean": mean, "running_var": variance},
        "even": {"weight": even, "bias": odd},
        "last": {"weight": kernel.T, "bias": last},
    }
    places = (
        dict(zip(named, ("0", "1", "4", "10"), strict=True))
        if numbered
        else {name: name for name in named}
    )
    found = {
        f"{places[name]}.{key}": np.ascontiguousarray(each)
        for name, of in named.items()
        for key, each in of.items()
    }
    return {**found, f"{places['norm']}.num_batches_tracked": np.array(3)}


def _by_layer(model: keras.Model) -> list[Array]:
    return [np.asarray(each.numpy()) for layer in model.layers for each in layer.weights]


@pytest.mark.parametrize("numbered", [False, True])
def test_weights_of_pytorch_lie_where_keras_has_them(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path, numbered: bool
) -> None:
    model = mixed()
    save_file(state_dict(model, numbered=numbered), tmp_path / "torch.safetensors")
    session.load_model(model, "files", weights=tmp_path / "torch.safetensors")
    assert stored(bench, "files")[1] == flat(model)


PYTORCH = """
import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(1)
first = nn.Conv2d(2, 3, (2, 3)), nn.BatchNorm2d(3, eps=1e-3), nn.ReLU()
net = nn.Sequential(*first, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
images = torch.rand(5, 2, 6, 6)
net(images)  # moves the means
net.eval()
save_file(net.state_dict(), "net.safetensors")
save_file({"images": images, "outputs": net(images).detach()}, "seen.safetensors")
torch.save(net.state_dict(), "net.bin")
"""
EXPORTED = """
exported = torch.nn.Linear(3, 4)
torch.export.save(torch.export.export(exported, (torch.rand(5, 3),)), "net.pt2")
"""


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that PyTorch has written; of what torch.export writes also one under
    another name.
    """
    folder = tmp_path_factory.mktemp("pytorch")
    run_torch(PYTORCH + EXPORTED, folder)
    shutil.copy(folder / "net.pt2", folder / "renamed")
    return folder


def run_torch(program: str, folder: Path) -> None:
    """In a process of its own."""
    if find_spec("torch") is None:
        pytest.skip("without torch, which is not installed")
    settings = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=settings, check=True)


@pytest.mark.long
def test_a_network_of_pytorch_computes_the_same(
    bench: Workbench, session: cerebro_db.Session, pytorch: Path
) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, (2, 3)),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4),
        ]
    )
    session.load_model(model, "files", weights=pytorch / "net.safetensors")
    taken = np.frombuffer(stored(bench, "files")[1], "<f4")
    cuts = np.cumsum([each.size for each in model.get_weights()])[:-1]
    shapes = [each.shape for each in model.get_weights()]
    model.set_weights(
        [part.reshape(shape) for part, shape in zip(np.split(taken, cuts), shapes, strict=True)]
    )
    seen = load_file(pytorch / "seen.safetensors")
    outputs = np.asarray(model(seen["images"].transpose(0, 2, 3, 1)))
    np.testing.assert_allclose(outputs, seen["outputs"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["empty.pt", "made"])
def test_what_unpickles_is_refused_with_the_reason(
    session: cerebro_db.Session, tmp_path: Path, name: str
) -> None:
    """As a model and as weights, by its name, or by what is in it."""
    if name == "made":
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("net/archive_format", "pt2")
    else:
        (tmp_path / name).touch()
    check_refused(session, tmp_path / name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["net.bin", "net.pt2", "renamed"])
def test_what_torch_writes_is_refused_with_the_reason(
    session: cerebro_db.Session, pytorch: Path, name: str
) -> None:
    """It takes seconds to be made."""
    check_refused(session, pytorch / name)


def check_refused(session: cerebro_db.Session, path: Path) -> None:
    for model, weights in ((path, None), (mixed(), path)):
        with pytest.raises(
            errors.FeatureNotSupported,
            match=rf"{path.name} is a file of torch.* who loads them runs code",
        ) as no:
            session.load_model(model, "models", weights=weights)
        assert "save_file(net.state_dict()" in str(no.value)


def test_an_embedding_of_pytorch_is_that_of_keras(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int32"),
            layers.Embedding(7, 4, name="words"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(2, name="last"),
        ]
    )
    table, kernel, bias = model.get_weights()
    named = {
        "words.weight": table,
        "last.weight": np.ascontiguousarray(kernel.T),
        "last.bias": bias,
    }
    save_file(named, tmp_path / "torch.safetensors")
    session.load_model(model, "files", weights=tmp_path / "torch.safetensors")
    assert stored(bench, "files")[1] == flat(model)


def test_what_does_not_fit_is_named_and_nothing_is_stored(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    whole, path = state_dict(mixed()), tmp_path / "torch.safetensors"
    wrong = {
        "has no 'bias'": {name: each for name, each in whole.items() if name != "conv.bias"},
        "no module 'last'": {
            name: each for name, each in whole.items() if not name.startswith("last")
        },
        "no layer is named like: more": {**whole, "more.weight": np.zeros(2, np.float32)},
        "has extra, which": {**whole, "even.extra": np.zeros(2, np.float32)},
        r"shape \(3, 4\)": {**whole, "last.weight": np.ascontiguousarray(whole["last.weight"].T)},
    }
    before = bench.value("SELECT count(*) FROM models")
    for words, tensors in wrong.items():
        save_file(tensors, path)
        with pytest.raises(errors.DatatypeMismatch, match=words):
            session.load_model(mixed(), "models", weights=path)
    save_file(whole, path)
    with pytest.raises(errors.FeatureNotSupported, match="layer 'flat' puts channels"):
        session.load_model(mixed(flat=True), "models", weights=path)
    assert bench.value("SELECT count(*) FROM models") == before


def test_a_file_with_code_or_of_another_kind_is_refused(
    session: cerebro_db.Session, tmp_path: Path
) -> None:
    layers = [keras.Input((2,)), keras.layers.Lambda(lambda x: x), keras.layers.Dense(1)]
    keras.Sequential(layers).save(tmp_path / "code.keras")
    with pytest.raises(errors.FeatureNotSupported, match="safe mode"):
        session.load_model(tmp_path / "code.keras", "models")
    (tmp_path / "text.keras").write_text("x")
    with pytest.raises(errors.FeatureNotSupported, match=r"text\.keras"):
        session.load_model(tmp_path / "text.keras", "models")
    with pytest.raises(errors.UndefinedObject, match="does not exist"):
        session.load_model(tmp_path / "none.keras", "models")
    with pytest.raises(errors.UndefinedObject, match=r"no architecture\.json"):
        session.load_model(tmp_path, "models")
    (tmp_path / "it.h5").write_text("x")
    with pytest.raises(errors.InvalidParameter, match="is no model"):
        session.load_model(tmp_path / "it.h5", "models")
    with pytest.raises(errors.InvalidParameter, match="no file of safetensors"):
        session.load_model({}, "models", weights=tmp_path / "it.h5")
