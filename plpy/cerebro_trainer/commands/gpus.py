"""Which GPUs the driver of this machine knows, as NVIDIA's own program lists them."""

from __future__ import annotations

import subprocess

from cerebro_trainer.errors import RequestError

LIST = ("nvidia-smi", "-L")
SECONDS = 60.0


def listed() -> tuple[str, ...]:
    """A line for each GPU; none where the driver is not installed."""
    try:
        done = subprocess.run(
            LIST, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS
        )
    except FileNotFoundError:
        return ()
    except subprocess.TimeoutExpired as error:
        raise _failed(f"did not answer within {SECONDS:g} seconds") from error
    lines = [line.strip() for line in done.stdout.splitlines()]
    found = tuple(line for line in lines if line.startswith("GPU "))
    if done.returncode and not found:
        raise _failed(
            f"ended with exit status {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()[:300]}"
        )
    return found


def _failed(how: str) -> RequestError:
    return RequestError(
        f"nvidia-smi {how}", sqlstate="55000", hint="The driver of the GPUs may be at fault."
    )
