"""Hosts: where a server runs. Today this machine; the protocol leaves room for others."""
