"""What one trainer compiled serves the next, and changes no result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import traces
from test_trainer_forms import use
from trainer_peer import Peer
from trainer_programs import FORMS, NOISY, buffers, content, program

from cerebro_trainer.programs import code_cache

NEW = {"source": "new", "seed": 3}
ON_JAX = pytest.mark.parametrize("framework", ["jax"], indirect=True, scope="session")


def trained(framework: str, form: str, cache: Path | None) -> tuple[object, list[str]]:
    """The state after a visit, and what users are warned of."""
    with Peer(framework, cache=cache) as peer:
        peer.load("d", buffers(21, 13))
        result, state = peer.train(program(NOISY), NEW, forms=use(form))
    return content(state), result["warnings"]


def kept(root: Path) -> dict[Path, int]:
    """What trainers have left there, and which file it is: what is compiled anew is another."""
    return {path: path.stat().st_ino for path in root.glob("*/*")}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS["jax"])
def test_compiled_code_is_found_again_and_gives_the_same_bits(form: str, tmp_path: Path) -> None:
    outcomes, files = [], []
    for cache in (None, tmp_path, tmp_path):
        outcomes.append(trained("jax", form, cache))
        files.append(kept(tmp_path))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert not files[0]
    assert files[1] and files[1] == files[2]


@pytest.mark.long
@ON_JAX
def test_who_finds_functions_traces_none(plain: ProcessPoolExecutor, tmp_path: Path) -> None:
    """Where JAX fails to load them, or they are of other libraries or of a custom function, they are made anew."""
    first, again, refused, newer, newer_again, custom, custom_again = plain.submit(traces.found, str(tmp_path)).result()
    assert first[0] > 5
    assert again == newer_again == (0, True)
    assert refused == newer == first
    assert custom == custom_again == (first[0], True)


@pytest.mark.long
@ON_JAX
def test_what_was_found_says_how_long_it_took(plain: ProcessPoolExecutor, tmp_path: Path) -> None:
    """Else it would look as if another form could be compiled in no time."""
    nothing, still_nothing, found, rest = plain.submit(traces.spared, str(tmp_path)).result()
    assert nothing == still_nothing == rest == 0 < found


@pytest.mark.long
def test_tensorflow_keeps_none(tmp_path: Path) -> None:
    """Where it did, a damaged file would fail a config."""
    trained("tensorflow", "xla_loop", tmp_path)
    assert not kept(tmp_path)


def emptied(content: bytes) -> bytes:
    return b""


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def zeroed(content: bytes) -> bytes:
    return bytes(len(content))


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.long
def test_damaged_code_is_as_good_as_none_and_is_made_anew(tmp_path: Path) -> None:
    """A trainer is ended at any moment, and a machine that loses power leaves files of zeros."""
    first = trained("jax", "jit_step", tmp_path)
    whole = kept(tmp_path)
    damages: list[Callable[[bytes], bytes]] = [emptied, cut, zeroed, flipped]
    for number, path in enumerate(tmp_path.glob("*/*")):
        path.write_bytes(damages[number % len(damages)](path.read_bytes()))
    assert len(whole) >= len(damages)
    assert trained("jax", "jit_step", tmp_path) == first
    found = kept(tmp_path)
    assert found.keys() == whole.keys()
    assert all(code_cache.entry(path.read_bytes()) is not None for path in found)


@pytest.mark.long
def test_a_folder_that_cannot_be_used_harms_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.touch()
    assert trained("jax", "jit_step", folder) == trained("jax", "jit_step", None)
