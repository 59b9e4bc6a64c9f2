"""The operations on a configuration key."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """An operation on a key (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
