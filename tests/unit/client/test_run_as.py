"""The folder of a server that several processes start for the first time at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from cerebro_db.server import run_as

STARTS = 8


def test_concurrent_starts_may_create_the_folder(tmp_path: Path) -> None:
    """No start fails because another one was faster."""
    for number in range(50):
        barrier = Barrier(STARTS)

        def make(data: Path, together: Barrier) -> None:
            together.wait()
            run_as.prepare_folder(data)

        with ThreadPoolExecutor(STARTS) as pool:
            futures = [
                pool.submit(make, tmp_path / str(number) / "data", barrier) for _ in range(STARTS)
            ]
            for future in futures:
                future.result()
        assert (tmp_path / str(number) / "data").is_dir()
