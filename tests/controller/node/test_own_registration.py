"""The active controller registers itself as soon as metadata.version has registrations (KIP-919)."""

from __future__ import annotations

from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.controller.lone_controller import NODE_ID, LoneController

BEFORE, FIRST = 14, 15


def test_a_raised_metadata_version_registers_the_active_controller_once() -> None:
    controller = LoneController(bootstrap=bootstrap_records(BEFORE, dynamic_quorum=False))
    controller.flush()
    controller.flush()
    assert not controller.state.metadata.controllers
    update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", FIRST)])
    controller.ask("upgrade", update, 1)
    controller.flush()
    assert controller.answer("upgrade", UpdateFeaturesResponse).error_code == 0
    assert list(controller.state.metadata.controllers) == [NODE_ID]
    controller.live(5_000)
    records = [each for each in controller.disk.records() if isinstance(each, RegisterControllerRecord)]
    assert [each.controller_id for each in records] == [NODE_ID]
