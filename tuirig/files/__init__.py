"""Files at the edge: rig and profile files, model files, hashes."""
