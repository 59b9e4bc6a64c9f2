"""Provide ``np``: numpy, loaded at its first use.

Loading numpy takes a fifth of a server's start, and a cluster without partitions doesn't need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        def __getattr__(self, name: str) -> object:
            import numpy

            return getattr(numpy, name)

    np = _Numpy()

__all__ = ["np"]
