"""The folders in which trainers work: private, and gone with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PREFIX = "cerebro_trainer-"
# What is read are no words but the end of file, which comes when nobody has the other end of the pipe any more.
BROOM = 'read -r _; exec rm -rf -- "$0"'


class Home:
    """A folder for a trainer of this backend. It goes when both are gone, whatever ends them: neither need do it.

    A trainer whose session ends is ended by the kernel at once, and could not; so a process that does nothing else
    waits for it.
    """

    def __init__(self) -> None:
        sweep()
        self.path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        end, self.descriptor = os.pipe()  # the descriptor is for the trainer to hold
        try:
            self._broom = subprocess.Popen(
                ["/bin/sh", "-c", BROOM, self.path],
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                start_new_session=True,
                stdin=end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            os.close(self.descriptor)
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        finally:
            os.close(end)

    def close(self) -> None:
        """Let go of the folder, and see it gone, after its trainer."""
        if self._broom.returncode is None:
            os.close(self.descriptor)
            self._broom.wait()


def sweep() -> None:
    """Remove the folders of backends that are gone, which the machine itself has left when it stopped."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name[len(PREFIX) :].partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)  # those of other users cannot be removed, and stay
