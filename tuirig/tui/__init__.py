"""The terminal UI: thin widgets over the stream of events."""
