"""Setup and removal as a whole: the steps in their order, and a check of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from cerebro_db.check.finding import Finding
from cerebro_db.check.steps import check_server
from cerebro_db.errors import InvalidParameter, ObjectNotReady
from cerebro_db.setup import database_steps, machine_steps, removal_steps
from cerebro_db.setup.login_step import plan_login_removal, plan_logins
from cerebro_db.setup.marked_block import check_name
from cerebro_db.setup.server_address import (
    ServerAddress,
    find_server,
    find_stopped_cluster,
    start_cluster,
)
from cerebro_db.setup.server_lock import lock_server
from cerebro_db.setup.step import Plan, Step, run_steps
from cerebro_db.setup.system_user import act_as
from cerebro_db.setup.target import Target, check_target, database_exists

Report = Callable[[str], None]


def open_server(
    folder: Path | None, port: int | None, report: Report, *, dry_run: bool
) -> ServerAddress | None:
    """Return the server; start Debian's cluster if it is stopped.

    Returns:
        None in a dry run if no server runs.
    """
    try:
        return find_server(folder, port)
    except ObjectNotReady:
        cluster = find_stopped_cluster()
        if cluster is None or folder is not None:
            raise
    step = Step(
        name="server",
        summary="starts, because the other steps need it",
        commands=(f"pg_ctlcluster {' '.join(cluster)} start",),
        apply=partial(start_cluster, *cluster),
    )
    run_steps([lambda: step], report, dry_run=dry_run)
    return None if dry_run else find_server(folder, port)


def set_up(target: Target, report: Report, *, dry_run: bool) -> int:
    """Carry out or print the steps; return how many had something to do."""
    for name in (target.database, *target.roles):
        check_name(name)
    with target.address.connect() as connection:
        check_target(connection, target)
    plans: list[Plan] = [
        partial(machine_steps.plan_packages, target),
        partial(machine_steps.plan_files, target),
        partial(machine_steps.plan_trainers, target),
        partial(database_steps.plan_database, target),
        partial(database_steps.plan_extension, target),
        partial(database_steps.plan_settings, target),
        *(partial(database_steps.plan_role, target, role) for role in target.roles),
        partial(plan_logins, target),
    ]
    if target.has_search_path:
        plans.append(partial(database_steps.plan_search_path, target))
    with _exclude_others(target, report, dry_run=dry_run):
        return run_steps(plans, report, dry_run=dry_run)


def remove(target: Target, report: Report, *, dry_run: bool, drop_extension: bool) -> int:
    """Undo the setup, or print the steps; return how many had something to do.

    Args:
        target: without roles, all that may use the extension in the database.
        drop_extension: whether the extension goes, with all runs and models, and so for all roles.
    """
    with _exclude_others(target, report, dry_run=dry_run):
        plans = _plan_removal(target, drop_extension=drop_extension)
        return run_steps(plans, report, dry_run=dry_run)


def _exclude_others(
    target: Target, report: Report, *, dry_run: bool
) -> AbstractContextManager[None]:
    """Return the lock of the server; none for a dry run, which changes nothing."""
    if dry_run:
        return nullcontext()
    return lock_server(target.address, report)


def _plan_removal(target: Target, *, drop_extension: bool) -> list[Plan]:
    with target.address.connect() as connection:
        if not database_exists(connection, target.database):
            raise InvalidParameter(
                f"there is no database {target.database}", hint="Name another with --database."
            )
    is_whole = drop_extension or not target.roles
    if is_whole:
        target = replace(target, roles=removal_steps.list_grantees(target))
    else:
        removal_steps.check_roles(target)
    plans: list[Plan] = []
    if not drop_extension:
        revoke = removal_steps.plan_revocation
        plans += [partial(revoke, target, role) for role in target.roles]
    plans.append(partial(plan_login_removal, target, whole_database=is_whole))
    if drop_extension:  # the rights of roles go with it
        plans.append(partial(removal_steps.plan_path_removal, target))
        plans.append(partial(removal_steps.plan_drop, target))
    return plans


def check(target: Target) -> Iterable[Finding]:
    """Yield the findings of `cerebro-db check`, as the first role over the server's own socket."""
    user = target.address.user
    role = target.roles[0] if target.roles else user.pw_name
    with act_as(user):
        yield from check_server(target.address.url(target.database, role))
