"""Tell which names of character properties Java knows: ``\\p{Alpha}``, ``\\p{IsLatin}``, ``\\p{sc=Grek}``."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.regex.unicode_names import is_block, is_script


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CATEGORIES: Final = _words(
    "Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf"
    " L M N Z C P S LC LD L1 all"
)
POSIX: Final = _words("Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit")
JAVA_METHODS: Final = _words(
    "LowerCase UpperCase Alphabetic Ideographic TitleCase Digit Defined Letter LetterOrDigit"
    " JavaIdentifierStart JavaIdentifierPart UnicodeIdentifierStart UnicodeIdentifierPart"
    " IdentifierIgnorable SpaceChar Whitespace ISOControl Mirrored"
)
"""The names after ``java``."""
UNICODE_NAMES: Final = _words(
    "ALPHABETIC ASSIGNED CONTROL HEXDIGIT HEX_DIGIT IDEOGRAPHIC JOINCONTROL JOIN_CONTROL LETTER LOWERCASE"
    " NONCHARACTERCODEPOINT NONCHARACTER_CODE_POINT TITLECASE PUNCTUATION UPPERCASE WHITESPACE WHITE_SPACE"
    " WORD"
)
"""The names after ``Is``, in any case."""
_POSIX_IN_ANY_CASE: Final = frozenset(name.upper() for name in POSIX)


def is_property(name: str, *, is_unicode: bool) -> bool:
    """Whether Java knows a property. ``is_unicode`` is the flag U, with which POSIX names are in any case."""
    kind, separator, value = name.partition("=")
    if separator:
        return _is_value(kind.lower(), value)
    if name.startswith("In"):
        return is_block(name[2:])
    if name.startswith("Is"):
        return _is_unicode_property(name[2:])
    return _is_general(name) or (is_unicode and name.upper() in _POSIX_IN_ANY_CASE)


def _is_value(kind: str, value: str) -> bool:
    match kind:
        case "sc" | "script":
            return is_script(value)
        case "blk" | "block":
            return is_block(value)
        case "gc" | "general_category":
            return _is_general(value)
        case _:
            return False


def _is_unicode_property(name: str) -> bool:
    known = name.upper() in UNICODE_NAMES or name.upper() in _POSIX_IN_ANY_CASE
    return known or _is_general(name) or is_script(name)


def _is_general(name: str) -> bool:
    if name.startswith("java"):
        return name[4:] in JAVA_METHODS
    return name in CATEGORIES or name in POSIX or name == "ASCII"
