"""Draw initial weights of architectures with a seed, the same ones for all contenders.

This is a separate process, because it needs Keras: `python -m bench.weights FOLDER` reads
`architectures.json` there and writes `weights-0`, `weights-1`, …
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import bench_server
from bench.keras_config import flatten, prepare
from bench.workloads import WEIGHT_SEED


def draw_weights(architectures: Sequence[str], folder: Path) -> list[bytes]:
    """Return weights of each architecture, as flat float32."""
    (folder / "architectures.json").write_text(json.dumps(architectures))
    command = [sys.executable, "-m", "bench.weights", str(folder)]
    subprocess.run(
        command, env=bench_server.make_environment(), check=True, stderr=subprocess.DEVNULL
    )
    return [(folder / f"weights-{number}").read_bytes() for number in range(len(architectures))]


def main() -> None:
    """Write one file for each architecture."""
    folder = Path(sys.argv[1])
    keras = prepare("tensorflow")
    for number, architecture in enumerate(json.loads((folder / "architectures.json").read_text())):
        keras.utils.set_random_seed(WEIGHT_SEED + number)
        (folder / f"weights-{number}").write_bytes(
            flatten(keras.models.model_from_json(architecture).get_weights())
        )


if __name__ == "__main__":
    main()
