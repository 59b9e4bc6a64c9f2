"""Errors of security settings and of authentication."""

from __future__ import annotations


class BadSetting(Exception):
    """A setting of a connection that can't be used. The text never contains a secret."""


class AuthenticationFailed(Exception):
    """One end of a connection doesn't accept the identity of the other end."""


class MechanismRefused(AuthenticationFailed):
    """The server refused a SASL mechanism. ``enabled`` are the mechanisms that it named instead: none if the
    listener doesn't use SASL."""

    def __init__(self, mechanism: str, enabled: tuple[str, ...], error: str) -> None:
        super().__init__(mechanism, enabled, error)
        self.mechanism = mechanism
        self.enabled = enabled
        self.error = error

    def __str__(self) -> str:
        enabled = ", ".join(self.enabled) or "none"
        return f"{self.error}: SASL mechanism {self.mechanism} was refused; enabled are: {enabled}"
