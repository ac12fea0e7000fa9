"""The built-in rigs: makers of small models that draft for real without a GPU or a download."""
