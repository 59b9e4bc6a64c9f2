"""Say what configuration keys are for, in a sentence or two. DescribeConfigs returns these texts (KIP-569).

They are loaded when somebody asks for the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kraft_wire.configs.own_keys import OWN_KEYS
from kraft_wire.metadata.configs import ResourceType


def documentation_of(resource_type: int, name: str) -> str | None:
    """Return what a key of this type of resource is for, None for an unknown key."""
    return _texts(resource_type).get(name)


@cache
def _texts(resource_type: int) -> Mapping[str, str]:
    match resource_type:
        case ResourceType.BROKER:
            return _broker_texts()
        case ResourceType.TOPIC:
            from kraft_wire.configs.documentation import topics

            return topics.TEXTS
        case ResourceType.GROUP:
            from kraft_wire.configs.documentation import groups

            return groups.TEXTS
        case ResourceType.CLIENT_METRICS:
            from kraft_wire.configs.documentation import client_metrics

            return client_metrics.TEXTS
        case _:
            return {}


def _broker_texts() -> Mapping[str, str]:
    from kraft_wire.configs.documentation import (
        controllers,
        coordinators,
        logs,
        network,
        replication,
        security,
        tiered_storage,
    )

    areas = controllers, network, logs, replication, coordinators, tiered_storage, security
    texts = {name: text for area in areas for name, text in area.TEXTS.items()}
    return texts | {key.name: key.documentation for key in OWN_KEYS.values() if key.documentation}
