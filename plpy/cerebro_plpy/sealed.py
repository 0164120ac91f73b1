"""Jobs on weights that the session must not see: who was granted predictions of a model is given no more.

Their owner's function of the model begins the job and fills it, see `model_grants`; what the session may ask of it is
said here, and the trainer keeps to it.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.errors import InvalidParameter

KINDS = ("evaluate", "predict")


def request(asked: dict[str, Any], architecture: dict[str, Any]) -> dict[str, Any]:
    """The job that was asked for, on a whole state and on the architecture that it belongs to.

    With another architecture, such as one that puts the weights out as they are, a prediction would tell them.
    """
    if asked.get("job") not in KINDS or not isinstance(asked.get("program"), dict):
        raise InvalidParameter(f"received job {str(asked.get('job'))[:80]!r}; expected one of {', '.join(KINDS)}")
    return {
        "job": asked["job"],
        "datasets": asked.get("datasets"),
        "result_key": asked.get("result_key"),
        "program": {**asked["program"], "architecture": architecture},
        "state": {"source": "weights_of_chunks", "key": "", "seed": 0},
        "do": "begin",
        "sealed": True,
    }
