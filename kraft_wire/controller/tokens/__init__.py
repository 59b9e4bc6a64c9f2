"""The APIs of delegation tokens, with which clients authenticate. KIP-48, KIP-373, KIP-900."""
