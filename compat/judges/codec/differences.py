"""List the intended differences: inputs that a Kafka version accepts and our codec refuses.

Every Kafka version encodes unknown tagged fields with a tag that the message knows, though no reader can
decode the result.

Since 4.4 Kafka's readers limit the elements of an array and the tagged fields of a structure, and refuse
negative numbers of tagged fields. Our codec has these limits for the schemas of every version, because an
unlimited count would let a peer make us allocate any amount of memory.
"""

from __future__ import annotations

import re

import msgspec

from kraft_wire.protocol.schema import MAX_ARRAY_LENGTH, MAX_TAGGED_FIELDS


class Stricter(msgspec.Struct, frozen=True):
    """One intended difference: the pattern of our reason, and the limit for the number in it."""

    name: str
    reason: str
    limit: int

    def explains(self, our: str, their: str) -> bool:
        """Whether this difference explains that our codec refuses what Java accepts."""
        found = re.search(self.reason, our)
        return found is not None and int(found[1]) > self.limit and not their.startswith("!")


BEFORE_4_4 = (
    # Java's loop over a negative number ends at once; our error shows it as an unsigned number.
    Stricter("a negative number of tagged fields", r"^!error .* (\d+) tagged fields in", 2**31 - 1),
    Stricter("more tagged fields than allowed", r"^!error .* (\d+) tagged fields in", MAX_TAGGED_FIELDS),
    Stricter("more elements than allowed", r"^!error .* array of (\d+) elements", MAX_ARRAY_LENGTH),
)


ANY = (Stricter("a known tag among the unknown ones", r"^!error .* tag (\d+) is known", -1),)


def stricter_than(kafka: str) -> tuple[Stricter, ...]:
    """Return the intended differences from a version of Kafka, such as "4.3.1"."""
    return ANY + (BEFORE_4_4 if tuple(map(int, kafka.split("."))) < (4, 4) else ())
