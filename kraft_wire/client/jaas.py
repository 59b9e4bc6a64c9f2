"""Read the username and the password from ``sasl.jaas.config``, a line in the syntax of Java's JAAS:

org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
"""

from __future__ import annotations

import re
from typing import Final

from kraft_wire.security.errors import BadSetting
from kraft_wire.security.secret import Secret

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TEXT: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'=;]+"""
_LINE: Final = re.compile(rf"\s*(\S+)\s+(\w+)((?:\s+[\w.-]+\s*=\s*(?:{_TEXT}))*)\s*;\s*", re.DOTALL)
_OPTION: Final = re.compile(rf"([\w.-]+)\s*=\s*({_TEXT})", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def parse_login(line: str, mechanism: str) -> tuple[str, Secret]:
    """Return the username and the password. Raises BadSetting, whose text contains none of the options."""
    match = _LINE.fullmatch(line)
    module = _MODULES[mechanism]
    if match is None or match[2].lower() not in _FLAGS:
        raise BadSetting(f'kafka.sasl.jaas.config: must be {module} required username="…" password="…";')
    if match[1] != module:
        raise BadSetting(
            f"kafka.sasl.jaas.config: the login module of {mechanism} is {module}, not {match[1]}"
        )
    options = {name: _unquoted(text) for name, text in _OPTION.findall(match[3])}
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise BadSetting(f"kafka.sasl.jaas.config: has no {' and no '.join(missing)}")
    return options["username"], Secret(options["password"])


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] in "\"'" else text
