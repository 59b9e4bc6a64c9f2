"""Read a cluster's metadata log as Spark tables. Every module here needs the extra ``kraft-wire[spark]``.

``from kraft_wire.spark import session`` gives the function that starts a Spark session with the data source
``kraft``.
"""

from kraft_wire.spark.sessions import session

__all__ = ["session"]
