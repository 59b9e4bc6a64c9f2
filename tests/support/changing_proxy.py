"""Run a proxy that replaces bytes in a server's answers by others of the same length."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

GIVE_UP_S = 60.0


class ChangingProxy:
    """A proxy that listens at once and forwards to ``target`` once that is set."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.address = f"{host}:{port}"
        self.target: tuple[str, int] | None = None
        self.changes: dict[bytes, bytes] = {}
        self._stack = ExitStack()
        self._threads: list[threading.Thread] = []
        self._run(self._accept)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._stack.close()
        for thread in self._threads:
            thread.join(GIVE_UP_S)

    def _run(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # closing the listener ends the loop
            while True:
                client, _ = self._listener.accept()
                assert self.target is not None, "a client connected before the target was set"
                server = socket.create_connection(self.target)
                for each in (client, server):
                    self._stack.callback(_close, each)
                self._run(_forward, client, server, {})
                self._run(_forward, server, client, self.changes)


def _forward(source: socket.socket, sink: socket.socket, changes: dict[bytes, bytes]) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 20):
            for old, new in changes.items():
                data = data.replace(old, new)
            sink.sendall(data)
    _close(sink)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def changing_proxy() -> Iterator[ChangingProxy]:
    proxy = ChangingProxy()
    try:
        yield proxy
    finally:
        proxy.close()
