"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a time, and hypothesis doesn't either: a busy machine is not a bug.
settings.register_profile("kraft-wire", deadline=None, print_blob=True)
settings.load_profile("kraft-wire")
