"""The errors of reading schemas and writing their code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class SchemaError(Exception):
    """A schema that breaks rules. Names the place (``Message.Struct.field``, or ``file:line``) and the
    rules."""

    def __init__(self, where: str, problems: str | Sequence[str]) -> None:
        self.where = where
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(f"{where}: {'; '.join(self.problems)}")


class ImportFailed(Exception):
    """The published jars could not be resolved, or don't hold the expected schemas."""


class TargetRefused(Exception):
    """A folder that generated code may not be written to, because that would destroy hand-written files."""

    def __init__(self, target: Path, reason: str) -> None:
        super().__init__(f"nothing is written into {target}: {reason}")


class TargetFailed(Exception):
    """A folder that generated code can't be written to."""

    def __init__(self, target: Path, error: OSError) -> None:
        super().__init__(f"can't write into {target}: {error.strerror or error}")
