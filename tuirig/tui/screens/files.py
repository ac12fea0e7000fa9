"""Files: what the rig's models are by their headers, and whether they fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult

from tuirig.errors import TuirigError
from tuirig.events import ServerState
from tuirig.tui.bindings import bindings_of
from tuirig.tui.panels import files
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.parts import Scrolling
from tuirig.tui.spans import Line, Span, line, wrap

if TYPE_CHECKING:
    from tuirig.runs.rig_files import RigFiles


class FileList(Scrolling):
    """A block per row of the grid."""

    looked: RigFiles | None = None
    note = "reading headers"

    def rows(self, width: int) -> Sequence[Line]:
        """The blocks, or what happens instead."""
        if self.looked is None:
            return [line(Span(row, "dim")) for row in wrap(self.note, width)]
        return files.files(self.looked, width)


class Files(OtherScreen):
    """The target and its drafters."""

    NAME = "files"
    BINDINGS = bindings_of(NAME)

    def body(self) -> ComposeResult:
        """All in one list."""
        listed = FileList(id="files")
        listed.border_title = f"Files of {self.view.rig.name}"
        yield listed

    def on_mount(self) -> None:
        """Read the headers beside the screen."""
        super().on_mount()
        self._load()

    @work(exclusive=True, group="files")
    async def _load(self) -> None:
        from tuirig.runs.rig_files import look_at_files

        listed = self.query_one(FileList)
        runs = self.view.server.state not in (ServerState.STOPPED, ServerState.FAILED)
        try:
            listed.looked = await asyncio.to_thread(
                look_at_files, self.main.found, server_runs=runs
            )
        except TuirigError as error:
            listed.note = error.text()
        listed.redraw()
