"""metadata.version: the levels, what each of them enables, and the record versions that they select.

Facts from Kafka 4.4.0 (org.apache.kafka.server.common.MetadataVersion). Elsewhere a level is a plain int; 0
means that no FeatureLevelRecord was read yet.
"""

from __future__ import annotations

import msgspec

from kraft_wire.metadata.errors import FeatureError

FEATURE_NAME = "metadata.version"


class MetadataVersion(msgspec.Struct, frozen=True, gc=False):
    """A level. ``changed`` says whether the format of the metadata differs from the level below."""

    level: int
    name: str
    changed: bool

    @property
    def release(self) -> str:
        """The release that introduced the level: "4.4" of "4.4-IV2"."""
        return self.name.partition("-")[0]


VERSIONS: tuple[MetadataVersion, ...] = tuple(
    MetadataVersion(level, name, changed)
    for level, name, changed in (
        (7, "3.3-IV3", True),  # KIP-841: controlled shutdown in registrations
        (8, "3.4-IV0", True),  # KIP-866: isMigratingZkBroker
        (9, "3.5-IV0", False),
        (10, "3.5-IV1", False),
        (11, "3.5-IV2", True),  # SCRAM records
        (12, "3.6-IV0", False),  # KAFKA-15021: no leader epoch bump when the ISR shrinks
        (13, "3.6-IV1", True),  # KIP-868: metadata transactions
        (14, "3.6-IV2", True),  # delegation tokens
        (15, "3.7-IV0", True),  # KIP-919: controller registration
        (16, "3.7-IV1", False),
        (17, "3.7-IV2", True),  # KIP-858: directories
        (18, "3.7-IV3", False),
        (19, "3.7-IV4", False),
        (20, "3.8-IV0", False),
        (21, "3.9-IV0", False),
        (22, "4.0-IV0", False),
        (23, "4.0-IV1", True),  # KIP-966: eligible leader replicas
        (24, "4.0-IV2", False),
        (25, "4.0-IV3", False),
        (26, "4.1-IV0", False),
        (27, "4.1-IV1", False),
        (28, "4.2-IV0", False),
        (29, "4.2-IV1", False),
        (30, "4.3-IV0", True),  # cordoned directories
        (31, "4.4-IV0", False),
        (32, "4.4-IV1", True),  # CIDR in ACLs
        (33, "4.4-IV2", True),  # UnregisterController
        (34, "4.5-IV0", False),
    )
)

MINIMUM = 7
LATEST_PRODUCTION = 33
LATEST_TESTING = 34

_BY_LEVEL = {version.level: version for version in VERSIONS}
_BY_NAME = {version.name: version.level for version in VERSIONS}
# A release without a level means its last stable level.
_BY_RELEASE = {version.release: version.level for version in VERSIONS if version.level <= LATEST_PRODUCTION}


def name_of(level: int) -> str:
    """Return the text of a level ("4.4-IV2"). Raises FeatureError for a level that this software doesn't
    know."""
    version = _BY_LEVEL.get(level)
    if version is None:
        raise FeatureError(f"metadata.version {level} is unknown; known are {MINIMUM} to {LATEST_TESTING}")
    return version.name


def parse_release_version(text: str, *, unstable: bool = False) -> int:
    """Return the level of kafka-storage's --release-version: "4.0", "4.0.1", "4.0.x" or "4.0-IV3".

    Everything after a second dot is ignored. Raises FeatureError for a release that is unknown, or not stable
    yet unless ``unstable``.
    """
    key = ".".join(text.split(".")[:2])
    level = _BY_RELEASE.get(key) or _BY_NAME.get(key)
    highest = LATEST_TESTING if unstable else LATEST_PRODUCTION
    if level is None or level > highest:
        known = ", ".join(version.name for version in VERSIONS if version.level <= highest)
        raise FeatureError(
            f"release version {text!r} is unknown; use a release, such as 4.3, or one of {known}"
        )
    return level


def metadata_changed_between(one: int, other: int) -> bool:
    """Whether the metadata's format differs between two levels, so that a downgrade between them would lose
    data."""
    low, high = sorted((one, other))
    return any(version.changed for version in VERSIONS if low < version.level <= high)


def migration_supported(level: int) -> bool:
    """Whether RegisterBrokerRecord has isMigratingZkBroker (KIP-866)."""
    return level >= 8


def scram_supported(level: int) -> bool:
    """Whether the metadata log can hold SCRAM credentials."""
    return level >= 11


def leader_epoch_bump_on_isr_shrink(level: int) -> bool:
    """Whether a shrinking ISR raises the leader epoch: below 3.6-IV0 (KAFKA-15021)."""
    return level < 12


def transactions_supported(level: int) -> bool:
    """Whether there are metadata transactions (KIP-868)."""
    return level >= 13


def delegation_tokens_supported(level: int) -> bool:
    """Whether the metadata log can hold delegation tokens."""
    return level >= 14


def controller_registration_supported(level: int) -> bool:
    """Whether controllers register themselves (KIP-919)."""
    return level >= 15


def directory_assignment_supported(level: int) -> bool:
    """Whether replicas are assigned to log directories (KIP-858)."""
    return level >= 17


def elr_supported(level: int) -> bool:
    """Whether records can have eligible leader replicas (KIP-966). The feature itself is finalized
    separately."""
    return level >= 23


def cordoned_dirs_supported(level: int) -> bool:
    """Whether brokers report directories that take no new replicas."""
    return level >= 30


def cidr_acls_supported(level: int) -> bool:
    """Whether hosts of ACLs may be CIDR blocks."""
    return level >= 32


def unregister_controller_supported(level: int) -> bool:
    """Whether registrations of controllers can be removed."""
    return level >= 33


def register_broker_record_version(level: int) -> int:
    """Return the version at which RegisterBrokerRecord is written."""
    if cordoned_dirs_supported(level):
        return 4
    if directory_assignment_supported(level):
        return 3
    return 2 if migration_supported(level) else 1


def register_controller_record_version(level: int) -> int:
    """Return the version at which RegisterControllerRecord is written. Raises FeatureError below 3.7-IV0."""
    if not controller_registration_supported(level):
        raise FeatureError(f"controllers register from metadata.version 3.7-IV0 on, not at {name_of(level)}")
    return 0


def partition_record_version(level: int) -> int:
    """Return the version at which PartitionRecord is written."""
    if elr_supported(level):
        return 2
    return 1 if directory_assignment_supported(level) else 0


def partition_change_record_version(level: int) -> int:
    """Return the version at which PartitionChangeRecord is written."""
    return partition_record_version(level)
