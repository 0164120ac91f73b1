"""The folders in which trainers work: private, and gone with them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress

PREFIX = "cerebro_trainer-"
# Of the first pipe the backend alone has the other end, of the second the trainer, too: each ends
# with who has it. The signal that comes with the end of a backend does nothing to a trainer that
# was stopped before it goes on.
BROOM = (
    'read -r pid; read -r _; kill -s CONT "$pid"; read -r _ <"/proc/self/fd/$1"; exec rm -rf -- '
    '"$0"'
)


class Home:
    """A folder for a trainer of this backend. It goes when both are gone, whatever ends them:
    neither need do it.

    A trainer whose session ends is ended by the kernel at once, and could not; so a process that
    does nothing else waits for it, and sees to it that one which was stopped can end. That process
    holds a lock on the folder: who finds no process of the backend's number may be in another
    namespace of processes, with the same temporary files.
    """

    def __init__(self) -> None:
        sweep()
        self.path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        ours, self._ours = os.pipe()
        end, self.descriptor = os.pipe()  # the descriptor is for the trainer to hold
        try:
            self._broom = subprocess.Popen(
                ["/bin/sh", "-c", BROOM, self.path, str(end)],
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                start_new_session=True,
                pass_fds=[end, lock],
                stdin=ours,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            os.close(self._ours)
            os.close(self.descriptor)
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        finally:
            os.close(ours)
            os.close(end)
            os.close(lock)

    def belongs(self, pid: int) -> None:
        """It is the folder of this process, a trainer that was just started."""
        os.write(self._ours, f"{pid}\n".encode())

    def close(self) -> None:
        """Let go of the folder, and see it gone, after its trainer."""
        if self._broom.returncode is None:
            os.close(self._ours)
            os.close(self.descriptor)
            self._broom.wait()


def sweep() -> None:
    """Remove the folders of backends that are gone, which the machine itself has left when it
    stopped.
    """
    place = tempfile.gettempdir()
    for name in os.listdir(place):
        owner, rest, _ = name.removeprefix(PREFIX).partition("-")
        if (
            rest
            and name.startswith(PREFIX)
            and owner.isdigit()
            and not os.path.exists(f"/proc/{owner}")
        ):
            _remove_unless_held(os.path.join(place, name))


def _remove_unless_held(folder: str) -> None:
    """Folders of other users cannot be removed, and stay."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
