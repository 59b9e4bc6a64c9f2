"""Where we differ from a Kafka on purpose: what it accepts and we refuse.

Any Kafka writes what nobody can read: unknown tagged fields with a tag that the message knows.

Kafka's readers got limits in 4.4: of the elements in an array, of the tagged fields in a structure, and that
their number is not negative. Ours has them whatever the version of the schemas, since an unlimited count is
memory for the asking.
"""

from __future__ import annotations

import re

import msgspec

from kraft_wire.protocol.schema import MAX_ARRAY_LENGTH, MAX_TAGGED_FIELDS


class Stricter(msgspec.Struct, frozen=True):
    """One such way: a number in the reason that we give for refusing, and its limit."""

    name: str
    reason: str
    limit: int

    def explains(self, our: str, their: str) -> bool:
        """Whether it is why we refuse what Java has read."""
        found = re.search(self.reason, our)
        return found is not None and int(found[1]) > self.limit and not their.startswith("!")


BEFORE_4_4 = (
    # In Java a loop over a negative number ends at once; we show it as the unsigned number that it is.
    Stricter("a negative number of tagged fields", r"^!error .* (\d+) tagged fields in", 2**31 - 1),
    Stricter("more tagged fields than allowed", r"^!error .* (\d+) tagged fields in", MAX_TAGGED_FIELDS),
    Stricter("more elements than allowed", r"^!error .* array of (\d+) elements", MAX_ARRAY_LENGTH),
)


ANY = (Stricter("a known tag among the unknown ones", r"^!error .* tag (\d+) is known", -1),)


def stricter_than(kafka: str) -> tuple[Stricter, ...]:
    """The ways for a version of Kafka ("4.3.1")."""
    return ANY + (BEFORE_4_4 if tuple(map(int, kafka.split("."))) < (4, 4) else ())
