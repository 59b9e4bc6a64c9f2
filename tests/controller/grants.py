"""Authorizers for tests."""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context
from kraft_wire.security.authorization import AclOperation, Resource

Grant = tuple[AclOperation, Resource]


class Grants:
    """An authorizer that permits exactly these operations, to every principal or to one.

    ``asked`` are the permissions that were asked for, in their order.
    """

    def __init__(self, *granted: Grant, principal: str | None = None) -> None:
        self.asked: list[Grant] = []
        self._granted = set(granted)
        self._principal = principal

    def authorize(self, context: Context, operation: AclOperation, resource: Resource) -> bool:
        self.asked.append((operation, resource))
        is_meant = self._principal is None or context.principal.name == self._principal
        return is_meant and (operation, resource) in self._granted
