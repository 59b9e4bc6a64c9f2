"""Files: segments, snapshots, quorum-state, meta.properties, and their fsyncs.

- ``durable-floor`` lies beside the segments. It says how much of the log is known to be flushed and how much
  is known to be committed. A starting node replays the committed part before it knows any leader. Recovery
  uses the flushed part to tell a torn tail from damage. The file may lag after a power cut, so bytes above
  the floor count as torn only if they look torn: the file ends inside them, or a block of them reads as
  zeros. Flushing the floor on each commit would cost a second fdatasync.
- A power cut leaves more than a short file. Unflushed blocks reach the disk in any order, so whole batches
  may follow a batch that reads as zeros. Bytes that were cut off with the file's length are still in its
  last block and would come back with the next unflushed write, so a segment clears them.
- Damage below a whole snapshot loses nothing but history. The log then starts at that snapshot's end, or at
  the start of a segment before it. A remaining part of a segment becomes a segment of its own and is durable
  before anything else moves.
- What was lost is remembered before it is cut off: ``lost-below`` says how far the log must be fetched again
  before this node may vote. It is the highest of the durable floor, the snapshots' ends, and the end of the
  last whole batch after the damage, plus one record for every seven unreadable bytes after that batch.
"""
