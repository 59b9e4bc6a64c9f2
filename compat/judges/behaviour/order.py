"""The order of records: that of their types counts, and that of records about one thing.

Where Java's controller takes things from a hash map, their order is chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from compat.judges.behaviour.forms import Form, text_of_form

_IN_ANY_ORDER: Final = frozenset(
    {
        "ClientQuotaRecord",
        "ConfigRecord",
        "FeatureLevelRecord",
        "PartitionChangeRecord",
        "UserScramCredentialRecord",
    }
)
_SUBJECTS: Final = (
    "topicId",
    "partitionId",
    "resourceType",
    "resourceName",
    "name",
    "mechanism",
    "entity",
    "key",
)


def without_chance(records: Sequence[Form]) -> tuple[Form, ...]:
    """Sort records of a type whose order is chance, where they follow each other."""
    in_order: list[Form] = []
    for name, run in groupby(records, key=lambda record: record["name"]):
        of_one_type = list(run)
        in_order += sorted(of_one_type, key=_subject) if name in _IN_ANY_ORDER else of_one_type
    return tuple(in_order)


def _subject(record: Form) -> str:
    """Return what a record is about: records about one thing keep their order."""
    return text_of_form({key: record["data"][key] for key in _SUBJECTS if key in record["data"]})
