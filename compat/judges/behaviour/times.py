"""The times in answers and records: both sides run at their own pace, but nearly at the same time."""

from __future__ import annotations

from typing import Final

from compat.judges.behaviour.forms import Form

SAME_MS: Final = 60_000
"""Times that are less apart are equal. The periods that scripts name differ by more."""
_FIELDS: Final = frozenset(
    {
        "issueTimestampMs",
        "expiryTimestampMs",
        "maxTimestampMs",
        "issueTimestamp",
        "expirationTimestamp",
        "maxTimestamp",
    }
)


def at_our_times(ours: Form, java: Form, field: str = "") -> Form:
    """Return Java's form with our times, where they are nearly the same."""
    if isinstance(ours, dict) and isinstance(java, dict):
        return {key: at_our_times(ours.get(key), value, key) for key, value in java.items()}
    if isinstance(ours, list) and isinstance(java, list) and len(ours) == len(java):
        return [at_our_times(*pair) for pair in zip(ours, java, strict=True)]
    are_times = field in _FIELDS and isinstance(ours, int) and isinstance(java, int)
    return ours if are_times and abs(ours - java) < SAME_MS else java
