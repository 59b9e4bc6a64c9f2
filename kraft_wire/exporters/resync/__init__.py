"""The log may be deleted before a sink has its records. Then the sink gets a difference (``difference``):
what makes the state that it has the state of the newest snapshot. The first state is kept in time
(``bases``)."""
