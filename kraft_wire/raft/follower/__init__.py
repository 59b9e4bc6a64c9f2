"""The follower: find the leader, replicate its log, install its snapshots."""
