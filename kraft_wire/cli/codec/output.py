"""Print answers as they come, and report at the end how many of them are errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kraft_wire.cli.codec.input import chunks_of, lines_of
from kraft_wire.cli.codec.lines import Answer
from kraft_wire.cli.errors import CommandError
from kraft_wire.cli.output import print_lines


class Printer:
    """A printer of answers that counts them."""

    def __init__(self) -> None:
        self.printed = 0
        self.failed = 0

    def print(self, answers: Iterable[Answer]) -> None:
        """Print answers and flush them: another process may wait for them."""
        print_lines(self._counted(answers))

    def finish(self, what: str, hint: str = "") -> None:
        """Raise CommandError if any answer was an error; ``hint`` is added if all were."""
        if self.failed:
            advice = hint if self.failed == self.printed else ""
            raise CommandError(f"{self.failed} of {self.printed} {what}{advice}")

    def _counted(self, answers: Iterable[Answer]) -> Iterator[str]:
        for answer in answers:
            self.printed += 1
            self.failed += not answer.ok
            yield answer.line


def answer_lines(file: str, answer: Callable[[bytes, int], Answer], what: str) -> None:
    """Answer every line of a file, given its number, except blank ones.

    Raises OSError, and CommandError if an answer is an error.
    """
    printer = Printer()
    number = 0
    with chunks_of(file) as chunks:
        for lines in lines_of(chunks):
            numbered = enumerate(lines, number + 1)
            number += len(lines)
            printer.print(answer(line, at) for at, line in numbered if line.strip())
    printer.finish(what)
