"""What lies in the event files of a folder, read by TensorFlow in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

READ = """
import json, sys
from pathlib import Path
import tensorflow as tf

found = []
for path in sorted(Path(sys.argv[1]).rglob("*tfevents*")):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        place = str(path.parent.relative_to(sys.argv[1]))
        if event.HasField("graph_def"):
            nodes = tf.compat.v1.GraphDef.FromString(event.graph_def).node
            found.append([place, "graphs", "", event.step, len(nodes) > 0])
        for value in event.summary.value:
            plugin = value.metadata.plugin_data.plugin_name
            found.append([place, plugin, value.tag, event.step,
                tf.make_ndarray(value.tensor).tolist()])
print(json.dumps(found))
"""


def read(folder: Path) -> list[list[Any]]:
    """Folder, plugin, name, step and value of all that was written there."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout.splitlines()[-1]))
