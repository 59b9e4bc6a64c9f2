"""The APIs and rules of brokers: registration, heartbeats, fencing and removal."""
