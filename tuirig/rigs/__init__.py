"""Rigs, settings and profiles as data: schema, validation, naming. Pure: no file, no process."""
