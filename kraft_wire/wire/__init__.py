"""Kafka's wire protocol between two processes, without I/O.

Every client uses ``client_side``, every listener ``server_side``. They are made of frames (``framing``),
headers (``headers``), the versions that a peer serves (``served_versions``), and the first requests of a
client's connection (``opening``). Only clients need the last two.
"""
