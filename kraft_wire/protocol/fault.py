"""The exceptions by which a generated codec leaves a message to the careful codec."""

from __future__ import annotations

import struct
from typing import Final


class Fault(ValueError):
    """A case that a generated codec leaves to the careful one. Callers of a codec never see it."""


DECODE_FAULTS: Final = (struct.error, IndexError, ValueError, TypeError, AttributeError)
"""Fault, malformed UTF-8, the end of the data, and data of another type than bytes."""
ENCODE_FAULTS: Final = (struct.error, ValueError, TypeError, AttributeError)
"""Fault, lone surrogates, and values of a wrong type or out of range."""
