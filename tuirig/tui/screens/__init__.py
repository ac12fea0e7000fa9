"""The screens beside the grid. Each is imported when it is opened."""

from __future__ import annotations

from tuirig.tui.screens.base import OtherScreen


def make_screen(name: str) -> OtherScreen:
    """A screen by its name in the table of keys."""
    match name:
        case "compare":
            from tuirig.tui.screens.compare import Compare

            return Compare()
        case "history":
            from tuirig.tui.screens.history import History

            return History()
        case "profiles":
            from tuirig.tui.screens.profiles import Profiles

            return Profiles()
        case "files":
            from tuirig.tui.screens.files import Files

            return Files()
        case "log":
            from tuirig.tui.screens.log import LogScreen

            return LogScreen()
    raise ValueError(name)
