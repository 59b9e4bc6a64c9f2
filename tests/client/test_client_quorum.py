"""The leader is found and followed; a controller that can't be read is an error that says why."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from kraft_wire.client.errors import QuorumUnreachable, WrongServer
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import split_batches
from kraft_wire.wire.address import Address
from tests.support.controller_process import CLUSTER_ID, ControllerProcess, formatted
from tests.support.live_quorum import QUIET, Controllers, address_of, read, settings, three_controllers, write


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    with three_controllers(tmp_path) as running:
        running.write(range(5))
        yield running


def test_any_controller_leads_to_the_leader(controllers: Controllers) -> None:
    leaders = set()
    for address in controllers.addresses.values():
        with QuorumClient(settings(address)) as quorum:
            assert quorum.cluster_id() == CLUSTER_ID
            LiveLog(quorum).ends()
            leaders.add(quorum.answered_by)
    assert len(leaders) == 1


def test_a_reader_goes_on_with_the_next_leader(controllers: Controllers) -> None:
    with QuorumClient(settings(*controllers.addresses.values())) as quorum:
        log = LiveLog(quorum)
        before = log.ends()
        data = read(log, 0, before.high_watermark)
        controllers.kill(controllers.leader())
        controllers.write(range(5, 10))
        after = log.ends()
        data += read(log, before.high_watermark, after.high_watermark)
    assert after.epoch > before.epoch
    headers = [batch.header for batch in split_batches(data)[0]]
    assert [header.base_offset for header in headers[1:]] == [header.next_offset for header in headers[:-1]]
    assert headers[-1].next_offset == after.high_watermark
    assert {before.epoch, after.epoch} <= {header.leader_epoch for header in headers}


def test_a_known_leader_is_enough_to_start_with(controllers: Controllers) -> None:
    with QuorumClient(settings(*controllers.addresses.values())) as quorum:
        end_offset = LiveLog(quorum).ends().high_watermark
        known = quorum.known()
    with QuorumClient(settings("127.0.0.1:1"), known) as other:
        assert read(LiveLog(other), 0, end_offset)
        assert other.known() == known


def test_without_a_majority_each_controller_is_named_with_its_problem(controllers: Controllers) -> None:
    addresses = controllers.addresses
    with QuorumClient(settings(*addresses.values(), api_timeout_ms=4_000)) as quorum:
        LiveLog(quorum).ends()
        leader = controllers.leader()
        controllers.kill(leader)
        controllers.kill(next(iter(controllers.processes)))
        (left,) = controllers.processes
        with pytest.raises(QuorumUnreachable) as error:
            while True:
                LiveLog(quorum).ends()
    assert error.value.problems[addresses[leader]].endswith("Connection refused")
    assert set(error.value.problems) == set(addresses.values())
    text = str(error.value)
    assert text.startswith("the log at offset 0: no answer in 4000 ms; ")
    assert "Check that a majority of the controllers is running" in text
    assert addresses[left] in text


def test_unreachable_controllers_are_each_named() -> None:
    with (
        QuorumClient(settings("127.0.0.1:1", "no-such-host.invalid:9093", api_timeout_ms=300)) as quorum,
        pytest.raises(QuorumUnreachable) as error,
    ):
        quorum.cluster_id()
    assert set(error.value.problems) == {"127.0.0.1:1", "no-such-host.invalid:9093"}


def test_a_caller_hears_once_why_there_is_no_answer_yet() -> None:
    heard: list[Mapping[Address, str]] = []

    def waiting(problems: Mapping[Address, str]) -> None:
        heard.append(dict(problems))

    with (
        QuorumClient(settings("127.0.0.1:1", api_timeout_ms=2_500), waiting=waiting) as quorum,
        pytest.raises(QuorumUnreachable),
    ):
        quorum.cluster_id()
    assert heard == [{Address("127.0.0.1", 1): "Connection refused"}]


def test_a_controller_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path, QUIET)) as process:
        address = address_of(process)
        with QuorumClient(settings(address)) as quorum:
            known = quorum.known()._replace(cluster_id="AAAAAAAAQACAAAAAAAAAAA")
        with (
            QuorumClient(settings(address), known) as misled,
            pytest.raises(WrongServer, match=f"{address}: INCONSISTENT_CLUSTER_ID: it belongs to another"),
        ):
            LiveLog(misled).ends()


def test_a_connection_that_was_closed_while_idle_is_opened_again(tmp_path: Path) -> None:
    file = formatted(tmp_path, QUIET)
    properties = file.read_text()
    with ControllerProcess(file) as process:
        address = address_of(process)
        file.write_text(properties.replace("127.0.0.1:0", address))
        with QuorumClient(settings(address)) as quorum:
            before = LiveLog(quorum).ends()
            process.kill()
            with ControllerProcess(file) as again, again.client() as client:
                write(client, range(3))
                after = LiveLog(quorum).ends()
    assert after.epoch > before.epoch
    assert after.high_watermark > before.high_watermark


def test_a_silent_server_costs_one_request_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        accepted: list[socket.socket] = []
        thread = threading.Thread(target=lambda: accepted.append(silent.accept()[0]))
        thread.start()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            QuorumClient(settings(address, api_timeout_ms=500)) as quorum,
            pytest.raises(QuorumUnreachable, match=f"{address}: timed out"),
        ):
            quorum.cluster_id()
        thread.join()
        accepted[0].close()


def test_a_frozen_controller_costs_less_than_the_request_timeout(tmp_path: Path) -> None:
    with (
        ControllerProcess(formatted(tmp_path, QUIET)) as process,
        socket.create_server(("127.0.0.1", 0)) as frozen,  # the system takes connections for it
    ):
        silent = f"127.0.0.1:{frozen.getsockname()[1]}"
        patience = settings(silent, address_of(process), api_timeout_ms=20_000)
        with QuorumClient(replace(patience, request_timeout_ms=20_000)) as quorum:
            assert LiveLog(quorum).ends().high_watermark > 0
