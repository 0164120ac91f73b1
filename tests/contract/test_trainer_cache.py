"""What one trainer compiled serves the next, and changes no result."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_trainer_forms import use
from trainer_peer import Peer
from trainer_programs import FORMS, NOISY, buffers, content, program

NEW = {"source": "new", "seed": 3}


@pytest.mark.long
def test_compiled_code_is_found_again_and_gives_the_same_bits(trainer: Peer, framework: str, tmp_path: Path) -> None:
    (compiled,) = (form for form in FORMS[framework] if form in ("xla_loop", "scan"))
    states, files = [], []
    for cache in (None, tmp_path, tmp_path):
        with Peer(framework, cache=cache) as peer:
            peer.load("d", buffers(21, 13))
            states.append(content(peer.train(program(NOISY), NEW, forms=use(compiled))[1]))
        files.append({path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")})
    assert states[0] == states[1] == states[2]
    assert not files[0]
    assert files[1] and files[1] == files[2]
