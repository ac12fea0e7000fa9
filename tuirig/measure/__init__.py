"""Measuring: one reply, one arm, prompts, proof of drafting, telemetry beside the timed path."""
