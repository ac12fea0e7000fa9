"""The one table of keys: bindings, footer, palette, help and README come from it."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """keys: Textual key names, comma separated. footer: short label where the footer shows it."""

    keys: str
    action: str
    shown: str
    title: str
    help: str
    footer: str = ""


KEYS: tuple[Key, ...] = (
    Key("up,k", "move(-1, 0)", "↑ k", "Cell above", "move in the grid"),
    Key("down,j", "move(1, 0)", "↓ j", "Cell below", "move in the grid"),
    Key("left,h", "move(0, -1)", "← h", "Cell to the left", "move in the grid"),
    Key("right,l", "move(0, 1)", "→ l", "Cell to the right", "move in the grid"),
    Key("enter", "restart", "Enter", "Restart the server with this setting",
        "restart the server with the chosen setting", "restart"),
    Key("space", "stream", "Space", "Stream the test prompt",
        "stream the test prompt; again: cancel", "prompt"),
    Key("m", "measure", "m", "Measure this setting with 12 prompts",
        "measure the chosen setting with 12 prompts; while one is measured: wait in line",
        "measure"),
    Key("t", "tune", "t", "Tune: find the best setting",
        "tune: find the best setting with few starts", "tune"),
    Key("a", "mark('a')", "a", "Mark the setting as A", "mark the setting as A, as B"),
    Key("b", "mark('b')", "b", "Mark the setting as B", "mark the setting as A, as B"),
    Key("c", "compare", "c", "Compare A with B", "compare A with B: A B B A, until it is settled"),
    Key("p", "prompt(1)", "p", "Next prompt", "next, previous test prompt"),
    Key("P,shift+p", "prompt(-1)", "P", "Previous prompt", "next, previous test prompt"),
    Key("s", "save", "s", "Save the profile", "save the chosen setting as this card's profile",
        "save"),
    Key("y", "copy_command", "y", "Copy the command line", "copy the command line of the setting"),
    Key("r", "rigs", "r", "Rigs", "choose another rig"),
    Key("o", "log", "o", "The server's log", "open or close the server's log"),
    Key("f", "freeze", "f", "Freeze the panes", "freeze the panes (measuring goes on)"),
    Key("3", "history", "3", "History", "past runs of this rig"),
    Key("x", "stop", "x", "Stop the server", "stop the server"),
    Key("escape", "cancel", "Esc", "Cancel", "back; cancels what runs"),
    Key("question_mark,f1", "keys", "?", "Help", "the keys and the words of this screen", "help"),
    Key("ctrl+p", "command_palette", "Ctrl+P", "Palette", "command palette"),
    Key("q,ctrl+q", "leave", "q", "Quit", "quit (asks if a server is running)", "quit"),
)  # fmt: skip


def rows() -> list[tuple[str, str]]:
    """(keys, what they do) for help and README; neighbours that do the same share a row."""
    folded: list[tuple[str, str]] = []
    for key in KEYS:
        does = key.help or key.title
        if folded and folded[-1][1] == does:
            folded[-1] = (f"{folded[-1][0]} {key.shown}", does)
        else:
            folded.append((key.shown, does))
    return folded
