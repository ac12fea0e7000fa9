from __future__ import annotations

import pytest

from tuirig.errors import FileError
from tuirig.files.config import Config, config_path, read_config, remember_theme


def write(text: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(text)


def test_no_file_says_nothing() -> None:
    assert read_config() == Config()


def test_what_it_says() -> None:
    write('theme = "light"\nhz = 10\n')
    assert read_config() == Config(theme="light", hz=10)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('hz = 3\nthem = "light"\n', "2: them: unknown key; did you mean theme?"),
        ("hz = 31\n", "1: hz: "),
        ("hz = 0\n", "1: hz: "),
        ("theme = 3\n", "1: theme: "),
    ],
)
def test_an_error_names_file_and_key(text: str, place: str) -> None:
    write(text)
    with pytest.raises(FileError) as caught:
        read_config()
    assert f"{config_path()}:{place}" in caught.value.message
    with pytest.raises(FileError):
        remember_theme("nord")
    assert config_path().read_text() == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, 'theme = "nord"\n'),
        ("# mine\nhz = 8\n", 'theme = "nord"\n# mine\nhz = 8\n'),
        ('# mine\n"theme" = "light"\nhz = 8\n', '# mine\ntheme = "nord"\nhz = 8\n'),
    ],
)
def test_a_theme_is_remembered_and_the_rest_stays(before: str | None, after: str) -> None:
    if before is not None:
        write(before)
    remember_theme("nord")
    assert config_path().read_text() == after
    assert read_config().theme == "nord"
