"""Load a message with one of the Python codecs, and give the statements to time, as the codec's users write
them."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from io import BytesIO
from typing import Any

import msgspec


class NoSuchMessage(LookupError):
    """The codec lacks the message, or this version of it."""


class Loaded(msgspec.Struct, frozen=True):
    """One message of one codec. The statements are Python code that uses the names in ``scope``."""

    decode: str
    encode: str
    scope: dict[str, Any]

    def run(self, statement: str) -> Any:
        return eval(statement, self.scope)


WITHOUT_TEST_SUPPORT = "import sys; sys.modules['hypothesis'] = None"
"""kio adds support for hypothesis if it is installed; its users' programs don't have it installed."""

OURS_PURE = "kraft-wire"
OURS_COMPILED = "kraft-wire-compiled"
KIO = "kio"
KAFKA_PYTHON = "kafka-python"


def load(codec: str, message: str, version: int, data: bytes) -> Loaded:
    """Load the message in ``data`` with a codec. Raises NoSuchMessage if the codec lacks it."""
    if codec == KIO:
        return _load_kio(message, version, data)
    if codec == KAFKA_PYTHON:
        return _load_kafka_python(message, version, data)
    return _load_ours(message, version, data, compiled=codec == OURS_COMPILED)


def library_version(codec: str) -> str:
    return installed_version({OURS_COMPILED: OURS_PURE}.get(codec, codec))


def _load_ours(message: str, version: int, data: bytes, compiled: bool) -> Loaded:
    from kraft_wire.protocol.registry import message_class
    from kraft_wire.protocol.tier import COMPILED, PURE, tier_of

    cls = message_class(message)
    if tier_of(cls) != (COMPILED if compiled else PURE):
        raise RuntimeError(f"{message} is {tier_of(cls)}")
    scope = {"Message": cls, "data": data, "message": cls.decode(data, version)}
    return Loaded(f"Message.decode(data, {version})", f"message.encode({version})", scope)


def _load_kio(message: str, version: int, data: bytes) -> Loaded:
    exec(WITHOUT_TEST_SUPPORT)
    from kio.serial import entity_reader, entity_writer

    from compat.judges.client_codecs import kio_codec

    if version not in kio_codec.versions(message):
        raise NoSuchMessage(message)
    entity = kio_codec.entity_class(message, version)
    read, write = entity_reader(entity), entity_writer(entity)

    def encode(message: Any) -> bytes:
        with BytesIO() as buffer:
            write(buffer, message)
            return buffer.getvalue()

    scope = {"read": read, "encode": encode, "data": data, "message": read(data, 0)[0]}
    return Loaded("read(data, 0)", "encode(message)", scope)


def _load_kafka_python(message: str, version: int, data: bytes) -> Loaded:
    from compat.judges.client_codecs import kafka_python_codec

    if version not in kafka_python_codec.versions(message):
        raise NoSuchMessage(message)
    cls = kafka_python_codec.message_class(message)
    scope = {"Message": cls, "data": data, "message": cls.decode(data, version=version)}
    return Loaded(f"Message.decode(data, version={version})", "message.encode()", scope)
