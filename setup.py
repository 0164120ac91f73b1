"""What pyproject.toml cannot say: the version, which follows from the control file and the
changelog, and that the extension is put together at a build.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))  # a build in isolation has it nowhere else

import assembly


class Build(build_py):
    """Builds from nothing, because a module of an earlier build, since removed, would be packed
    along.
    """

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        assembly.write(Path(self.build_lib, "cerebro_db", "extension"))


setup(version=assembly.package_version(), cmdclass={"build_py": Build})
