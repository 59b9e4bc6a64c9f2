"""Where the responses of the APIs have the errors of single items (AbstractRequest.getErrorResponse).

An API that isn't here has one error at the top of its response.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.error_responses import ErrorForm, ItemErrors
from kraft_wire.controller.reading import NO_OFFSET

PRODUCE: Final = ErrorForm(
    (
        ItemErrors(
            "topic_data",
            "responses",
            ("name", "topic_id"),
            ItemErrors(
                "partition_data", "partition_responses", ("index",), constants={"base_offset": NO_OFFSET}
            ),
        ),
    )
)
LIST_OFFSETS: Final = ErrorForm(
    (ItemErrors("topics", "topics", ("name",), ItemErrors("partitions", "partitions", ("partition_index",))),)
)
METADATA: Final = ErrorForm((ItemErrors("topics", "topics", ("name", "topic_id")),))
API_VERSIONS: Final = ErrorForm(own_versions="api_keys")
CREATE_TOPICS: Final = ErrorForm((ItemErrors("topics", "topics", ("name",)),))
DELETE_TOPICS: Final = ErrorForm(
    (
        ItemErrors("topics", "responses", ("name", "topic_id")),
        ItemErrors("topic_names", "responses", ("name",)),
    )
)
CREATE_PARTITIONS: Final = ErrorForm((ItemErrors("topics", "results", ("name",)),))
DESCRIBE_CONFIGS: Final = ErrorForm((ItemErrors("resources", "results", ("resource_type", "resource_name")),))
ALTER_CONFIGS: Final = ErrorForm((ItemErrors("resources", "responses", ("resource_type", "resource_name")),))
ALTER_PARTITION_REASSIGNMENTS: Final = ErrorForm(
    (
        ItemErrors(
            "topics",
            "responses",
            ("name",),
            ItemErrors("partitions", "partitions", ("partition_index",)),
        ),
    )
)
LIST_PARTITION_REASSIGNMENTS: Final = ErrorForm(
    (
        ItemErrors(
            "topics",
            "topics",
            ("name",),
            ItemErrors("partition_indexes", "partitions", ("partition_index",)),
        ),
    )
)
ALTER_CLIENT_QUOTAS: Final = ErrorForm(
    (ItemErrors("entries", "entries", (), ItemErrors("entity", "entity", ("entity_type", "entity_name"))),)
)
ALTER_USER_SCRAM_CREDENTIALS: Final = ErrorForm(
    tuple(
        ItemErrors(changes, "results", ("name",), renamed={"name": "user"})
        for changes in ("deletions", "upsertions")
    )
)
ELECT_LEADERS: Final = ErrorForm(
    (
        ItemErrors(
            "topic_partitions",
            "replica_election_results",
            ("topic",),
            ItemErrors("partitions", "partition_result", ("partition_id",)),
        ),
    )
)
