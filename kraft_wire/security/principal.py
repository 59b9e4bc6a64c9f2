"""Principals: the identities that requests are made with."""

from __future__ import annotations

import msgspec


class Principal(msgspec.Struct, frozen=True, gc=False):
    """An authenticated identity, as Kafka's KafkaPrincipal: a type ("User") and a name."""

    kind: str = "User"
    name: str = "ANONYMOUS"
    token_authenticated: bool = False
