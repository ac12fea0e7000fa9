"""The headless front: arguments in, text on stderr, JSON on stdout, exit codes."""
