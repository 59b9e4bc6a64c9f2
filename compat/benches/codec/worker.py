"""Run one Python codec in a process of its own: ``python -m compat.benches.codec.worker CODEC``.

Each line on standard input is a command, answered by one line:

    load MESSAGE VERSION HEX... -> "ready VERSION-OF-THE-LIBRARY", or "none" if the codec lacks the message
    decode LOOPS                -> the nanoseconds of processor time for so many calls with each HEX
    encode LOOPS                -> the same for calls with the message of the first HEX

Only the codec is imported, and the garbage collector runs, as in the programs of its users.
compat/java/CodecSpeed.java has the same interface.
"""

from __future__ import annotations

import gc
import sys
from time import process_time
from timeit import Timer

from compat.benches.codec.codecs import Loaded, NoSuchMessage, library_version, load

NS_PER_S = 1_000_000_000


def main(codec: str) -> None:
    timers: dict[str, Timer] = {}
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "load":
            message, version, *texts = arguments
            payloads = [bytes.fromhex(text) for text in texts]
            try:
                timers = _timers(codec, message, int(version), payloads)
            except NoSuchMessage:
                _answer("none")
            else:
                _answer(f"ready {library_version(codec)}")
        else:
            _answer(str(round(timers[command].timeit(int(arguments[0])) * NS_PER_S)))


def _timer(loaded: Loaded, statement: str) -> Timer:
    """Return a timer that turns the garbage collector on again, which timeit turns off."""
    scope = {**loaded.scope, "enable_gc": gc.enable}
    return Timer(statement, "enable_gc()", timer=process_time, globals=scope)


def _timers(codec: str, message: str, version: int, payloads: list[bytes]) -> dict[str, Timer]:
    """Check all payloads but keep only the first one's message: a large heap would slow the collector."""
    for data in payloads:
        _check(load(codec, message, version, data), message)
    loaded = load(codec, message, version, payloads[0])
    loaded.scope["payloads"] = payloads
    decode = loaded.decode if len(payloads) == 1 else f"for data in payloads: {loaded.decode}"
    return {"decode": _timer(loaded, decode), "encode": _timer(loaded, loaded.encode)}


def _check(loaded: Loaded, message: str) -> None:
    """Raise RuntimeError unless encoding restores the bytes, so that only a correct codec is measured."""
    if loaded.run(loaded.encode) != loaded.scope["data"]:
        raise RuntimeError(f"{message}: the decoded message encodes to other bytes")
    loaded.run(loaded.decode)


def _answer(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
