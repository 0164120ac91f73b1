"""`cerebro-db setup`: an own server, from its files to a role that trains."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.commands.exits import Exit
from cerebro_db.errors import InvalidParameter

if TYPE_CHECKING:
    from cerebro_db.setup.target import Target

DATABASE = "The database, which is made if it is missing."
ROLE = "A role that may train; made, with a schema of its name, if it is missing. May be repeated."
EXTRAS = "Libraries of the trainers, with commas: tensorflow, cuda, jax, torch, boosting, automl."
HOST = "Folder of the server's socket; else /var/run/postgresql."
PORT = "Port in the name of the server's socket; needed if several servers listen there."
PATH = "Add madlib to the database's search_path: MADlib's functions then need no prefix."
PEER = "Let roles that log in over the socket by password do so as system users instead."
DRY_RUN = "Print what would be done, and do nothing."
REMOVE = "Undo it: the rights of --role, or of all roles of the database, and the lines for logins."
REMAINDER = (
    "Databases, roles, their tables, files and packages stay. docs/reference/operations.md, "
    "`Removing it`, has the commands."
)
DROP = "With --remove: drop the extension, with all runs and models of the database."


def setup(
    database: Annotated[str, typer.Option(help=DATABASE)] = "",
    role: Annotated[list[str] | None, typer.Option(help=ROLE)] = None,
    extras: Annotated[str, typer.Option(help=EXTRAS)] = "tensorflow,boosting",
    search_path: Annotated[bool, typer.Option("--search-path", help=PATH)] = False,
    peer: Annotated[bool, typer.Option("--peer", help=PEER)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    remove: Annotated[bool, typer.Option("--remove", help=REMOVE)] = False,
    drop_extension: Annotated[bool, typer.Option("--drop-extension", help=DROP)] = False,
    host: Annotated[Path | None, typer.Option(help=HOST, file_okay=False, envvar="PGHOST")] = None,
    port: Annotated[int | None, typer.Option(help=PORT, min=1, max=65535, envvar="PGPORT")] = None,
) -> None:
    """Set up a server of this machine, as root or as its system user; repeat it at will."""
    from cerebro_db.setup import procedure
    from cerebro_db.setup.target import Target

    if not database:
        raise InvalidParameter(
            "no database was named", hint="Name one, such as --database flowers --role ann."
        )
    if drop_extension and not remove:
        raise InvalidParameter(
            "--drop-extension belongs to --remove",
            hint=f"cerebro-db setup --remove --database {shlex.quote(database)} --drop-extension",
        )
    os.umask(0o022)  # the server's system user must be able to read what root writes
    address = procedure.open_server(host, port, typer.echo, dry_run=dry_run)
    if address is None:
        typer.echo("The other steps are printed once the server runs.")
        return
    target = Target(
        address=address,
        database=database,
        roles=tuple(dict.fromkeys(role or ())),
        extras=tuple(filter(None, extras.split(","))),
        has_search_path=search_path,
        has_peer_logins=peer,
    )
    if remove:
        count = procedure.remove(target, typer.echo, dry_run=dry_run, drop_extension=drop_extension)
    else:
        count = procedure.set_up(target, typer.echo, dry_run=dry_run)
    if count == 0:
        typer.echo("Nothing was to do.")
    if remove:
        typer.echo(REMAINDER)
    elif not dry_run:
        _check(target)
        _print_session(target)


def _check(target: Target) -> None:
    from cerebro_db.check.steps import print_findings
    from cerebro_db.setup import procedure

    findings = list(print_findings(procedure.check(target)))
    if any(finding.state == "FAIL" for finding in findings):
        raise typer.Exit(Exit.ERROR)


def _print_session(target: Target) -> None:
    """Print the command that opens a session of the first role."""
    for role in target.roles[:1]:
        address = target.address
        switch = ["sudo", "-u", address.user.pw_name]
        if shutil.which("sudo") is None:  # a bare Debian has only root's own way
            switch = ["runuser", "-u", address.user.pw_name, "--"]
        words = [*switch, "psql", "--host", str(address.folder)]
        words += ["--port", str(address.port), "--username", role, target.database]
        typer.echo(f"Open a session of {role} with: {shlex.join(words)}")
