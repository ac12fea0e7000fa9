"""Engines: server programs. Command line, capabilities, lifecycle, metrics dialect."""
