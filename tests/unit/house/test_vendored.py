"""Files of others that lie in the tree are those that their packages have, and none is there that
is not told.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "cerebro_db" / "dashboard" / "static" / "vendor"


def test_each_file_is_what_its_package_has() -> None:
    sources = json.loads((FOLDER / "sources.json").read_text())
    told = {each["file"]: each["sha256"] for each in sources}
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()}
    del found["sources.json"]
    assert found == told
    assert all(each["version"] and each["license"] and each["path"] for each in sources)
