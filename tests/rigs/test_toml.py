from __future__ import annotations

import pytest

from tuirig.errors import FileError
from tuirig.rigs.toml import TomlLines, read_table

TEXT = """\
top = 1
"quoted key" = 2
'single' = 3
long = '''
[not.a.table]
inner = 1
'''
[table] # comment
key = 1
dotted.key = 2
array = [
  "x = 1",
]
[table.sub]
key = 3
[[row]]
key = 4
[[row]]
 key = 5
other = { inline = 1 }
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("top", 1),
        ("quoted key", 2),
        ("single", 3),
        ("table", 8),
        ("table.key", 9),
        ("table.dotted", 10),
        ("table.array[2]", 11),
        ("table.sub.key", 15),
        ("row[0].key", 17),
        ("row[1]", 18),
        ("row[1].key", 19),
        ("row[1].other.inline", 20),
        # not there: its parent, else the first line that holds the key
        ("table.missing", 8),
        ("row[1].missing", 18),
        ("elsewhere.other", 20),
        ("elsewhere.missing", None),
        ("inner", None),
        ("", None),
    ],
)
def test_lines_of_keys(key: str, line: int | None) -> None:
    assert TomlLines(TEXT).of(key) == line


def test_a_table_is_read() -> None:
    assert read_table("[a]\r\nb = 1\r\n", "x") == {"a": {"b": 1}}


def test_nul_in_a_key() -> None:
    with pytest.raises(FileError) as caught:
        read_table('a = 1\n"b\\u0000" = 1\n', "x")
    assert "\0" not in caught.value.text()
