"""A cluster's metadata log as tables, for Spark: everything here needs the extra ``kraft-wire[spark]``."""
