"""Define the layers of configuration that a topic falls back on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kraft_wire.metadata.configs import Configs


class ConfigLayers(msgspec.Struct, frozen=True):
    """The configurations of a cluster as one node has them.

    ``dynamic`` are the values that were set on resources, ``static_configs`` the properties file of node
    ``node_id``.
    """

    dynamic: Configs
    node_id: int
    static_configs: Mapping[str, str]
