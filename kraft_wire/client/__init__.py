"""A quorum of controllers, Java's or ours, read over the wire: blocking, for processes that aren't ours."""
