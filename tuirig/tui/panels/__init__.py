"""Panels as pure functions: the view in, lines of spans out."""
