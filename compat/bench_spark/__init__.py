"""How fast metadata logs become tables: ``python -m compat.bench_spark``."""
