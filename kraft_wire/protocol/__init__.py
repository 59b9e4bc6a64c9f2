"""The wire: primitives, framing, headers, errors and generated messages."""
