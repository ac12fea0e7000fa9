"""Runs: what a person asks for, made of arms. The session holds one rig's server between them."""
