"""The callback TensorBoard, whose files a trainer writes as the server's user.

Only superusers may therefore use it. The backend checks that before the training, and the function
on a segment, which sees its caller, checks it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import isabs

from cerebro_plpy.configs.params.literals import invalid_value, read_boolean
from cerebro_plpy.records import dataclass

NAME = "TensorBoard"
KEYS = (
    "log_dir",
    "histogram_freq",
    "batch_size",
    "update_freq",
    "write_graph",
    "write_grad",
    "write_images",
)
WITHOUT_EFFECT = {
    "batch_size": None,
    "write_grad": False,
    "write_images": False,
    "update_freq": "epoch",
}
"""Keys of other versions and other loops, with the values that have no meaning."""


@dataclass(frozen=True)
class TensorBoard:
    """The arguments of the callback, named as in Keras."""

    log_dir: str
    histogram_freq: int = 0
    write_graph: bool = True
    ignored: tuple[str, ...] = ()  # keys without an effect here

    def folder(self, segment_id: int, run_id: int, mst_key: int) -> str:
        """Return the folder of a configuration on a segment, whose id follows log_dir.

        >>> TensorBoard("/tmp/logs/").folder(1, 7, 3)
        '/tmp/logs/1/run_7_mst_key_3'
        """
        return f"{self.log_dir}{segment_id}/run_{run_id}_mst_key_{mst_key}"

    def wants_histograms(self, epoch: int) -> bool:
        """Return True if histograms of weights are written after an epoch."""
        return self.histogram_freq > 0 and epoch % self.histogram_freq == 0


def make_tensorboard(arguments: Mapping[str, object]) -> TensorBoard:
    """Return the callback with these arguments.

    Raises:
        InvalidParameter: an argument is invalid.
    """
    log_dir = arguments.get("log_dir")
    write_graph = arguments.get("write_graph", True)
    frequency = arguments.get("histogram_freq", 0)
    if not isinstance(log_dir, str) or not isabs(log_dir) or "\0" in log_dir:
        raise invalid_value(
            "log_dir",
            log_dir,
            "the absolute path of a folder that the server's user may write to",
        )
    if isinstance(frequency, bool) or not isinstance(frequency, int) or frequency < 0:
        raise invalid_value(
            "histogram_freq", frequency, "a whole number of epochs, or 0 for no histograms"
        )
    ignored = tuple(
        key for key in WITHOUT_EFFECT if key in arguments and arguments[key] != WITHOUT_EFFECT[key]
    )
    return TensorBoard(log_dir, frequency, read_boolean("write_graph", write_graph), ignored)
