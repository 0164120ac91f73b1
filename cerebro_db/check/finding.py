"""Result of one step of `cerebro-db check`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of a step."""

    summary: str
    state: str = "OK"  # OK, WARN or FAIL
    remedy: str = ""  # advice for the user, unless the state is OK
    step: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the object that `check --json` prints."""
        return {
            "told": self.summary,
            "state": self.state,
            "remedy": self.remedy,
            "step": self.step,
        }
