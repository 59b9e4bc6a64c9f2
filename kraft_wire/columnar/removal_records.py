"""Write the RemoveTopicRecords of one batch from columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.templates import delta_spans, framed
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.metadata_record import FRAME_VERSION

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Bytes

VERSION: Final = 0
_HEAD: Final = bytes((FRAME_VERSION, RemoveTopicRecord.API_KEY, VERSION))
_NO_TAGGED_FIELDS: Final = b"\x00"


def encode_removals(topic_ids: Sequence[bytes], first_delta: int) -> bytes:
    """Return the records as they stand in a batch, where the first has the offset delta ``first_delta``."""
    count = len(topic_ids)
    ids: Bytes = np.frombuffer(b"".join(topic_ids), np.uint8).reshape(count, 16)
    deltas = np.arange(first_delta, first_delta + count)
    matrices = [
        framed([_HEAD, ids[span], _NO_TAGGED_FIELDS], deltas[span], delta_bytes)
        for span, delta_bytes in delta_spans(first_delta, count)
    ]
    return b"".join([matrix.tobytes() for matrix in matrices])
