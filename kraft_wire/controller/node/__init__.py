"""The node without I/O: ``Node.step`` drives the raft core and the controller."""
