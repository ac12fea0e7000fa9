"""What is asked of a server: the built-in prompts, and prompts from a person's own file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tuirig.errors import FileError
from tuirig.measure.prompt_texts import TEXTS

#: The sorts of work, in the order in which `choose` goes round.
KINDS = ("code", "advice", "story", "explanation", "list", "summary")
#: The kind of a prompt from a file that names none.
OWN = "own"


@dataclass(frozen=True)
class Prompt:
    """One request. id: `code-1`; title: a few words for the screen; text: what is sent."""

    id: str
    kind: str
    title: str
    text: str


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks and the indentation of the source file."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _numbered() -> tuple[Prompt, ...]:
    count = dict.fromkeys(KINDS, 0)
    prompts = []
    for kind, title, text in TEXTS:
        count[kind] += 1
        prompts.append(Prompt(f"{kind}-{count[kind]}", kind, title, _flowing(text)))
    return tuple(prompts)


#: All built-in prompts, six of each kind, kind by kind.
PROMPTS = _numbered()
_BY_ID = {prompt.id: prompt for prompt in PROMPTS}


def prompt(id: str) -> Prompt:
    """The built-in prompt with this id. Raises ValueError if there is none."""
    try:
        return _BY_ID[id]
    except KeyError:
        raise ValueError(
            f"no prompt {id!r}; there are {', '.join(f'{kind}-1 to {kind}-6' for kind in KINDS)}"
        ) from None


def choose(count: int, kinds: Sequence[str] = KINDS) -> tuple[Prompt, ...]:
    """The first `count` prompts, going round these kinds in their order.

    Of all kinds, 12 is two of each and 36 is all. Raises ValueError outside 1 to the number of
    prompts of these kinds.
    """
    available = sum(prompt.kind in kinds for prompt in PROMPTS)
    if not 1 <= count <= available:
        raise ValueError(f"{count} prompts: choose from 1 to {available}")
    return tuple(
        _BY_ID[f"{kinds[index % len(kinds)]}-{index // len(kinds) + 1}"] for index in range(count)
    )


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: str
    kind: str = OWN
    id: str = ""


def read_prompt_file(text: str, name: str) -> tuple[Prompt, ...]:
    """A person's own prompts, from the text of a file (name: for messages).

    JSON lines if the first character is `{`: one object a line, `{"prompt": ..., "kind": ...,
    "id": ...}`, kind and id optional. Anything else is plain text: one prompt per paragraph,
    separated by blank lines. Without an id a prompt is called by its place, `prompt-3`.
    Raises FileError with the line.
    """
    text = text.removeprefix("\ufeff")
    read = _json_lines if text.lstrip().startswith("{") else _paragraphs
    prompts: dict[str, Prompt] = {}
    for line, entry in read(text, name):
        if not entry.prompt.strip():
            raise FileError(name, "the prompt is empty", line=line, key="prompt")
        id = entry.id or f"prompt-{len(prompts) + 1}"
        if id in prompts:
            raise FileError(name, f"the id {id!r} stands twice", line=line, key="id")
        title = entry.prompt.split("\n", 1)[0].strip()
        title = title if len(title) <= 40 else title[:39] + "…"
        prompts[id] = Prompt(id, entry.kind or OWN, title, entry.prompt)
    if not prompts:
        raise FileError(
            name,
            "there is no prompt in it",
            hint="write one prompt per paragraph, or one JSON object with `prompt` per line",
        )
    return tuple(prompts.values())


def _json_lines(text: str, name: str) -> list[tuple[int, _Line]]:
    entries = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entries.append((number, msgspec.json.decode(line, type=_Line)))
        except msgspec.DecodeError as error:
            raise FileError(
                name,
                str(error),
                line=number,
                hint='one object a line: {"prompt": "...", "kind": "...", "id": "..."}',
            ) from None
    return entries


def _paragraphs(text: str, name: str) -> list[tuple[int, _Line]]:
    entries: list[tuple[int, _Line]] = []
    start, lines = 1, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            start = start if lines else number
            lines.append(line.rstrip())
        elif lines:
            entries.append((start, _Line(prompt="\n".join(lines))))
            lines = []
    return entries
