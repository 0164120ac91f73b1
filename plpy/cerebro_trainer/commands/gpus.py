"""The GPUs of this machine, as NVIDIA's own program lists them."""

from __future__ import annotations

import subprocess

from cerebro_trainer.errors import RequestError

COMMAND = ("nvidia-smi", "-L")
TIMEOUT_SECONDS = 60.0


def list_gpus() -> tuple[str, ...]:
    """Return a line for each GPU; no line if the driver is not installed."""
    try:
        process = subprocess.run(
            COMMAND,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
        )
    except FileNotFoundError:
        return ()
    except subprocess.TimeoutExpired as error:
        raise _driver_error(f"did not answer within {TIMEOUT_SECONDS:g} seconds") from error
    lines = [line.strip() for line in process.stdout.splitlines()]
    gpus = tuple(line for line in lines if line.startswith("GPU "))
    if process.returncode and not gpus:
        output = (process.stderr or process.stdout).strip()[:300]
        raise _driver_error(f"ended with exit status {process.returncode}: {output}")
    return gpus


def _driver_error(problem: str) -> RequestError:
    return RequestError(
        f"nvidia-smi {problem}", sqlstate="55000", hint="The driver of the GPUs may be at fault."
    )
