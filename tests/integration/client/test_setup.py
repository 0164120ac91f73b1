"""`cerebro-db setup` on servers with files of their own: what it does, undoes, and never breaks."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import called
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_server import HBA, OwnServer, started, switched

from cerebro_db.errors import FeatureNotSupported, ObjectNotReady
from cerebro_db.setup.database_steps import plan_database
from cerebro_db.setup.login_files import BACKUP, Probe, change_files, read_files
from cerebro_db.setup.login_step import plan_logins
from cerebro_db.setup.marked_block import BEGIN, HbaEntry, replace_block
from cerebro_db.setup.server_address import find_server
from cerebro_db.setup.server_lock import WAITING, lock_server
from cerebro_db.setup.target import Target

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other system users")
STEPS = ("packages", "files", "trainers", "database", "extension", "settings", "logins")
FLOWERS = """
CREATE TABLE flowers AS
SELECT i AS id, (i % 7)::real AS width, CASE WHEN i % 7 > 3 THEN 'a' ELSE 'b' END AS species
FROM generate_series(1, 80) i
"""
TRAIN = (
    "SELECT status FROM cerebro.train('flowers', 'species', models => '{linear}', configs => 1, "
    "epochs => 3, ensemble => 1, seed => 1)"
)


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with started() as own_server:
        yield own_server


@pytest.fixture
def stranger(server: OwnServer) -> Iterator[OwnServer]:
    """The server with a system user's login that worked before, and Debian's own files."""
    server.write(HBA)
    for path in server.hba.parent.glob(f"*{BACKUP}*"):
        path.unlink()
    yield server
    server.write(HBA)


def set_up(server: OwnServer, *arguments: str) -> dict[str, str]:
    """Set up the database `flowers`; return the state of each step that came before the check."""
    result = called("setup", "--database", "flowers", *server.options, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line for line in result.stdout.splitlines() if line[:4] in ("OK  ", "DONE", "TODO")]
    states: dict[str, str] = {}
    for line in lines:
        states.setdefault(line[6:].partition(":")[0], line[:4].strip())
    return states


def refusal(server: OwnServer, *arguments: str) -> str:
    result = called("setup", "--database", "flowers", *server.options, *arguments)
    assert result.returncode == 1
    return result.stderr


def session(server: OwnServer, role: str, *statements: str) -> list[tuple[object, ...]]:
    """What the last statement returns in a session that the server's system user opens."""
    user = server.address.user
    with server.address.log_in(user, "flowers", role) as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []


def content(server: OwnServer) -> dict[Path, bytes]:
    folders = (server.extension, server.python)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in (*files, server.hba, server.ident)}


def login_bytes(server: OwnServer) -> tuple[bytes, bytes]:
    return server.hba.read_bytes(), server.ident.read_bytes()


def backup_bytes(server: OwnServer) -> tuple[bytes, bytes]:
    backups = [path.with_name(path.name + BACKUP) for path in (server.hba, server.ident)]
    return backups[0].read_bytes(), backups[1].read_bytes()


def test_one_command_leads_to_a_role_that_trains_on_its_own_table(server: OwnServer) -> None:
    before = content(server)
    databases = server.query("SELECT datname FROM pg_database")
    planned = set_up(server, "--role", "ann", "--dry-run")
    assert content(server) == before
    assert server.query("SELECT datname FROM pg_database") == databases
    assert server.query("SELECT FROM pg_roles WHERE rolname = 'ann'") == []
    todo = {"files", "database", "extension", "settings", "role ann", "logins"}
    assert {step for step, state in planned.items() if state == "TODO"} == todo

    states = set_up(server, "--role", "ann")
    assert {step for step, state in states.items() if state == "DONE"} == todo
    assert session(server, "ann", FLOWERS, TRAIN) == [("completed",)]

    whole = content(server)
    again = called("setup", "--database", "flowers", *server.options, "--role", "ann")
    assert "Nothing was to do." in again.stdout
    assert "DONE" not in again.stdout
    assert content(server) == whole
    for path in (server.hba, server.ident):
        assert path.with_name(path.name + BACKUP).read_bytes() == before[path]
        assert path.stat().st_mode == path.with_name(path.name + BACKUP).stat().st_mode
        assert path.stat().st_uid == server.address.user.pw_uid


@pytest.mark.parametrize("role", ["Bob \"the' 50%", "all", "über"])
def test_roles_of_any_name_join_the_block_and_leave_it(stranger: OwnServer, role: str) -> None:
    set_up(stranger, "--role", "ann")
    first = login_bytes(stranger)
    set_up(stranger, "--role", role)
    assert session(stranger, role, "SELECT current_user::text") == [(role,)]
    assert session(stranger, "ann", "SELECT current_user::text") == [("ann",)]
    set_up(stranger, "--remove", "--role", role)
    assert login_bytes(stranger) == first
    assert not stranger.address.can_log_in(stranger.address.user, "flowers", role)
    privilege = (
        "SELECT has_schema_privilege(r.oid, 'cerebro', 'USAGE') FROM pg_roles r WHERE rolname = "
    )
    assert session(stranger, "ann", f"{privilege}'ann'") == [(True,)]
    with stranger.address.connect("flowers") as connection:
        query = privilege + "%(role)s"
        assert connection.exec_driver_sql(query, {"role": role}).scalar_one() is False


def test_a_role_named_all_is_not_everybody(stranger: OwnServer) -> None:
    set_up(stranger, "--role", "all")
    stranger.query("CREATE ROLE other LOGIN")
    assert not stranger.address.can_log_in(stranger.address.user, "flowers", "other")
    stranger.query("DROP ROLE other")


@NEEDS_ROOT
def test_who_could_log_in_still_can_and_nobody_else(stranger: OwnServer) -> None:
    """A system user of the role's name logs in as before; others do not become that role."""
    stranger.query("CREATE ROLE daemon LOGIN")
    daemon, other = pwd.getpwnam("daemon"), pwd.getpwnam("nobody")
    try:
        set_up(stranger, "--role", "daemon")
        assert stranger.address.can_log_in(daemon, "flowers", "daemon")
        assert stranger.address.can_log_in(daemon, "postgres", "daemon")
        assert not stranger.address.can_log_in(other, "flowers", "daemon")
        assert not stranger.address.can_log_in(stranger.address.user, "postgres", "daemon")
    finally:
        stranger.query("DROP OWNED BY daemon CASCADE", "flowers")
        stranger.query("DROP ROLE daemon")


LINES = st.lists(
    st.tuples(
        st.sampled_from(["all", "other", "postgres,other", "sameuser", "samerole", "nowhere"]),
        st.sampled_from(["all", "daemon", "nobody", "+staff", "daemon,nobody"]),
        st.sampled_from(["peer", "peer map=theirs", "trust", "reject", "scram-sha-256"]),
    ),
    max_size=4,
)


@NEEDS_ROOT
@given(LINES, st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_logins_after_are_those_before_and_one_more(
    three_roles: OwnServer, lines: list[tuple[str, str, str]], is_own_map: bool
) -> None:
    """Whatever the rules are: either one system user may become one role of one database, or
    nothing changes.
    """
    text = "".join(f"local {' '.join(line)}\n" for line in lines)
    user = three_roles.address.user.pw_name
    # Lines that the documentation shows for a setup by hand.
    own = f"cerebro {user} nobody\ncerebro /^(.*)$ \\1\n" if is_own_map else ""
    three_roles.write(f"local all {{user}} peer\n{text}", f"theirs {user} {user}\n{own}")
    before = logins(three_roles)
    target = Target(address=three_roles.address, database="other", roles=("daemon",))
    worker = (user, "other", "daemon")
    try:
        step = plan_logins(target)
        if step.apply is not None:
            step.apply()
    except ObjectNotReady:
        assert worker not in before
        assert "scram-sha-256" in text or "reject" in text
        assert BEGIN not in three_roles.hba.read_text() + three_roles.ident.read_text()
        assert logins(three_roles) == before
        return
    assert bool(step.commands) is (worker not in before)
    assert plan_logins(target).commands == ()
    after = logins(three_roles)
    assert before <= after
    if "theirs" not in text:  # a line in a map counts wherever the administrator names that map
        assert after - before <= {worker}
    assert worker in after


def logins(server: OwnServer) -> set[tuple[str, str, str]]:
    """Who can log in to which database as which role."""
    names = [server.address.user.pw_name, "daemon", "nobody"]
    return {
        (peer, database, role)
        for peer in names
        for database in ("postgres", "other")
        for role in names
        if server.address.can_log_in(pwd.getpwnam(peer), database, role)
    }


@pytest.fixture
def three_roles(stranger: OwnServer) -> Iterator[OwnServer]:
    """Roles of system users, one of them a member of another, and a database."""
    for statement in (
        "CREATE ROLE staff",
        "CREATE ROLE daemon LOGIN IN ROLE staff",
        "CREATE ROLE nobody LOGIN",
        "CREATE DATABASE other",
    ):
        stranger.query(statement)
    yield stranger
    stranger.write(HBA)
    for statement in ("DROP DATABASE other WITH (FORCE)", "DROP ROLE daemon, nobody, staff"):
        stranger.query(statement)


def change(server: OwnServer, make_hba: Callable[[str], str], *probes: Probe) -> None:
    with server.address.connect() as connection:
        files = read_files(connection)
    texts = {files.hba.path: make_hba(files.hba.text)}
    change_files(server.address, files, texts, probes, "postgres")


@pytest.mark.parametrize(
    ("first_line", "reason"),
    [
        ("local all all reject\n", "cannot log in"),
        ("local all all peer map=nowhere\n", "cannot log in"),
        ("local all all no-such-method\n", "has an error in line 1"),
    ],
)
def test_lines_that_lock_out_the_superuser_are_taken_back(
    stranger: OwnServer, first_line: str, reason: str
) -> None:
    before = stranger.hba.read_bytes()
    with pytest.raises(ObjectNotReady, match=reason):
        change(stranger, lambda text: first_line + text)
    assert stranger.hba.read_bytes() == before
    assert stranger.query("SELECT 1") == [(1,)]


@NEEDS_ROOT
def test_lines_that_lock_out_somebody_else_are_taken_back(stranger: OwnServer) -> None:
    stranger.query("CREATE ROLE daemon LOGIN")
    daemon = pwd.getpwnam("daemon")
    before = stranger.hba.read_bytes()
    try:
        with pytest.raises(ObjectNotReady, match="daemon cannot log in as daemon"):
            change(stranger, lambda text: "local all daemon reject\n" + text)
        assert stranger.hba.read_bytes() == before
        assert stranger.address.can_log_in(daemon, "postgres", "daemon")
    finally:
        stranger.query("DROP ROLE daemon")


def test_lines_that_do_not_let_workers_in_are_taken_back(stranger: OwnServer) -> None:
    stranger.query("CREATE ROLE other LOGIN")
    before = stranger.hba.read_bytes()
    probe = Probe(stranger.address.user.pw_name, "postgres", "other")
    try:
        with pytest.raises(ObjectNotReady, match="cannot log in as other"):
            change(stranger, lambda text: replace_block(text, [HbaEntry("x", "other")]), probe)
        assert stranger.hba.read_bytes() == before
    finally:
        stranger.query("DROP ROLE other")


@pytest.mark.parametrize("file", ["hba", "ident"])
def test_an_error_of_a_stranger_is_shown_and_left_alone(stranger: OwnServer, file: str) -> None:
    path: Path = getattr(stranger, file)
    path.write_text(path.read_text() + "local all\n")
    before = login_bytes(stranger)
    message = refusal(stranger, "--role", "ann")
    assert str(path) in message
    assert "error in line" in message or "not loaded" in message
    assert login_bytes(stranger) == before


def test_changes_that_were_never_loaded_stay_unloaded(stranger: OwnServer) -> None:
    """Loading ours would load them, too, and they may lock somebody out."""
    stranger.hba.write_text("local all all reject\n" + stranger.hba.read_text())
    before = login_bytes(stranger)
    assert "not loaded yet" in refusal(stranger, "--role", "ann")
    assert login_bytes(stranger) == before
    assert stranger.query("SELECT 1") == [(1,)]


def test_a_damaged_block_is_left_alone(stranger: OwnServer) -> None:
    stranger.write(f"{BEGIN}\n{HBA}")
    before = login_bytes(stranger)
    assert "damaged" in refusal(stranger, "--role", "ann")
    assert login_bytes(stranger) == before


def test_files_of_other_programs_are_printed_not_edited(stranger: OwnServer) -> None:
    stranger.write(f"# Do not edit: it will be overwritten by Patroni!\n{HBA}")
    before = login_bytes(stranger)
    message = refusal(stranger, "--role", "ann")
    assert "Patroni" in message
    assert 'local  "flowers"  "ann"  peer  map=cerebro_setup' in message
    assert login_bytes(stranger) == before


@NEEDS_ROOT
def test_root_follows_no_link_of_the_servers_user(stranger: OwnServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    for suffix in (".new", BACKUP, f"{BACKUP}.new"):
        stranger.hba.with_name(stranger.hba.name + suffix).symlink_to(secret)
    set_up(stranger, "--role", "ann")
    assert secret.read_text() == "kept"
    assert BEGIN in stranger.hba.read_text()
    assert stranger.hba.stat().st_uid == stranger.address.user.pw_uid


def test_links_are_printed_not_edited(stranger: OwnServer) -> None:
    target = stranger.hba.with_name("elsewhere.conf")
    target.write_bytes(stranger.hba.read_bytes())
    stranger.hba.unlink()
    stranger.hba.symlink_to(target)
    stranger.reload()
    try:
        assert "is a link" in refusal(stranger, "--role", "ann")
        assert BEGIN not in target.read_text()
    finally:
        stranger.hba.unlink()
        target.unlink()


def test_a_map_of_the_administrator_gets_a_line(stranger: OwnServer) -> None:
    """The file of rules stays: the map decides who logs in."""
    user = stranger.address.user.pw_name
    stranger.write("local all all peer map=theirs\n", f"theirs {user} {user}\n")
    before = stranger.hba.read_bytes()
    set_up(stranger, "--role", "ann")
    assert stranger.hba.read_bytes() == before
    assert f'"theirs"  "{user}"  "ann"\n' in stranger.ident.read_text()
    assert session(stranger, "ann", "SELECT 1") == [(1,)]


def test_passwords_over_the_socket_are_not_replaced_without_a_word(stranger: OwnServer) -> None:
    stranger.write("local all {user} peer\nlocal all all scram-sha-256\n")
    before = login_bytes(stranger)
    message = refusal(stranger, "--role", "ann")
    assert "line 2: scram-sha-256" in message
    assert login_bytes(stranger) == before
    set_up(stranger, "--role", "ann", "--peer")
    assert session(stranger, "ann", "SELECT 1") == [(1,)]


def test_workers_that_come_over_the_network_need_no_line(stranger: OwnServer) -> None:
    stranger.write("local all {user} peer\nlocal all all scram-sha-256\n")
    set_up(stranger)
    setting = "SELECT cerebro.set('worker_conninfo', {})"
    stranger.query(setting.format("'host=localhost port=5432'"), "flowers")
    before = login_bytes(stranger)
    target = Target(address=stranger.address, database="flowers", roles=("ann",))
    try:
        assert plan_logins(target).commands == ()
        assert login_bytes(stranger) == before
    finally:
        stranger.query(setting.format("NULL"), "flowers")


def test_a_login_that_fails_for_another_reason_is_shown(stranger: OwnServer) -> None:
    stranger.write("local all {user} peer\nlocal all all trust\n")
    stranger.query("CREATE ROLE busy LOGIN CONNECTION LIMIT 0")
    before = login_bytes(stranger)
    try:
        assert "too many connections" in refusal(stranger, "--role", "busy")
        assert login_bytes(stranger) == before
    finally:
        stranger.query("DROP OWNED BY busy CASCADE", "flowers")
        stranger.query("DROP ROLE busy")


def test_trust_needs_no_line(stranger: OwnServer) -> None:
    stranger.write("local all all trust\n")
    before = login_bytes(stranger)
    assert set_up(stranger, "--role", "ann")["logins"] == "OK"
    assert login_bytes(stranger) == before


@NEEDS_ROOT
def test_the_servers_system_user_can_do_it_where_files_are_current(stranger: OwnServer) -> None:
    set_up(stranger)
    command = [sys.executable, "-I", "-m", "cerebro_db", "setup", "--database", "flowers"]
    result = subprocess.run(
        [*command, *stranger.options, "--role", "ann"],
        cwd="/", capture_output=True, text=True, **switched(stranger.address.user),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert BEGIN in stranger.hba.read_text()
    result = subprocess.run(
        [*command, *stranger.options], cwd="/", capture_output=True, text=True,
        **switched(pwd.getpwnam("nobody")),
    )  # fmt: skip
    assert result.returncode == 1
    assert "Run the command as root, or as" in result.stderr


def test_a_second_setup_waits_for_the_first(stranger: OwnServer) -> None:
    set_up(stranger)
    before = login_bytes(stranger)
    command = [sys.executable, "-I", "-m", "cerebro_db", "setup", "--database", "flowers"]
    with lock_server(stranger.address, pytest.fail):
        planned = set_up(stranger, "--role", "ann", "--dry-run")
        assert planned["logins"] == "TODO", "what changes nothing waits for nobody"
        second = subprocess.Popen(
            [*command, *stranger.options, "--role", "ann"],
            cwd="/", stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert second.stdout is not None
        assert second.stdout.readline().rstrip("\n") == WAITING
        assert login_bytes(stranger) == before
    second.communicate()
    assert second.returncode == 0
    assert session(stranger, "ann", "SELECT current_user::text") == [("ann",)]


def test_removal_leaves_the_bytes_that_were_there(stranger: OwnServer) -> None:
    before = login_bytes(stranger)
    set_up(stranger, "--role", "ann", "--search-path")
    session(stranger, "ann", "CREATE TABLE mine AS SELECT 1 AS a")
    states = set_up(stranger, "--remove", "--dry-run")
    assert states["role ann"] == states["logins"] == "TODO"
    set_up(stranger, "--role", "bob")
    assert backup_bytes(stranger) == before
    set_up(stranger, "--remove")
    assert login_bytes(stranger) == backup_bytes(stranger) == before
    version = "SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'"
    assert len(stranger.query(version, "flowers")) == 1
    assert (
        "Nothing was to do."
        in called("setup", "--database", "flowers", *stranger.options, "--remove").stdout
    )
    assert set_up(stranger, "--role", "ann")["role ann"] == "DONE"
    set_up(stranger, "--remove", "--drop-extension")
    assert stranger.query(version, "flowers") == []
    assert stranger.query("SELECT FROM pg_namespace WHERE nspname = 'madlib'", "flowers") == []
    assert stranger.query("SELECT a FROM ann.mine", "flowers") == [(1,)]
    stranger.query("DROP TABLE ann.mine", "flowers")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--role", "cerebro"], "must not be named cerebro"),
        (["--extras", "tensorflw"], "no extra 'tensorflw'"),
        (["--drop-extension"], "belongs to --remove"),
        (["--role", "/^a"], "cannot have the name"),
        (["--port", "1"], "no server listens"),
        (["--remove", "--role", "nobody"], "there is no role nobody"),
    ],
)
def test_wrong_calls_are_refused(stranger: OwnServer, arguments: list[str], message: str) -> None:
    before = login_bytes(stranger)
    roles = "SELECT rolname FROM pg_roles ORDER BY 1"
    names = stranger.query(roles)
    assert message in refusal(stranger, *arguments)
    assert login_bytes(stranger) == before
    assert stranger.query(roles) == names


def test_an_extension_that_cannot_revoke_is_updated_first(stranger: OwnServer) -> None:
    set_up(stranger, "--role", "ann")
    stranger.query("ALTER FUNCTION cerebro.revoke_usage RENAME TO older", "flowers")
    before = login_bytes(stranger)
    try:
        assert "older than this command" in refusal(stranger, "--remove", "--dry-run")
        assert login_bytes(stranger) == before
    finally:
        stranger.query("ALTER FUNCTION cerebro.older RENAME TO revoke_usage", "flowers")


def test_a_database_is_named(stranger: OwnServer) -> None:
    assert "no database was named" in called("setup", *stranger.options).stderr


def test_a_socket_that_a_crash_left_is_no_server(stranger: OwnServer, tmp_path: Path) -> None:
    (tmp_path / ".s.PGSQL.5432").touch()
    with pytest.raises(ObjectNotReady):
        find_server(tmp_path, None)
    assert find_server(stranger.root, None) == stranger.address


def test_a_server_of_another_encoding_gets_a_database_of_utf8() -> None:
    with started(locale="C", encoding="SQL_ASCII") as other:
        step = plan_database(Target(address=other.address, database="flowers", roles=()))
        assert step.apply is not None
        step.apply()
        encoding = "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = "
        assert other.query(f"{encoding}'flowers'") == [("UTF8",)]
        with pytest.raises(FeatureNotSupported, match="encoding SQL_ASCII; expected UTF8"):
            plan_database(Target(address=other.address, database="postgres", roles=()))
