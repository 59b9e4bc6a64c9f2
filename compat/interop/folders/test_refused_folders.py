"""Our controller refuses invalid folders: it names the file, says what to do, and exits with 1."""

from __future__ import annotations

import javaproperties
import pytest

from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.nodes import OurController, run_command
from compat.harness.processes import Workspace


@pytest.fixture
def controller(workspace: Workspace) -> OurController:
    """A controller with a formatted folder that isn't started."""
    controller = OurController(workspace, CONTROLLER_ID)
    controller.format(random_cluster_id(), "--standalone")
    return controller


def _refusal(controller: OurController, *overrides: str) -> str:
    """Start the server, which must refuse to start, and return its message."""
    options = [word for override in overrides for word in ("--override", override)]
    refused = run_command("server", controller.properties_file, *options, timeout_s=30)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr
    return refused.stderr


def test_a_folder_that_is_not_formatted(workspace: Workspace) -> None:
    said = _refusal(OurController(workspace, CONTROLLER_ID))
    assert "meta.properties" in said and "storage format" in said


def test_a_folder_of_another_node(controller: OurController) -> None:
    said = _refusal(controller, f"node.id={CONTROLLER_ID + 1}")
    assert str(controller.data_folder / "meta.properties") in said
    assert str(CONTROLLER_ID) in said and str(CONTROLLER_ID + 1) in said


def test_folders_of_two_clusters(controller: OurController) -> None:
    other_folder = controller.data_folder.with_name("other")
    with controller.properties_file.open("rb") as file:
        properties = dict(javaproperties.load(file))
    controller.write_properties({**properties, "log.dirs": str(other_folder)})
    controller.format(random_cluster_id(), "--standalone")
    both = f"{controller.data_folder},{other_folder}"
    controller.write_properties({**properties, "log.dirs": both, "metadata.log.dir": str(other_folder)})
    said = _refusal(controller)
    assert "meta.properties" in said and "cluster.id" in said


def test_a_folder_that_a_running_controller_holds(controller: OurController) -> None:
    controller.start()
    controller.wait_until_ready()
    said = _refusal(controller, f"listeners=CONTROLLER://127.0.0.1:{controller.port + 1}")
    assert str(controller.data_folder / ".lock") in said


def test_a_folder_whose_meta_properties_is_damaged(controller: OurController) -> None:
    meta = controller.data_folder / "meta.properties"
    meta.write_text("version=1\nnode.id=one hundred\n")
    assert str(meta) in _refusal(controller)


def test_formatting_a_formatted_folder(workspace: Workspace) -> None:
    controller = OurController(workspace, CONTROLLER_ID)
    cluster_id = random_cluster_id()
    controller.format(cluster_id, "--standalone")
    for other_id, remedy in ((cluster_id, "--ignore-formatted"), (random_cluster_id(), "another cluster")):
        refused = run_command(
            "storage", "format", "-t", other_id, "-c", controller.properties_file, "--standalone"
        )
        assert refused.returncode == 1
        assert str(controller.data_folder) in refused.stderr and remedy in refused.stderr


def test_a_properties_file_with_an_invalid_value_names_the_key(controller: OurController) -> None:
    said = _refusal(controller, "broker.session.timeout.ms=soon")
    assert "broker.session.timeout.ms" in said and "soon" in said


def test_a_key_that_kafka_knows_and_we_do_not_is_a_warning(controller: OurController) -> None:
    with controller.properties_file.open("a") as file:
        file.write("\nlog.cleaner.threads=2\n")
    controller.start()
    controller.wait_until_ready()
    controller.running_process.wait_for_log("log.cleaner.threads", 10)
    controller.stop()
