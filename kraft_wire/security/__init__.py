"""Principals, ACL operations, secrets, and the client's side of SASL, without I/O.

The server has no security yet: its side of SASL, and an authorizer, belong here.
"""
