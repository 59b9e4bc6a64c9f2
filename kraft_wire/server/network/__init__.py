"""Sockets: listeners, connections of clients, connections to other controllers."""
