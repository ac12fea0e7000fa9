"""Profiles: which there are, which fit this card, which are stale and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult

from tuirig.tui.bindings import bindings_of
from tuirig.tui.panels import profiles
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.parts import Choices, Scrolling, Text
from tuirig.tui.spans import Line

if TYPE_CHECKING:
    from tuirig.runs.profile_list import ListedProfile


class ProfileTable(Choices):
    """A row per profile."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, nothing="looking for profiles")
        self.listed: tuple[ListedProfile, ...] = ()

    def head(self, width: int) -> Sequence[Line]:
        """The titles of the columns."""
        return [profiles.head(width)]

    def row(self, index: int, width: int) -> Line:
        """A profile."""
        return profiles.row(self.listed[index], width)


class Profiles(OtherScreen):
    """The table above, the chosen profile below."""

    NAME = "profiles"
    BINDINGS = bindings_of(NAME)

    def __init__(self) -> None:
        super().__init__()
        # Kept, not looked up: what is found beside the screen may come after it was left.
        self._table = ProfileTable(id="profiles")
        self._panel = Text(id="profile")

    def body(self) -> ComposeResult:
        """Table and panel."""
        self._table.border_title = "Profiles"
        yield self._table
        self._panel.border_subtitle = "Enter: the whole profile"
        yield self._panel

    def on_mount(self) -> None:
        """Look for them beside the screen."""
        super().on_mount()
        self._load()

    @work(exclusive=True, group="profiles")
    async def _load(self) -> None:
        from tuirig.runs.profile_list import listed_profiles

        table = self._table
        table.listed = await listed_profiles()
        table.nothing = "no profiles yet: s in the grid saves one"
        table.offer(len(table.listed))

    def on_choices_moved(self) -> None:
        """Another profile."""
        self._show()

    def _show(self) -> None:
        table, panel = self._table, self._panel
        if not table.listed:
            return
        one, whole = table.listed[table.cursor], self.has_class("-whole")
        panel.border_title = one.file.name
        panel.border_subtitle = f"Enter: {'less' if whole else 'the whole profile'}"

        def content(cells: int) -> Sequence[Line]:
            said = profiles.about(one, cells)
            return [*said, (), *profiles.whole(one, cells)] if whole else said

        panel.show(content)

    def action_whole(self) -> None:
        """The whole profile, which the keys then scroll; once more: the table again."""
        self.toggle_class("-whole")
        self.call_after_refresh(self._show)

    def scrolled(self) -> Scrolling:
        """The table, or the whole profile while it is shown."""
        return self._panel if self.has_class("-whole") else self._table
