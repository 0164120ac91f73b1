"""What a caller's backend holds is bounded: by the largest model, not by how many, nor by how many
runs it made.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from models import dense, sequential
from PIL import Image
from processes import most_memory
from roles import refused
from workbench import Workbench, compile_text, several

pytestmark = pytest.mark.long

MEGABYTE = 1 << 20
WIDE = sequential([4], dense(60_000, "wide"), dense(3, "out", "softmax"))
WEIGHTS = 4 * (5 * 60_000 + 3 * 60_001)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", several(2))


def memory(pid: int) -> int:
    """Bytes of memory of the process' own: the pages of shared buffers that it touched belong to
    the server.
    """
    found = re.search(
        r"^RssAnon:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    assert found
    return int(found[1]) * 1024


def peak(session: Workbench, output: str, configs: str) -> int:
    """The most memory that was seen in a backend while it made a run and its output tables."""
    with session.fitting("packed", output, configs, 1) as fitted:
        seen = [memory(session.pid())]
        while not fitted.done():
            seen.append(memory(session.pid()))
        fitted.result()
    return max(seen)


@pytest.fixture
def session(bench: Workbench) -> Iterator[Workbench]:
    """A backend that has done nothing yet."""
    opened = bench.another()
    yield opened
    opened.close()


def test_a_backend_does_not_grow_with_the_runs_it_made(session: Workbench) -> None:
    def fit(number: int) -> None:
        session.fit("packed", f"run_{number}", "two", 1)
        session.messages()

    for number in range(3):
        fit(number)
    before = memory(session.pid())
    for number in range(3, 13):
        fit(number)
    assert memory(session.pid()) - before < 4 * MEGABYTE


def test_a_backend_does_not_grow_with_the_number_of_models(
    bench: Workbench, session: Workbench
) -> None:
    model = bench.model(WIDE)
    adam = [compile_text(f"Adam(learning_rate=0.00{n})") for n in range(1, 10)]
    bench.configure("one_wide", adam[:1], model=model)
    bench.configure("nine_wide", adam, model=model)
    one = max(
        peak(session, f"wide_{turn}", "one_wide") for turn in range(3)
    )  # where it is short a moment is missed
    nine = peak(session, "wide_9", "nine_wide")
    assert bench.value("SELECT min(length(model_weights)) FROM wide_9") == WEIGHTS
    assert nine - one < 3 * WEIGHTS


def flat(height: int, width: int) -> bytes:
    """A small file of a grey image of that size."""
    output = io.BytesIO()
    Image.new("L", (width, height), 7).save(output, "PNG")
    return output.getvalue()


def test_what_a_small_file_of_a_large_image_takes_is_bounded(session: Workbench) -> None:
    """The packer decodes it, and no image is larger than a buffer, of which a backend holds
    three.
    """
    side = 4096
    session.rows("CREATE TABLE vast (image bytea, kind text)")
    session.rows("INSERT INTO vast VALUES (%s, 'a')", flat(side, side + 1))
    before, largest = most_memory(session.pid()), 4 * side * side
    pack = (
        "SELECT training_preprocessor_dl('vast', 'vast_packed', 'kind', 'image', n_segments => 1)"
    )
    refused(session, pack, code="22023", words="expected at most 16777216 numbers")
    assert most_memory(session.pid()) - before < largest
    session.rows(
        "DELETE FROM vast; INSERT INTO vast VALUES (%s, 'a'), (%s, 'b')", *[flat(side, side)] * 2
    )
    session.rows(pack)
    assert session.value("SELECT max(octet_length(image)) FROM vast_packed") == largest
    assert most_memory(session.pid()) - before < 4 * largest
