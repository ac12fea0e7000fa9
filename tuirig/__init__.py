"""tuirig: the best drafter and draft length of llama-server for each card, proven and saved."""

__version__ = "0.1.0"
