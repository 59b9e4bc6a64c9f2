"""TLS by Kafka's options, with servers that ask for a client certificate or don't."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kraft_wire.client.connection import Connector
from kraft_wire.client.errors import AuthenticationFailed
from kraft_wire.client.security_options import parse_security
from kraft_wire.client.tls import tls_context
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.registry import request_class
from kraft_wire.security.errors import BadSetting
from kraft_wire.wire.address import Address
from kraft_wire.wire.server_side import ServedApi, ServerSide, Slot
from tests.support.certificates import Authority, write_trusted_pkcs12

GIVE_UP_S = 30.0
PASSWORD = "hunter-2"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def trusting(authority: Authority, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "ca.pem").write_text(authority.pem)
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }


MAX_ENTRIES = 100


class Server:
    """Takes one connection, answers one ApiVersions, and says whose certificate it was shown."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(GIVE_UP_S)
        self.port: int = self._listener.getsockname()[1]
        self.client_name: str | None = None
        self.thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        raw, _ = self._listener.accept()
        with raw:
            stream = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            with stream:
                try:
                    stream.do_handshake()
                except (ssl.SSLError, ConnectionError):
                    with suppress(OSError):  # the client may be gone
                        stream.shutdown(socket.SHUT_WR)
                        while stream.recv(1 << 16):  # closing it now would take OpenSSL's last words away
                            pass
                    return
                certificate = stream.getpeercert()
                if certificate:
                    self.client_name = certificate["subject"][0][0][1]
                _answer(stream)

    def close(self) -> None:
        self._listener.close()


def _answer(stream: ssl.SSLSocket) -> None:
    server = ServerSide(
        lambda key, version: ServedApi(request_class(key), 100), 1 << 20, lambda: None, _unanswerable
    )
    while (request := server.next_frame()) is None:
        data = stream.recv(1 << 16)
        if not data:
            return
        server.receive(data)
    server.take(request).slot.answer(ApiVersionsResponse())
    stream.sendall(server.take_ready())


def _served(api_key: int, version: int) -> ServedApi:
    return ServedApi(request_class(api_key), MAX_ENTRIES)


def _unanswerable(slot: Slot, error: ProtocolError) -> None:
    raise error


@contextmanager
def serving(
    authority: Authority, folder: Path, *, host: str = "127.0.0.1", wants_ours: bool = False
) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("controller", host).write_pem(folder / "server.pem"))
    if wants_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem)
    server = Server(context)
    server.thread.start()
    try:
        yield server
    finally:
        server.thread.join(GIVE_UP_S)
        server.close()


def _connect(options: dict[str, str], port: int) -> None:
    Connector(parse_security(options), GIVE_UP_S).open(Address("127.0.0.1", port), GIVE_UP_S).close()


def test_a_controller_is_trusted_by_its_authority(
    authority: Authority, trusting: dict[str, str], tmp_path: Path
) -> None:
    with serving(authority, tmp_path) as server:
        _connect(trusting, server.port)


def test_the_trust_store_may_be_a_pkcs12_or_a_text(authority: Authority, tmp_path: Path) -> None:
    store = write_trusted_pkcs12(authority, tmp_path / "ca.p12", PASSWORD)
    by_file = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": PASSWORD,
    }
    by_text = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.pem}
    for options in (by_file, by_text):
        with serving(authority, tmp_path) as server:
            _connect({"security.protocol": "SSL", **options}, server.port)


def test_a_controller_of_another_authority_is_refused(trusting: dict[str, str], tmp_path: Path) -> None:
    with (
        serving(Authority("somebody else"), tmp_path) as server,
        pytest.raises(AuthenticationFailed, match=r"certificate is not accepted: .*kafka\.ssl\.truststore"),
    ):
        _connect(trusting, server.port)


def test_a_certificate_for_another_host_is_refused_unless_hosts_are_not_compared(
    authority: Authority, trusting: dict[str, str], tmp_path: Path
) -> None:
    with (
        serving(authority, tmp_path, host="10.0.0.1") as server,
        pytest.raises(AuthenticationFailed, match=r"certificate is not valid for '127\.0\.0\.1'"),
    ):
        _connect(trusting, server.port)
    with serving(authority, tmp_path, host="10.0.0.1") as server:
        _connect({**trusting, "ssl.endpoint.identification.algorithm": ""}, server.port)


@pytest.mark.parametrize("form", ["pem", "encrypted pem", "pkcs12", "texts"])
def test_the_client_certificate_is_sent(
    form: str, authority: Authority, trusting: dict[str, str], tmp_path: Path
) -> None:
    own = authority.issue("reader")
    file = tmp_path / "own"
    if form == "pkcs12":
        own.write_pkcs12(file, PASSWORD)
        keys = {"ssl.keystore.location": str(file), "ssl.keystore.password": PASSWORD}
    elif form == "texts":
        keys = {
            "ssl.keystore.key": own.key_pem(PASSWORD),
            "ssl.keystore.certificate.chain": own.chain_pem,
            "ssl.key.password": PASSWORD,
        }
    else:
        password = PASSWORD if form == "encrypted pem" else None
        own.write_pem(file, password)
        keys = {"ssl.keystore.location": str(file), **({"ssl.key.password": password} if password else {})}
    kind = "PKCS12" if form == "pkcs12" else "PEM"
    with serving(authority, tmp_path, wants_ours=True) as server:
        _connect({**trusting, "ssl.keystore.type": kind, **keys}, server.port)
    assert server.client_name == "reader"


def test_a_missing_client_certificate_is_an_error_that_says_so(
    authority: Authority, trusting: dict[str, str], tmp_path: Path
) -> None:
    with (
        serving(authority, tmp_path, wants_ours=True) as server,
        pytest.raises(AuthenticationFailed, match=r"check kafka\.ssl\.keystore"),
    ):
        _connect(trusting, server.port)


@pytest.mark.parametrize(
    ("store", "kind", "content", "problem"),
    [
        ("truststore", "PEM", None, "location: {file}: No such file or directory"),
        ("truststore", "PEM", b"hunter-2", "{file} has no certificate that can be read"),
        ("truststore", "PEM", b"\xff\xfe", "{file} can't be opened: it is not a PEM file"),
        (
            "truststore",
            "PKCS12",
            b"hunter-2",
            "{file} can't be opened: it is not a PKCS12 file, or the password is",
        ),
        ("keystore", "PEM", b"hunter-2", "the key and its certificate can't be read"),
        (
            "keystore",
            "PKCS12",
            b"hunter-2",
            "{file} can't be opened: it is not a PKCS12 file, or the password is",
        ),
    ],
)
def test_a_store_that_can_not_be_read_is_named(
    store: str, kind: str, content: bytes | None, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "store"
    if content is not None:
        file.write_bytes(content)
    options = {
        "security.protocol": "SSL",
        f"ssl.{store}.type": kind,
        f"ssl.{store}.location": str(file),
        f"ssl.{store}.password": PASSWORD,
    }
    tls = parse_security(options).tls
    assert tls is not None
    with pytest.raises(BadSetting) as error:
        tls_context(tls)
    assert problem.format(file=file) in str(error.value)
    assert PASSWORD not in str(error.value)


def test_a_wrong_password_is_not_shown(authority: Authority, tmp_path: Path) -> None:
    own = authority.issue("reader")
    for kind, file in (
        ("PEM", own.write_pem(tmp_path / "own.pem", PASSWORD)),
        ("PKCS12", own.write_pkcs12(tmp_path / "own.p12", PASSWORD)),
    ):
        options = {
            "security.protocol": "SSL",
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(file),
            "ssl.keystore.password": "wrong-1",
            "ssl.key.password": "wrong-1",
        }
        tls = parse_security(options).tls
        assert tls is not None
        with pytest.raises(BadSetting) as error:
            tls_context(tls)
        assert "wrong-1" not in str(error.value)
