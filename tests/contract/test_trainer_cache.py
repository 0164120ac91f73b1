"""What one trainer compiled serves the next, and changes no result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from shutil import copytree

import pytest
import traces
from test_trainer_execution_modes import use
from trainer_peer import Peer
from trainer_programs import NOISY, buffers, content, program

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


@pytest.fixture(scope="module")
def expected() -> object:
    """What a trainer comes to that keeps nothing."""
    return trained("jax", "scan", None)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    """The folder of a trainer that keeps what it compiled, and what that came to."""
    root = tmp_path_factory.mktemp("filled")
    return root, trained("jax", "scan", root)


@pytest.mark.long
def test_compiled_code_is_found_again_and_gives_the_same_bits(
    expected: object, filled: tuple[Path, object]
) -> None:
    root, first = filled
    files = kept(root)
    assert trained("jax", "scan", root) == first == expected
    assert files and files == kept(root)


@pytest.mark.long
@ON_JAX
def test_who_finds_functions_traces_none(plain: ProcessPoolExecutor, tmp_path: Path) -> None:
    """Where JAX fails to load them, or they are of other libraries or of a custom function, they
    are made anew.
    """
    first, again, refused, newer, newer_again, custom, custom_again = plain.submit(
        traces.found, str(tmp_path)
    ).result()
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
def test_damaged_code_is_as_good_as_none_and_is_made_anew(
    filled: tuple[Path, object], tmp_path: Path
) -> None:
    """A trainer is ended at any moment, and a machine that loses power leaves files of zeros."""
    root, first = filled
    copytree(root, tmp_path, dirs_exist_ok=True)
    whole = kept(tmp_path)
    damages: list[Callable[[bytes], bytes]] = [emptied, cut, zeroed, flipped]
    for number, path in enumerate(tmp_path.glob("*/*")):
        path.write_bytes(damages[number % len(damages)](path.read_bytes()))
    assert len(whole) >= len(damages)
    assert trained("jax", "scan", tmp_path) == first
    found = kept(tmp_path)
    assert found.keys() == whole.keys()
    assert all(code_cache.unpack_entry(path.read_bytes()) is not None for path in found)


@pytest.mark.long
def test_a_folder_that_cannot_be_used_harms_nobody(expected: object, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.touch()
    assert trained("jax", "scan", folder) == expected
