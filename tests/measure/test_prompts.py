from __future__ import annotations

from collections import Counter

import pytest

from tuirig.errors import ExitCode, FileError
from tuirig.measure.prompts import KINDS, PROMPTS, choose, prompt, read_prompt_file


def test_six_of_each_kind_with_ids_by_kind() -> None:
    assert Counter(prompt.kind for prompt in PROMPTS) == dict.fromkeys(KINDS, 6)
    assert [prompt.id for prompt in PROMPTS[:6]] == [f"code-{number}" for number in range(1, 7)]
    assert len({prompt.id for prompt in PROMPTS}) == len({prompt.text for prompt in PROMPTS}) == 36


def test_texts_flow_without_the_line_breaks_of_the_source() -> None:
    for built_in in PROMPTS:
        paragraphs = built_in.text.split("\n\n")
        assert all("\n" not in part and "  " not in part for part in paragraphs), built_in.id
        assert len(built_in.title) <= 40, built_in.id


def test_a_summary_carries_its_own_text() -> None:
    for built_in in PROMPTS:
        _, *carried = built_in.text.split("\n\n")
        words = len(" ".join(carried).split())
        assert 150 <= words <= 250 if built_in.kind == "summary" else words == 0, built_in.id


def test_twelve_are_two_of_each_kind() -> None:
    assert Counter(prompt.kind for prompt in choose(12)) == dict.fromkeys(KINDS, 2)


def test_any_count_goes_round_the_kinds() -> None:
    assert [prompt.id for prompt in choose(8)] == [
        "code-1", "advice-1", "story-1", "explanation-1", "list-1", "summary-1",
        "code-2", "advice-2",
    ]  # fmt: skip
    assert set(choose(36)) == set(PROMPTS)


@pytest.mark.parametrize("count", [-1, 0, 37])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 36"):
        choose(count)


def test_a_prompt_by_its_id() -> None:
    assert prompt("code-1").title == "reverse a linked list"
    with pytest.raises(ValueError, match="poem-1"):
        prompt("poem-1")


def test_plain_text_is_one_prompt_per_paragraph() -> None:
    text = "\ufeff\nTell me a story.\nMake it long.\r\n\r\n \nExplain tides.\n"
    first, second = read_prompt_file(text, "own.txt")
    assert first.text == "Tell me a story.\nMake it long."
    assert first.title == "Tell me a story."
    assert (first.id, first.kind) == ("prompt-1", "own")
    assert (second.id, second.text) == ("prompt-2", "Explain tides.")


def test_json_lines_may_name_kind_and_id() -> None:
    text = '{"prompt": "one"}\n\n{"prompt": "two\\nlines", "kind": "code", "id": "mine"}\n'
    first, second = read_prompt_file(text, "own.jsonl")
    assert (first.id, first.kind, first.text) == ("prompt-1", "own", "one")
    assert (second.id, second.kind, second.text) == ("mine", "code", "two\nlines")


def test_a_long_first_line_is_cut_for_the_screen() -> None:
    (only,) = read_prompt_file("word " * 30, "own.txt")
    assert len(only.title) == 40
    assert only.title.endswith("…")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"prompt": "a"}\n\n{"prompt": 5}', "own:3"),
        ('{"prompt": "a"}\nplain', "own:2"),
        ('{"prompt": "a", "kid": "code"}', "own:1"),
        ('{"kind": "code"}', "own:1"),
        ('{"prompt": "a"}\n{"prompt": "  "}', "own:2: prompt"),
        ('{"prompt": "a", "id": "x"}\n{"prompt": "b", "id": "x"}', "own:2: id"),
        (" \n \n", "own: there is no prompt"),
    ],
)
def test_errors_name_the_line(text: str, place: str) -> None:
    with pytest.raises(FileError) as caught:
        read_prompt_file(text, "own")
    assert caught.value.message.startswith(place)
    assert caught.value.exit_code is ExitCode.BAD_FILE
