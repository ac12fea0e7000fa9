"""The yardstick of first paint: the least that a Textual program can be."""

from textual.app import App, ComposeResult
from textual.widgets import Footer, Static


class Empty(App[None]):
    """One line and a footer."""

    BINDINGS = [("q", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        """One line and a footer."""
        yield Static("READY-MARK")
        yield Footer()


if __name__ == "__main__":
    Empty().run()
