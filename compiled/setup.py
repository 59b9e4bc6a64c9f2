"""Compile the Cython sources that `python -m codegen cython` wrote to this folder; see `make
wheel-compiled`."""

from __future__ import annotations

import os
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

PACKAGE = Path("kraft_wire_compiled")
SOURCES = sorted(PACKAGE.glob("messages_*.pyx"))

CFLAGS = ["-O2", "-g0", "-Wno-unused-function", "-Wno-discarded-qualifiers"]
DIRECTIVES = {
    "language_level": 3,
    "binding": False,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "auto_pickle": False,
}

Options.emit_code_comments = False
extensions = [
    Extension(
        f"{PACKAGE.name}.{source.stem}",
        [source.as_posix()],
        extra_compile_args=CFLAGS,
        extra_link_args=["-s"],
    )
    for source in SOURCES
]
setup(
    ext_modules=cythonize(extensions, nthreads=os.cpu_count() or 1, compiler_directives=DIRECTIVES),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
