"""Exact repack of a quantization-aware-trained checkpoint: its 4-bit grid as Q4_0, or its bf16.

Everything here but `report` needs numpy, which comes with the extra `repack`.
"""

from __future__ import annotations

from importlib.util import find_spec

from tuirig.errors import MissingError


def need_numpy() -> None:
    """Raises MissingError where numpy is not installed; ask before importing what needs it."""
    if find_spec("numpy") is None:
        raise MissingError(
            "repacking needs numpy, which is not installed",
            hint="install the extra repack: pip install 'tuirig[repack]'",
        )
