"""Serve metrics and health over HTTP/1.1, on a listener of its own that is off by default.

``pages`` says what is answered, without I/O. ``connection`` speaks HTTP (h11) on one stream, within limits.
``listener`` accepts connections. Only ``server/main.py`` imports this package, if the listener is configured:
h11 and prometheus_client take 15 ms to import.
"""
