"""The folder whose content trainers execute: refused where somebody else could put something there."""

from __future__ import annotations

import os
import pwd
import stat

from cerebro_plpy.errors import InvalidParameter


def private(path: str | None) -> str | None:
    """The folder of compiled code, which trainers write and execute."""
    if path is None:
        return None
    facts, problem = _facts(path)
    if facts and facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) == 0o700:
        return path
    user = pwd.getpwuid(os.geteuid()).pw_name
    raise InvalidParameter(
        f"compilation_cache is {path!r}; expected the absolute path of a folder of the system user {user} with mode"
        f" 0700: {problem}",
        hint=f"mkdir -m 0700 {path}, as {user}; or remove compilation_cache from cerebro.setting.",
    )


def _facts(path: str) -> tuple[os.stat_result | None, str]:
    """Of a folder by its absolute path what the system says, else why not; and that in words."""
    try:
        facts = os.lstat(path)
    except OSError as error:
        return None, str(error.strerror)
    except ValueError:
        return None, "it is no path"
    if not os.path.isabs(path) or not stat.S_ISDIR(facts.st_mode):
        return None, "it is no folder by its absolute path"
    return facts, f"it has owner {facts.st_uid} and mode {stat.S_IMODE(facts.st_mode):04o}"
