"""Parse expressions of PromQL: enough for dashboards and alarm rules, and strict in what it knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

TOKEN: Final = re.compile(
    r"\s*(?:(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<duration>(?:\d+(?:ms|[smhdwy]))+)"
    r"|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<name>[a-zA-Z_:][\w:]*|\$__?\w+|\$\{\w+\})"
    r"|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],:]))"
)
AGGREGATIONS: Final = frozenset({"sum", "max", "min", "avg", "count", "topk"})
FUNCTIONS: Final = frozenset(
    {"absent", "changes", "deriv", "histogram_quantile", "increase", "irate", "label_values"}
    | {"predict_linear", "query_result", "rate", "time"}
)
RANGE_FUNCTIONS: Final = frozenset({"changes", "deriv", "increase", "irate", "predict_linear", "rate"})
"""One of their arguments is a range; others take instants."""
PRECEDENCE: Final = (
    ("or",),
    ("and", "unless"),
    ("==", "!=", "<=", "<", ">=", ">"),
    ("+", "-"),
    ("*", "/", "%"),
    ("^",),
)
MATCHES: Final = ("=", "!=", "=~", "!~")


class SyntaxProblem(ValueError):
    """An expression that isn't PromQL, or not of the part that is known here."""


class Selector(NamedTuple):
    """A metric's name, and its label matchers by label: the operator and the text."""

    name: str
    matchers: dict[str, tuple[str, str]]


class Parsed(NamedTuple):
    """What an expression names: its selectors, and the labels that it groups or joins by."""

    selectors: list[Selector]
    labels: set[str]


def parse(text: str) -> Parsed:
    """Return what an expression names. Raises SyntaxProblem."""
    parser = _Parser(text)
    if parser.expression():
        raise SyntaxProblem(f"a range is no answer: {text}")
    if parser.kind:
        raise parser.problem("an operator")
    return Parsed(parser.selectors, parser.labels)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.kind, self._token = "", ""
        self.selectors: list[Selector] = []
        self.labels: set[str] = set()
        self._next()

    def problem(self, wanted: str) -> SyntaxProblem:
        return SyntaxProblem(f"{wanted} expected, not {self._token!r}, in {self._text}")

    def _next(self) -> str:
        before, rest = self._token, self._text[self._at :]
        if not rest.strip():
            self.kind, self._token, self._at = "", "", len(self._text)
            return before
        found = TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise SyntaxProblem(f"{rest!r} is no token: {self._text}")
        self.kind, self._token, self._at = found.lastgroup, found[found.lastgroup], found.end()
        return before

    def _take(self, token: str) -> None:
        if self._token != token:
            raise self.problem(repr(token))
        self._next()

    def _takes(self, *tokens: str) -> bool:
        if self.kind in ("sign", "name") and self._token in tokens:
            self._next()
            return True
        return False

    def _text_of(self, kind: str) -> str:
        if self.kind != kind:
            raise self.problem(f"a {kind}")
        return self._next()

    def expression(self, level: int = 0) -> bool:
        """Parse operators of a level and above. Returns whether the value is one of ranges."""
        if level == len(PRECEDENCE):
            return self._operand()
        is_range = self.expression(level + 1)
        while self._takes(*PRECEDENCE[level]):
            self._takes("bool")
            if self._takes("on", "ignoring"):
                self._label_list()
                if self._takes("group_left", "group_right") and self._token == "(":
                    self._label_list()
            if self.expression(level + 1) or is_range:
                raise SyntaxProblem(f"operators take no ranges: {self._text}")
        return is_range

    def _operand(self) -> bool:
        self._takes("-")
        if self._takes("("):
            is_range = self.expression()
            self._take(")")
            return is_range
        if self.kind in ("number", "string"):
            self._next()
            return False
        return self._named(self._text_of("name"))

    def _named(self, name: str) -> bool:
        if name in AGGREGATIONS:
            if self._takes("by", "without"):
                self._label_list()
            self._call(name)
            if self._takes("by", "without"):
                self._label_list()
            return False
        if self._token != "(":
            return self._selector(name)
        if name not in FUNCTIONS:
            raise SyntaxProblem(f"{name} is no function that is known here: {self._text}")
        self._call(name)
        return False

    def _call(self, function: str) -> None:
        are_ranges: list[bool] = []
        self._list("(", ")", lambda: are_ranges.append(self.expression()))
        if any(are_ranges) is not (function in RANGE_FUNCTIONS):
            raise SyntaxProblem(f"{function} of instants or of ranges? {self._text}")

    def _selector(self, name: str) -> bool:
        matchers: dict[str, tuple[str, str]] = {}

        def matcher() -> None:
            label = self._text_of("name")
            operator = self._token
            if not self._takes(*MATCHES):
                raise self.problem("a matcher")
            matchers[label] = operator, self._text_of("string")[1:-1]

        if self._token == "{":
            self._list("{", "}", matcher)
        self.selectors.append(Selector(name, matchers))
        is_range = self._takes("[")
        if is_range:
            if self.kind not in ("duration", "name"):
                raise self.problem("a duration")
            self._next()
            self._take("]")
        if self._takes("offset"):
            self._text_of("duration")
        return is_range

    def _label_list(self) -> None:
        self._list("(", ")", lambda: self.labels.add(self._text_of("name")))

    def _list(self, opening: str, closing: str, item: Callable[[], object]) -> None:
        self._take(opening)
        while self._token != closing:
            item()
            if not self._takes(","):
                break
        self._take(closing)
