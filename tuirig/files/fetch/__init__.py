"""Model files from the Hub or a URL: pinned, resumed, and checked before they get their name."""
