"""Ids as text, in columns of many or few different ids."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.tabular.arrow_columns import id_column


@pytest.mark.parametrize("different", [0, 1, 2, 64, 65, 256, 5_000])
def test_ids_are_the_text_that_kafka_prints(different: int) -> None:
    random = Random(different)
    ids = [Uuid(random.randbytes(16)) for _ in range(different)]
    many = [random.choice(ids) for _ in range(3_000)] if ids else []
    raw = np.frombuffer(b"".join([*ids, *many]), np.uint8).reshape(-1, 16)
    column = id_column(raw)
    column.validate(full=True)
    assert column.to_pylist() == [str(one) for one in [*ids, *many]]


def test_every_letter_is_possible_everywhere() -> None:
    ids = [Uuid(bytes([number]) * 16) for number in range(256)]
    raw = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16)
    assert id_column(raw).to_pylist() == [str(one) for one in ids]
