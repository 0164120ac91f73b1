"""The image of docker/postgres.Dockerfile: built, started, and the README's tour in it, by psql
over the network.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import containers
import docker
import pytest
from containers import ran
from testcontainers.core.container import DockerContainer
from testcontainers.core.image import DockerImage

ROOT = Path(__file__).parents[3]
TOUR = "/usr/local/share/cerebro_db/tour.sql"
PASSWORD = 'it\'s "quoted"'
START_SECONDS = 120
LARGEST = 1_600_000_000
"""Bytes that the image has at most, with its base."""
OTHER = "host=localhost user=postgres dbname=postgres"
CONVOLUTION = [
    """SELECT load_keras_model('convolutions',
        '{"class_name": "Sequential", "config": {"name": "small", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Reshape", "config": {"target_shape": [2, 2, 1]}},
        {"class_name": "Conv2D", "config": {"filters": 8, "kernel_size": [2, 2],
            "activation": "relu"}},
        {"class_name": "Flatten", "config": {}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}}')""",
    """SELECT generate_model_configs('convolutions', 'convolution_configs', ARRAY[1],
        $$ {'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.1]}],
            'loss': ['categorical_crossentropy'],
            'metrics': [['accuracy']]} $$, $$ {'batch_size': [16]} $$)""",
    "SELECT madlib_fit_multiple_model('iris_packed', 'convolution', 'convolution_configs', 2)",
    "SELECT madlib_predict('convolution', 'iris', 'id', 'attributes', 'convolved', 'response', "
    "mst_key => 1)",
    "SELECT count(*) FROM convolved",
]
# Another one after a crash of the server.
CHECKPOINTER = [
    "psql",
    "-Atc",
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
]


pytestmark = containers.needed


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """The image, which stays for the next run: its layers cost minutes."""
    with DockerImage(
        ROOT, tag="cerebro_db:test", clean_up=False, dockerfile_path="docker/postgres.Dockerfile"
    ) as built:
        yield str(built)


@pytest.fixture(scope="module")
def server(image: str) -> Iterator[DockerContainer]:
    with DockerContainer(image).with_env("CEREBRO_PASSWORD", PASSWORD) as container:
        awaited(container)
        yield container


@pytest.fixture(scope="module")
def tour(server: DockerContainer) -> tuple[int, str]:
    """The exit status of the tour and what it printed; its tables stay."""
    return ran(server, ["psql", "--host=localhost", "--file", TOUR], PGPASSWORD=PASSWORD)


def awaited(container: DockerContainer) -> None:
    """Wait until the server can be reached as its health check does."""
    deadline = time.monotonic() + START_SECONDS
    while container.exec(["pg_isready", "--quiet", "--host=localhost"])[0]:
        assert time.monotonic() < deadline, container.get_logs()
        time.sleep(0.5)


def test_the_tour_of_the_readme(tour: tuple[int, str]) -> None:
    assert tour == (0, (ROOT / "tests/sql/tour.out").read_text())


@pytest.mark.usefixtures("tour")
def test_other_layers_are_trained_and_predict(server: DockerContainer) -> None:
    """What was cut from TensorFlow is not missed."""
    statements = [part for statement in CONVOLUTION for part in ("-c", statement)]
    status, printed = ran(server, ["psql", "-v", "ON_ERROR_STOP=1", "-At", *statements])
    assert (status, printed.splitlines()[-1:]) == (0, ["150"])


def test_the_image_is_not_larger_than_promised(image: str) -> None:
    assert docker.from_env().images.get(image).attrs["Size"] <= LARGEST


def test_queries_do_without_a_compiler(server: DockerContainer) -> None:
    """It is left out: no plan must fail for it, however costly it is said to be."""
    costly = ["-c", "SET jit_above_cost = 0", "-c", "SELECT sum(n) FROM generate_series(1, 1000) n"]
    assert ran(server, ["psql", "-At", "-c", "SELECT pg_jit_available()", *costly]) == (
        0,
        "f\nSET\n500500\n",
    )


def test_the_check_finds_nothing(server: DockerContainer) -> None:
    status, printed = ran(server, ["cerebro-db", "check"], PGUSER="postgres")
    assert status == 0 and "FAIL" not in printed, printed
    assert "the server is not process 1" in printed


def test_the_check_takes_the_variables_of_libpq(server: DockerContainer) -> None:
    """There is no other server: the image says which one, and whoever sets them says another."""
    status, printed = ran(server, ["cerebro-db", "check"])
    assert status == 0 and "database cerebro, as cerebro" in printed, printed
    status, printed = ran(server, ["cerebro-db", "check"], PGDATABASE="postgres", PGUSER="postgres")
    assert status == 1 and "database postgres, as postgres" in printed, printed


def test_nobody_comes_in_without_a_password(server: DockerContainer) -> None:
    for who in ("host=localhost", OTHER):
        assert ran(server, ["psql", "--no-password", "--command", "SELECT 1", who])[0] == 2
    assert (
        ran(server, ["psql", "--command", "SELECT 1", "host=localhost"], PGPASSWORD="wrong")[0] == 2
    )


def test_the_role_is_an_ordinary_one(server: DockerContainer) -> None:
    query = (
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication FROM pg_roles WHERE "
        "rolname = current_user"
    )
    assert ran(server, ["psql", "-Atc", query]) == (0, "f\n")


def test_data_and_passwords_outlast_the_container(server: DockerContainer) -> None:
    ran(server, ["psql", "-c", "CREATE TABLE lasting AS SELECT 1 AS one"])
    server.get_wrapped_container().restart()
    awaited(server)
    query = ["psql", "--host=localhost", "-Atc", "SELECT one FROM lasting"]
    assert ran(server, query, PGPASSWORD=PASSWORD) == (0, "1\n")


def test_a_killed_trainer_does_not_disturb_the_server(server: DockerContainer) -> None:
    """Nobody looks after it before its session ends: then it is a dead child of process 1."""
    began = ["psql", "-Atc", "SELECT pg_postmaster_start_time()"]
    before = ran(server, began), ran(server, CHECKPOINTER)
    kill = (
        "for p in /proc/[0-9]*; do grep -q cerebro_trainer $p/cmdline && kill -9 ${p#/proc/} && "
        "echo killed; done"
    )
    steps = ["-c", "SELECT cerebro.trainer_report('none')", "-c", f"\\! {kill}"]
    assert "killed" in ran(server, ["psql", "-At", *steps])[1]
    time.sleep(1)  # the server would take notice at once
    assert (ran(server, began), ran(server, CHECKPOINTER)) == before


def test_without_a_password_it_does_not_start(image: str) -> None:
    container = docker.from_env().containers.run(image, detach=True)
    try:
        assert container.wait(timeout=START_SECONDS)["StatusCode"] == 1
        assert b"CEREBRO_PASSWORD is not set" in container.logs()
    finally:
        container.remove(force=True)
