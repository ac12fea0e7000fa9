"""Cards: what holds the model and how it feels. Every reading may be None."""
