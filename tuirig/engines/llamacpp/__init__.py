"""llama.cpp: its `llama-server` program."""
