"""Generate cases and judge them: everything that Java and our codec do with a case must be the same."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Final, Self

import msgspec

from compat.judges.codec import ours
from compat.judges.codec.damage import damaged, damaged_json
from compat.judges.codec.differences import Stricter
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.objects import Misfit
from compat.judges.codec.wire_map import WireMap
from kraft_wire.protocol.message import Message

SHARES: Final = {"instance": 0.5, "bytes": 0.35, "json": 0.15}
"""The kinds of cases and their shares of all cases.

Random instances, which both sides encode, and decode from what our codec wrote; damaged bytes; damaged JSON.
"""
_BATCH: Final = 500
_LONGEST_SHOWN: Final = 2000

Dialogue = Generator[list[list[str]], list[list[str]], None]
"""A generator that yields requests for Java and is sent the answers."""


class Case(msgspec.Struct, frozen=True):
    """A case to judge. It is reproducible: equal cases give equal requests."""

    kind: str
    java_name: str
    version: int
    number: int
    seed: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of str(); raises ValueError for anything else."""
        words = text.split("/")
        if len(words) != 5 or words[0] not in SHARES:
            raise ValueError(f"{text!r} is not a case: expected {'|'.join(SHARES)}/CLASS/VERSION/NUMBER/SEED")
        return cls(words[0], words[1], int(words[2]), int(words[3]), int(words[4]))

    def __str__(self) -> str:
        return f"{self.kind}/{self.java_name}/{self.version}/{self.number}/{self.seed}"

    @property
    def mood(self) -> str:
        """ "astray" if the instance may hold values that are impossible at its version, else "sound"."""
        return "astray" if self.kind == "instance" and self.number % 3 == 0 else "sound"

    @property
    def carefully(self) -> bool:
        return self.number % 4 == 3

    def random(self) -> Random:
        return Random(str(self))

    def request(self, command: str, *arguments: str) -> list[str]:
        """Return a request to Java about this message and version."""
        return [command, self.java_name, str(self.version), *arguments]

    def make(self) -> list[str]:
        """Return the request for this case's random instance."""
        digest = hashlib.blake2b(str(self).encode(), digest_size=8).digest()
        return self.request("make", str(int.from_bytes(digest, signed=True)), self.mood)


class Difference(Exception):
    """Java and our codec gave different results."""


class Verdicts(msgspec.Struct):
    """The results of the cases."""

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    """The numbers of cases that both sides accepted, that both refused, and that differ in a known way."""
    differences: list[str] = []
    """For each unexpected difference: both results, and the command that judges the case again."""

    @property
    def judged(self) -> int:
        return self.outcomes.total() + len(self.differences)

    def report(self) -> str:
        shown = "\n\n".join(self.differences[:10])
        return f"{len(self.differences)} of {self.judged} cases differ from Java:\n\n{shown}"


class Judge:
    """A comparison of the generated classes of ``package`` with Java's.

    ``stricter`` lists the inputs that this Kafka accepts and ours refuses on purpose.
    """

    def __init__(
        self, java: JavaCodec, package: str = ours.OUR_PACKAGE, stricter: Sequence[Stricter] = ()
    ) -> None:
        self._java = java
        self.kafka = java.jars.version
        self._stricter = stricter
        self.classes = ours.our_classes(package)
        self.java_classes = {each.name: each for each in java.classes()}

    def cases(self, kind: str, total: int, seed: int) -> list[Case]:
        """Return this kind's share of ``total`` cases or a few more, equally many of every message and
        version."""
        versions = [
            (name, version)
            for name, cls in sorted(self.classes.items())
            for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
        ]
        each = math.ceil(total * SHARES[kind] / len(versions))
        return [Case(kind, *version, number, seed) for version in versions for number in range(each)]

    def instances(self, cases: Sequence[Case]) -> Iterator[tuple[Case, Message]]:
        """Yield the random instances of the cases as our messages."""
        for start in range(0, len(cases), _BATCH):
            batch = cases[start : start + _BATCH]
            made = self._java.ask([case.make() for case in batch])
            for case, (shown, *_) in zip(batch, made, strict=True):
                yield case, ours.made_from(self.classes[case.java_name], shown)

    def judge(self, cases: Sequence[Case]) -> Verdicts:
        """Compare both sides in every case."""
        verdicts = Verdicts()
        waiting = iter([cases[start : start + _BATCH] for start in range(0, len(cases), _BATCH)])
        # Java works on one batch while the other one is compared.
        running = deque(self._begun(batch, verdicts) for batch in islice(waiting, 2))
        try:
            while running:
                rounds, count = running.popleft()
                try:
                    requests = rounds.send(self._java.receive(count))
                except StopIteration:
                    running.extend(self._begun(batch, verdicts) for batch in islice(waiting, 1))
                    continue
                self._java.send(requests)
                running.append((rounds, len(requests)))
        finally:
            # After an exception, discard the pending answers: the next request must not get them.
            for _, count in running:
                self._java.receive(count)
        return verdicts

    def _begun(self, batch: Sequence[Case], verdicts: Verdicts) -> tuple[Dialogue, int]:
        """Send the first requests of a batch; return its dialogue and the number of requests."""
        rounds = self._rounds(batch, verdicts)
        requests = next(rounds)
        self._java.send(requests)
        return rounds, len(requests)

    def _rounds(self, cases: Sequence[Case], verdicts: Verdicts) -> Dialogue:
        """Run all cases of a batch side by side: their first requests, then their second ones, and so on."""
        running = [(case, self._dialogue(case, verdicts)) for case in cases]
        asked = [self._go_on(each, None, verdicts) for each in running]
        while running:
            going_on = [(each, requests) for each, requests in zip(running, asked, strict=True) if requests]
            answers = iter((yield [request for _, requests in going_on for request in requests]))
            running = [each for each, _ in going_on]
            asked = [
                self._go_on(each, [next(answers) for _ in requests], verdicts) for each, requests in going_on
            ]

    def _go_on(
        self, running: tuple[Case, Dialogue], answers: list[list[str]] | None, verdicts: Verdicts
    ) -> list[list[str]]:
        """Return the next requests of a case; none if it is decided."""
        case, dialogue = running
        try:
            return next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration:
            return []
        except (Difference, Misfit) as difference:
            verdicts.differences.append(
                f"{case.java_name} version {case.version}: {difference}\n{self._reproduction(case)}"
            )
            return []
        except Exception as error:
            error.add_note(self._reproduction(case))
            raise

    def _reproduction(self, case: Case) -> str:
        return f"reproduce: python -m compat.judges.codec --kafka {self.kafka} {case}"

    def _dialogue(self, case: Case, verdicts: Verdicts) -> Dialogue:
        ((shown, their_bytes, their_json),) = yield [case.make()]
        if case.mood == "sound" and their_bytes.startswith("!"):
            raise Difference(f"Java refuses an instance that should be valid: {their_bytes}\n from: {shown}")
        if case.kind == "instance":
            outcome = yield from self._instance(case, shown, their_bytes, their_json)
        elif case.kind == "bytes":
            raw = damaged(
                case.random(), WireMap(self.classes[case.java_name], bytes.fromhex(their_bytes), case.version)
            )
            (answer,) = yield [case.request("read", raw.hex())]
            outcome = self._compare_read(case, raw, answer)
        else:
            text = ours.text_of(
                damaged_json(case.random(), json.loads(their_json), self.classes[case.java_name])
            )
            (answer,) = yield [case.request("parse", text)]
            outcome = self._compare_parsed(case, text, answer)
        verdicts.outcomes[outcome] += 1

    def _instance(
        self, case: Case, shown: str, their_bytes: str, their_json: str
    ) -> Generator[list[list[str]], list[list[str]], str]:
        """Compare what both sides encode, and what both decode from our bytes and JSON."""
        message = ours.made_from(self.classes[case.java_name], shown)
        _same("the object", ours.object_text(message), _normal(shown))
        our_bytes = ours.written(message, case.version, carefully=case.carefully)
        if (name := self._explained(our_bytes, their_bytes)) is not None:
            return name
        _same("bytes", our_bytes, their_bytes, shown)
        our_json = ours.json_text(message, case.version)
        _same("JSON", our_json, _normal(their_json), shown)
        if case.mood == "sound":
            _same("printed JSON", ours.printed(message, case.version), _normal(their_json), shown)
        if not our_bytes.startswith("!"):
            (answer,) = yield [case.request("read", our_bytes)]
            self._compare_read(case, bytes.fromhex(our_bytes), answer)
        if not our_json.startswith("!"):
            (answer,) = yield [case.request("parse", our_json)]
            self._compare_parsed(case, our_json, answer)
        return _outcome(their_bytes)

    def _compare_read(self, case: Case, raw: bytes, answer: list[str]) -> str:
        given = raw.hex()
        found = ours.read(
            self.classes[case.java_name],
            case.version,
            raw,
            carefully=case.carefully,
            preceding_bytes=case.number % 3,
        )
        if isinstance(found, str) or answer[0].startswith("!"):
            our = found if isinstance(found, str) else ours.object_text(found.message)
            if (name := self._explained(our, answer[0])) is not None:
                return name
            _same("the decoded object", our, answer[0], given)
            return "refused"
        unread, shown, written, their_json = answer
        message = found.message
        _same("the number of unread bytes", str(found.unread), unread, given)
        _same("the object", ours.object_text(message), _normal(shown), given)
        our_bytes = ours.written(message, case.version, carefully=case.carefully)
        _same("the object encoded again", our_bytes, written, given)
        _same("JSON", ours.json_text(message, case.version), _normal(their_json), given)
        return "accepted"

    def _explained(self, our: str, their: str) -> str | None:
        return next((each.name for each in self._stricter if each.explains(our, their)), None)

    def _compare_parsed(self, case: Case, text: str, answer: list[str]) -> str:
        message = ours.parsed(self.classes[case.java_name], case.version, text)
        if isinstance(message, str) or answer[0].startswith("!"):
            our = message if isinstance(message, str) else ours.object_text(message)
            _same("the object from JSON", our, answer[0], text)
            return "refused"
        shown, written = answer
        _same("the object from JSON", ours.object_text(message), _normal(shown), text)
        _same("its bytes", ours.written(message, case.version, carefully=case.carefully), written, text)
        return "accepted"


def _outcome(answer: str) -> str:
    return "refused" if answer.startswith("!") else "accepted"


def _normal(answer: str) -> str:
    """Return Java's JSON in our formatting; a refusal unchanged."""
    return answer if answer.startswith("!") else ours.text_of(json.loads(answer))


def _same(what: str, our: str, their: str, given: str = "") -> None:
    """Raise Difference unless both results are equal, or both are refusals of the same kind."""
    if our == their or (our.startswith("!") and our.split(" ", 1)[0] == their.split(" ", 1)[0]):
        return
    lines = [
        f" {side}: {text[:_LONGEST_SHOWN]}"
        for side, text in (("ours", our), ("Java", their), ("from", given))
    ]
    raise Difference("\n".join([f"{what} differs", *lines]))
