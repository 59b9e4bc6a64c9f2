"""The trio shell: listeners, connections, timers. It decides nothing."""
