"""Compute the fingerprint of the facts that a codec depends on. With it outdated compiled code is
recognised."""

from __future__ import annotations

from hashlib import sha256

from codegen.emit.plan import FieldPlan, MessagePlan

CHARACTERS = 16


def fingerprint(plan: MessagePlan) -> str:
    """Return the fingerprint. It is the same for two plans only if their messages have the same classes and
    the same bytes."""
    facts: list[object] = [plan.message.name, str(plan.message.versions), plan.flexible_from]
    for struct in plan.structs:
        facts += [struct.name, str(struct.versions), struct.can_be_flexible, len(struct.fields)]
        facts += [_field(each) for each in struct.fields]
    return sha256(repr(facts).encode()).hexdigest()[:CHARACTERS]


def _field(field: FieldPlan) -> tuple[object, ...]:
    versions = (str(field.present), str(field.nullable), str(field.tagged))
    return (
        field.name,
        str(field.type),
        *versions,
        field.tag,
        field.flexible_from,
        field.ignorable,
        field.default,
    )
