"""``kraft-wire observe``: ``observe.py`` is the command, ``joining.py`` decides how a first start goes."""
