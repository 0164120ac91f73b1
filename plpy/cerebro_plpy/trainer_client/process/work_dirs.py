"""The private folders that trainers work in, which are removed with them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress

PREFIX = "cerebro_trainer-"
# Only the backend has the other end of the first pipe; the trainer has that of the second, too. A
# read ends when the processes with the other end have ended. The signal at the end of a backend has
# no effect on a stopped trainer until it continues.
CLEANER = (
    'read -r pid; read -r _; kill -s CONT "$pid"; read -r _ <"/proc/self/fd/$1"; '
    'exec rm -rf -- "$0"'
)


class WorkDir:
    """A folder for a trainer of this backend, which is removed after both processes have ended.

    The kernel kills a trainer when its session ends, so that neither process can remove the folder.
    A separate process waits for their end, and lets a stopped trainer continue so that it can end.
    That process holds a lock on the folder, because the number of the backend is not enough: other
    users of the temporary files may be in another process namespace.

    Attributes:
        descriptor: an end of a pipe, to be passed to the trainer.
    """

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        backend_end, self._backend_pipe = os.pipe()
        trainer_end, self.descriptor = os.pipe()
        try:
            self._cleaner = subprocess.Popen(
                ["/bin/sh", "-c", CLEANER, self.path, str(trainer_end)],
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                start_new_session=True,
                pass_fds=[trainer_end, lock],
                stdin=backend_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            os.close(self._backend_pipe)
            os.close(self.descriptor)
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        finally:
            os.close(backend_end)
            os.close(trainer_end)
            os.close(lock)

    def assign(self, pid: int) -> None:
        """Assign the folder to a trainer that was just started."""
        os.write(self._backend_pipe, f"{pid}\n".encode())

    def close(self) -> None:
        """Let the folder be removed, and wait for it, after its trainer has ended."""
        if self._cleaner.returncode is None:
            os.close(self._backend_pipe)
            os.close(self.descriptor)
            self._cleaner.wait()


def remove_stale() -> None:
    """Remove the folders of backends that have ended, which remain after a crash of the machine."""
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        owner, suffix, _ = name.removeprefix(PREFIX).partition("-")
        is_work_dir = name.startswith(PREFIX) and owner.isdigit() and suffix != ""
        if is_work_dir and not os.path.exists(f"/proc/{owner}"):
            _remove_unless_locked(os.path.join(parent, name))


def _remove_unless_locked(folder: str) -> None:
    """Remove a folder, unless it is in use or belongs to another user."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
