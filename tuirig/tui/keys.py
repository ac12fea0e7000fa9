"""The one table of keys: bindings, footer, palette, help and README come from it."""

from __future__ import annotations

from typing import NamedTuple

#: The grid, and the screens beside it.
TUNE = "tune"
OTHERS = ("compare", "history", "profiles", "files", "log")
ALL = (TUNE, *OTHERS)
#: Actions that a palette has no use for.
_BY_HAND = ("move", "side", "step", "page", "edge", "command_palette")


class Key(NamedTuple):
    """keys: Textual key names, comma separated. footer: short label where the footer shows it.

    on: the screens that have it.
    """

    keys: str
    action: str
    shown: str
    title: str
    help: str
    footer: str = ""
    on: tuple[str, ...] = (TUNE,)

    @property
    def in_palette(self) -> bool:
        """Whether the palette offers it."""
        return not self.action.startswith(_BY_HAND)


KEYS: tuple[Key, ...] = (
    Key("up,k", "move(-1, 0)", "↑ k", "Cell above", "move in the grid"),
    Key("down,j", "move(1, 0)", "↓ j", "Cell below", "move in the grid"),
    Key("left,h", "move(0, -1)", "← h", "Cell to the left", "move in the grid"),
    Key("right,l", "move(0, 1)", "→ l", "Cell to the right", "move in the grid"),
    Key("enter", "restart", "Enter", "Restart the server with this setting",
        "start the server with the chosen setting", "start"),
    Key("space", "stream", "Space", "Stream the test prompt",
        "stream the test prompt; again: cancel", "prompt"),
    Key("m", "measure", "m", "Measure this setting with 12 prompts",
        "measure the setting with 12 prompts; it waits while one is", "measure"),
    Key("v", "select", "v", "Select cells",
        "select the cells up to where you go; m measures them"),
    Key("t", "tune", "t", "Tune: find the best setting",
        "tune: find the best setting with few starts", "tune"),
    Key("a", "mark('a')", "a", "Mark the setting as A", "mark the setting as A, as B"),
    Key("b", "mark('b')", "b", "Mark the setting as B", "mark the setting as A, as B"),
    Key("c", "compare", "c", "Compare A with B", "compare A with B: A B B A, until it is settled",
        on=(TUNE, "compare")),
    Key("p", "prompt(1)", "p", "Next prompt", "next, previous test prompt", on=(TUNE, "compare")),
    Key("P,shift+p", "prompt(-1)", "P", "Previous prompt", "next, previous test prompt",
        on=(TUNE, "compare")),
    Key("s", "save", "s", "Save the profile", "save the chosen setting as this card's profile",
        "save"),
    Key("y", "copy_command", "y", "Copy the command line", "copy the command line of the setting"),
    Key("r", "rigs", "r", "Rigs", "choose another rig"),
    Key("o", "log", "o", "The server's log", "open or close the server's log"),
    Key("f", "freeze", "f", "Freeze the panes", "freeze the panes (measuring goes on)"),
    Key("1,escape", "app.show('tune')", "1 Esc", "Tune",
        "from every other screen: back to the grid", "grid", OTHERS),
    Key("left,h", "side(-1)", "← h", "To the left", "in the Log: sideways", on=("log",)),
    Key("right,l", "side(1)", "→ l", "To the right", "in the Log: sideways", on=("log",)),
    Key("2", "app.show('compare')", "2", "Compare",
        "Compare: how sure the answer is, both texts side by side", on=ALL),
    Key("3", "app.show('history')", "3", "History", "History: past runs of this rig", on=ALL),
    Key("4", "app.show('profiles')", "4", "Profiles",
        "Profiles: saved and shipped, which fit, which are stale", on=ALL),
    Key("5", "app.show('files')", "5", "Files",
        "Files: the rig's models, what they are, whether they fit", on=ALL),
    Key("6", "app.show('log')", "6", "Log", "Log: the server's log, full screen", on=ALL),
    Key("up,k", "step(-1)", "↑ k", "Up",
        "in History and Profiles: choose; in the others: scroll", on=OTHERS),
    Key("down,j", "step(1)", "↓ j", "Down",
        "in History and Profiles: choose; in the others: scroll", on=OTHERS),
    Key("left,h", "chart(-1)", "← h", "Chart before", "in History: the charts of the run",
        on=("history",)),
    Key("right,l", "chart(1)", "→ l", "Next chart", "in History: the charts of the run",
        on=("history",)),
    Key("pageup", "page(-1)", "PgUp", "Page up", "scroll by a page", on=OTHERS),
    Key("pagedown", "page(1)", "PgDn", "Page down", "scroll by a page", on=OTHERS),
    Key("home", "edge(-1)", "Home", "To the start", "to the start, to the end", on=OTHERS),
    Key("end", "edge(1)", "End", "To the end", "to the start, to the end", on=OTHERS),
    Key("enter", "whole", "Enter", "The whole profile",
        "in Profiles: show or hide the whole profile", on=("profiles",)),
    Key("n", "messages", "n", "Messages", "the messages so far, to read them again", on=ALL),
    Key("x", "stop", "x", "Stop the server", "stop the server"),
    Key("escape", "cancel", "Esc", "Cancel", "back; cancels what runs"),
    Key("question_mark,f1", "keys", "?", "Help", "the keys and the words of this screen", "help",
        ALL),
    Key("ctrl+p", "command_palette", "Ctrl+P", "Palette", "command palette", on=ALL),
    Key("ctrl+z", "app.suspend_process", "Ctrl+Z", "Suspend", "to the shell; fg comes back",
        on=ALL),
    Key("q,ctrl+q", "leave", "q", "Quit", "quit (asks if a server is running)", "quit",
        ALL),
)  # fmt: skip


def keys_of(screen: str) -> tuple[Key, ...]:
    """The keys of a screen."""
    return tuple(key for key in KEYS if screen in key.on)


def label(key: Key, screen: str) -> str:
    """What a screen's footer calls a key, empty where it does not show it.

    Beside the grid the footer leads from screen to screen.
    """
    if screen == TUNE:
        return key.footer
    leads = key.action.startswith(("app.show", "keys"))
    return (key.footer or key.title.lower()) if leads else ""


def rows(screen: str = "") -> list[tuple[str, str]]:
    """(keys, what they do) of a screen or of all; neighbours that do the same share a row."""
    folded: list[tuple[str, str]] = []
    for key in keys_of(screen) if screen else KEYS:
        does = key.help or key.title
        if folded and folded[-1][1] == does:
            folded[-1] = (f"{folded[-1][0]} {key.shown}", does)
        else:
            folded.append((key.shown, does))
    return folded
