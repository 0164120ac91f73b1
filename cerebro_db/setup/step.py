"""A step of the setup, and the way steps are carried out or printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cerebro_db.errors import ObjectNotReady


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step: what is there, or what has to be done."""

    name: str
    summary: str
    commands: tuple[str, ...] = ()  # what an administrator would type; empty if nothing is to do
    apply: Callable[[], None] | None = None  # None if this process cannot do it
    obstacle: str = ""  # why this process cannot do it


Plan = Callable[[], Step]
"""A function that looks at the server as it is now, and returns the step."""


def run_steps(plans: Iterable[Plan], report: Callable[[str], None], *, dry_run: bool) -> int:
    """Carry out the steps in order, or print them; return how many had something to do.

    Raises:
        ObjectNotReady: this process cannot carry out a step; the hint has the commands.
    """
    count = 0
    for plan in plans:
        step = plan()
        if not step.commands:
            report(f"OK    {step.name}: {step.summary}")
            continue
        count += 1
        if dry_run:
            report(f"TODO  {step.name}: {step.summary}")
            for command in step.commands:
                report(_indent(command))
        elif step.apply is None:
            raise ObjectNotReady(
                f"{step.name}: {step.obstacle}",
                hint="Do this, and repeat the command:\n" + "\n".join(map(_indent, step.commands)),
            )
        else:
            step.apply()
            report(f"DONE  {step.name}: {step.summary}")
    return count


def _indent(command: str) -> str:
    return "\n".join(f"      {line}" for line in command.splitlines())
