"""Files at the edge: rigs and profiles; model files fetched, hashed, looked into, repacked."""
