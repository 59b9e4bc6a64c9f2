"""``python -m compat.bench_codec.worker CODEC``: one Python codec in a process of its own, driven by lines.

    load MESSAGE VERSION HEX   -> "ready VERSION-OF-THE-LIBRARY", or "none" where the codec lacks the message
    decode LOOPS, encode LOOPS -> the nanoseconds of processor time that so many calls took

Nothing else is imported than what the codec brings, and the garbage collector runs, as in its users'
programs. compat/java/CodecSpeed.java speaks the same.
"""

from __future__ import annotations

import gc
import sys
from time import process_time
from timeit import Timer

from compat.bench_codec.codecs import Loaded, NoSuchMessage, library_version, load

NS_PER_S = 1_000_000_000


def main(codec: str) -> None:
    timers: dict[str, Timer] = {}
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "load":
            message, version, data = arguments
            try:
                loaded = load(codec, message, int(version), bytes.fromhex(data))
            except NoSuchMessage:
                _answer("none")
                continue
            _check(loaded, message)
            timers = {"decode": _timer(loaded, loaded.decode), "encode": _timer(loaded, loaded.encode)}
            _answer(f"ready {library_version(codec)}")
        else:
            _answer(str(round(timers[command].timeit(int(arguments[0])) * NS_PER_S)))


def _timer(loaded: Loaded, statement: str) -> Timer:
    """timeit turns the collector off; the setup turns it on again."""
    scope = {**loaded.scope, "enable_gc": gc.enable}
    return Timer(statement, "enable_gc()", timer=process_time, globals=scope)


def _check(loaded: Loaded, message: str) -> None:
    """What isn't right needn't be fast."""
    if loaded.run(loaded.encode) != loaded.scope["data"]:
        raise RuntimeError(f"{message}: what was decoded encodes to other bytes")
    loaded.run(loaded.decode)


def _answer(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
