"""The folder of a server that is started for the first time, by several at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from cerebro_db.server import run_as

STARTS = 8


def test_several_may_make_the_folder_at_once(tmp_path: Path) -> None:
    """None of them fails because another one was faster."""
    for number in range(50):
        barrier = Barrier(STARTS)

        def make(data: Path, together: Barrier) -> None:
            together.wait()
            run_as.prepare_folder(data)

        with ThreadPoolExecutor(STARTS) as pool:
            for made in [
                pool.submit(make, tmp_path / str(number) / "data", barrier) for _ in range(STARTS)
            ]:
                made.result()
        assert (tmp_path / str(number) / "data").is_dir()
