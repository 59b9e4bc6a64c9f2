"""Read a quorum of controllers, Java's or ours, over the wire: blocking, for processes that are not
controllers.

``leader_search.py`` decides which controller to ask next. ``quorum.py`` repeats a question until the leader
has answered it or ``default.api.timeout.ms`` is over; the error then names every controller with its last
answer. A controller that is silent for a sixth of ``request.timeout.ms`` is abandoned and the next one is
asked. ``live_log.py`` reads the log as an observer does, with replica id -1, which acknowledges nothing.
Controllers also serve uncommitted records; the client cuts at the high watermark.

Facts about leaders, Java's and ours:

- A Fetch of offset 0 is redirected to the newest snapshot if there is one, although the log may start at 0.
  Offset 0 can still be read with a Fetch from offset 1 on, unless it is alone in its batch.
- The oldest snapshot is announced nowhere. ``LiveLog.oldest_snapshot`` derives it from the log start offset.
- The last committed record is of the leader's own epoch as soon as the leader knows a high watermark.
- A Fetch needs ClusterAction on the cluster. DescribeCluster, which gives the cluster id, needs Alter and
  metadata.version 3.7, unless the option ``cluster.id`` gives the id.
"""
