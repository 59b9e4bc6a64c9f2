"""The compiled codec is in use here; if it doesn't fit it isn't used. Each case runs in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType

import kraft_wire_compiled
import pytest

import kraft_wire
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.tier import COMPILED, INTERFACE, tier, tier_of
from tests.support.random_messages import all_messages

ROOT = Path(__file__).resolve().parents[2]
STALE = """
known = kraft_wire_compiled.FINGERPRINTS["kraft_wire.protocol.messages"]
known["vote_request"] = known["fetch_request"] = "0"
"""
FIELDS = (
    "error_code: int = 0; topics: list = []; node_endpoints: list = []; unknown_tagged_fields: tuple = ()"
)
REPORT = """
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.tier import tier, tier_of
names = ["VoteRequest", "FetchRequest", "VoteResponse"]
print(tier(), *(tier_of(message_class(name)) for name in names))
print(all(message_class(name)().encode(message_class(name).MAX_VERSION) for name in names))
"""


def run(setting: str, **environment: str) -> tuple[list[str], list[str]]:
    """Return the lines that REPORT prints after ``setting``, and the warnings."""
    script = f"import sys, kraft_wire_compiled\n{setting}\n{REPORT}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.NAME)
def test_every_message_is_compiled(cls: type[Message]) -> None:
    assert tier() == tier_of(cls) == COMPILED
    assert isinstance(cls.decode, BuiltinFunctionType)
    assert isinstance(cls.decode_from, BuiltinFunctionType)
    assert isinstance(cls.encode, MethodDescriptorType)
    assert isinstance(cls.encode_into, MethodDescriptorType)


def test_the_compiled_package_is_of_this_version_and_interface() -> None:
    ours, theirs = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (ROOT, ROOT / "compiled")
    )
    assert theirs["version"] == kraft_wire.__version__
    assert theirs["dependencies"] == [f"kraft-wire=={kraft_wire.__version__}"]
    assert ours["optional-dependencies"]["compiled"] == [f"kraft-wire-compiled=={kraft_wire.__version__}"]
    assert kraft_wire_compiled.INTERFACE == INTERFACE


def test_a_compiled_codec_of_another_plan_is_not_used_and_one_warning_says_so() -> None:
    lines, warnings = run(STALE)
    assert lines == ["compiled pure pure compiled", "True"]
    (warning,) = warnings
    assert "kraft_wire_compiled was made from another VoteRequest" in warning


def test_a_compiled_codec_of_another_interface_is_not_used_and_one_warning_says_so() -> None:
    lines, warnings = run("kraft_wire_compiled.INTERFACE = 0")
    assert lines == ["pure pure pure pure", "True"]
    (warning,) = warnings
    assert "is made for interface 0, but this is" in warning


@pytest.mark.parametrize("missing", ["kraft_wire_compiled.index", "kraft_wire_compiled.messages_0"])
def test_a_compiled_codec_that_cannot_be_loaded_is_not_used_and_one_warning_says_so(missing: str) -> None:
    groups = "kraft_wire_compiled.EXTENSIONS"
    one_group = f"{groups}.update(dict.fromkeys({groups}, 'messages_0'))"
    unload = "del sys.modules['kraft_wire_compiled']" if missing.endswith("index") else one_group
    lines, warnings = run(f"{unload}\nsys.modules[{missing!r}] = None")
    assert [tiers.split()[1:] for tiers in lines[:1]] == [["pure"] * 3]
    assert lines[1:] == ["True"]
    (warning,) = warnings
    assert "kraft_wire_compiled can't be loaded (" in warning


OTHER_LAYOUTS = {
    "one field more": ("module.VoteResponse", "gc=False", "more: int = 0"),
    "weak references": ("Message", "gc=True, weakref=True", FIELDS),
    "garbage collection": ("Message", "gc=True", FIELDS),
    "other names": ("Message", "gc=False", FIELDS.replace("error_code", "code")),
}


@pytest.mark.parametrize("layout", OTHER_LAYOUTS.values(), ids=OTHER_LAYOUTS)
def test_a_class_that_is_laid_out_otherwise_is_not_taken_over(layout: tuple[str, str, str]) -> None:
    base, options, body = layout
    setting = f"""
import kraft_wire.protocol.messages.vote_response as module
import kraft_wire
from kraft_wire.protocol.message import Message
class Other({base}, {options}):
    {body}
Other.__module__, original, module.VoteResponse = module.__name__, module.VoteResponse, Other
assert not kraft_wire_compiled.install(Other)
assert type(Other.encode).__name__ == "function" or Other.encode is original.encode
module.VoteResponse = original
"""
    lines, _ = run(setting)
    assert lines == ["compiled compiled compiled compiled", "True"]


def test_the_environment_can_switch_it_off() -> None:
    lines, warnings = run("", KRAFT_WIRE_PURE="1")
    assert lines == ["pure pure pure pure", "True"]
    assert not warnings


def test_messages_of_other_packages_stay_python() -> None:
    from kraft_wire.raft.membership.kip_853.vote_request import VoteRequest

    assert tier_of(VoteRequest) == "pure"
    assert VoteRequest.decode(VoteRequest().encode(1), 1) == VoteRequest()
