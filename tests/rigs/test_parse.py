from __future__ import annotations

import pytest

from tests.rigs.examples import RIG, changed, line_of
from tuirig.errors import ExitCode, FileError
from tuirig.rigs.parse import MANAGED_FLAGS, REQUIRED_FLAGS, parse_rig
from tuirig.rigs.schema import DEFAULT_LENGTHS


def error_of(text: str) -> FileError:
    with pytest.raises(FileError) as caught:
        parse_rig(text, "box.toml")
    return caught.value


def test_a_whole_rig() -> None:
    rig = parse_rig(RIG, "box.toml")
    assert rig.name == "box-e4b"
    assert rig.card == "NVIDIA GeForce RTX 3050"
    assert rig.card_memory_mib is None
    assert rig.target.path == "~/models/target.gguf"
    assert [drafter.row for drafter in rig.drafter] == ["q4_0", "inside", "ngram", "cache"]
    assert rig.server.args == ("-ngl", "99", "-c", "8192")
    assert rig.server.env == {"GGML_VK_VISIBLE_DEVICES": "0"}
    assert rig.tune.lengths == (0, 1, 2, 3)


def test_the_least_that_a_rig_needs() -> None:
    rig = parse_rig(
        'name = "a"\ncard = "cpu"\ntarget = { path = "t.gguf" }\n'
        'server = { args = ["-ngl", "all", "--ctx-size", "512"] }\n'
    )
    assert rig.drafter == ()
    assert rig.server.program == "llama-server"
    assert rig.tune.lengths == DEFAULT_LENGTHS


def test_the_whole_message() -> None:
    error = error_of(changed('"-c", "8192",', '"-c", "8192", "--port", "1"'))
    assert error.text() == (
        f"box.toml:{line_of('args =', RIG)}: server.args: --port is set by tuirig: tuirig chooses "
        "a free port on 127.0.0.1\nnext: take --port out of server.args"
    )
    assert error.exit_code == ExitCode.BAD_FILE


@pytest.mark.parametrize(
    ("old", "new", "key", "part", "message"),
    [
        # types and keys
        ('name = "box-e4b"', "name = 3", "name", "name = 3", "a string"),
        ('name = "box-e4b"', 'name = ""', "name", 'name = ""', "length >= 1"),
        ('name = "box-e4b"\n', "", "name", None, "this key is missing"),
        ('format = "inside"\n', "", "drafter[1].format", "[[drafter]]", "this key is missing"),
        ("[tune]", "[tunes]", "tunes", "[tunes]", "unknown key; did you mean tune?"),
        ('program = "l', 'programme = "l', "server.programme", "programme", "mean program?"),
        ('type = "ngram-cache"', 'typ = "x"', "drafter[3].typ", "typ = ", "mean type?"),
        ("lengths = [0, 1,", 'lengths = [0, "1",', "tune.lengths[1]", "lengths", "a whole number"),
        ("lengths = [0, 1,", "lengths = [0, -1,", "tune.lengths[1]", "lengths", ">= 0"),
        ("lengths = [0, 1, 2, 3]", "lengths = [65]", "tune.lengths[0]", "lengths", "<= 64"),
        (
            'env = { GGML_VK_VISIBLE_DEVICES = "0" }',
            "env = { A = 1 }",
            "server.env",
            "env",
            "a string",
        ),
        ('card = "NVIDIA', 'card_memory_mib = 0\ncard = "', "card_memory_mib", "card_m", "> 0"),
        ("[target]\npath", "target = 3\n[other]\npath", "target", "target = 3", "a table"),
        # names
        ('name = "box-e4b"', 'name = "a b"', "name", "a b", "use letters"),
        ('name = "box-e4b"', 'name = "none"', "name", '"none"', "use letters"),
        ('name = "cache"', 'name = "none"', "drafter[3].name", '"none"', "use letters"),
        ('name = "cache"', 'name = "target"', "drafter[3].name", '"target"', "use letters"),
        ('format = "q4_0"', 'format = "q4:0"', "drafter[0].format", "q4:0", "use letters"),
        ('name = "cache"', 'name = "q4_0"', "drafter[3].name", 'name = "q4_0"', "a second drafter"),
        # types of drafters
        ('"ngram-cache"', '"none"', "drafter[3].type", '"none"', "always exists"),
        ('"ngram-cache"', '"ngram-mod,"', "drafter[3].type", "ngram-mod", "empty name"),
        ('"ngram-cache"', '"ngram-mod,ngram-mod"', "drafter[3].type", "ngram-mod", "twice"),
        # files
        ('path = "~/models/target.gguf"\n', "", "target", "[target]", "path is missing"),
        ('path = "drafter-q4_0.gguf"\n', "", "drafter[0]", "[[drafter]]", "path is missing"),
        ('path = "d', 'repo = "a/b"\npath = "d', "drafter[0].repo", "repo", "exclude"),
        ('path = "d', 'file = "b"\npath = "d', "drafter[0].file", "file", "belong together"),
        ('path = "d', 'revision = "b"\npath = "d', "drafter[0].revision", "revision", "belongs to"),
        ('path = "drafter-q4_0.gguf"', 'repo = "a/b"', "drafter[0].repo", "repo", "together"),
        ('path = "d', 'sha256 = "AB"\npath = "d', "drafter[0].sha256", "sha256", "64 hexadecimal"),
        (
            'format = "inside"',
            f'sha256 = "{"0" * 64}"\nformat = "inside"',
            "drafter[1].sha256",
            "sha256",
            "no file to compare",
        ),
        ('format = "inside"', 'path = "d"\nformat = "inside"', "drafter[1].format", "inside", "no"),
        (
            'type = "ngram-simple"',
            'type = "ngram-simple"\npath = "d"',
            "drafter[2].path",
            '"d"',
            "no drafter file",
        ),
        # where files come from
        (
            'path = "~/models/target.gguf"',
            'url = "https://host/t.gguf"',
            "target.url",
            "url =",
            "url needs a path",
        ),
        *(
            (
                'path = "~/models/target.gguf"',
                f'path = "t.gguf"\nurl = "{url}"',
                "target.url",
                "url =",
                "expected https://",
            )
            for url in ("ftp://host/t.gguf", "host/t.gguf", "https://", "https://[", "http://hö/t")
        ),
        (
            'path = "~/models/target.gguf"',
            'path = "t.gguf"\nurl = "https://me:secret@host/t.gguf"',
            "target.url",
            "url =",
            "does not belong in a rig file",
        ),
        *(
            (
                'path = "~/models/target.gguf"',
                "\n".join(
                    f'{name} = "{value}"'
                    for name, value in {
                        "repo": "o/r",
                        "file": "t.gguf",
                        "revision": "main",
                        **bad,
                    }.items()
                ),
                f"target.{next(iter(bad))}",
                next(iter(bad)) + " =",
                "of the Hub",
            )
            for bad in (
                {"repo": "../r"},
                {"repo": "o/r/x"},
                {"repo": "/o"},
                {"file": "../../x.gguf"},
                {"file": "/etc/x.gguf"},
                {"file": "a//x.gguf"},
                {"file": "a\\\\x.gguf"},
                {"revision": "refs/../../x"},
            )
        ),
        # arguments
        ('"-c", "8192",', "", "server.args", "args =", "-c is missing"),
        ('"-ngl", "99",', "", "server.args", "args =", "-ngl is missing"),
        ('"-c", "8192",', '"-c"', "server.args[2]", "args =", "above 0"),
        ('"8192"', '"0"', "server.args[2]", "args =", "above 0"),
        ('"99"', '"auto"', "server.args[0]", "args =", "number of layers"),
        (
            'path = "drafter-q4_0.gguf"',
            'path = "d"\nargs = ["-c", "1"]',
            "drafter[0].args",
            'args = ["-c", "1"]',
            "the same for every setting",
        ),
        (
            'path = "drafter-q4_0.gguf"',
            'path = "d"\nargs = ["--spec-type", "draft-mtp"]',
            "drafter[0].args",
            "--spec-type",
            "stands in [[drafter]]",
        ),
        # environment and lengths
        (
            "GGML_VK_VISIBLE_DEVICES",
            "LLAMA_ARG_CTX_SIZE",
            "server.env.LLAMA_ARG_CTX_SIZE",
            "env",
            "in server.args",
        ),
        (
            "GGML_VK_VISIBLE_DEVICES",
            "LLAMA_API_KEY",
            "server.env.LLAMA_API_KEY",
            "env",
            "in server.args",
        ),
        ("[0, 1, 2, 3]", "[0, 2, 1]", "tune.lengths", "lengths", "rise"),
        ("[0, 1, 2, 3]", "[0, 1, 1]", "tune.lengths", "lengths", "rise"),
        ("[0, 1, 2, 3]", "[0]", "tune.lengths", "lengths", "above 0"),
        ("[0, 1, 2, 3]", "[]", "tune.lengths", "lengths", "above 0"),
        # characters that no system call takes
        ('"box-e4b"', '"box\\u0000"', "name", "name", "NUL"),
        ('"99"', '"9\\u0000"', "server.args[1]", "args =", "NUL"),
    ],
)
def test_errors_name_file_line_and_key(
    old: str, new: str, key: str, part: str | None, message: str
) -> None:
    text = changed(old, new)
    error = error_of(text)
    assert (error.path, error.key) == ("box.toml", key)
    assert message in error.message
    index = int(key.partition("[")[2][:1]) + 1 if part == "[[drafter]]" else 1
    assert error.line == (line_of(part, text, index) if part else None)


@pytest.mark.parametrize("flag", sorted(MANAGED_FLAGS))
def test_managed_flags_are_refused_with_the_reason(flag: str) -> None:
    error = error_of(changed('"-c", "8192",', f'"-c", "8192", "{flag}",'))
    assert error.key == "server.args"
    assert MANAGED_FLAGS[flag] in error.message


def test_a_managed_flag_with_underscores_is_the_same_flag() -> None:
    error = error_of(changed('"99",', '"99", "--spec_type", "draft-mtp",'))
    assert "--spec_type is set by tuirig" in error.message


def test_a_managed_flag_with_its_value_attached() -> None:
    assert "--port=1 is set by" in error_of(changed('"99",', '"99", "--port=1",')).message


@pytest.mark.parametrize("flag", [*REQUIRED_FLAGS["-c"], *REQUIRED_FLAGS["-ngl"]])
def test_every_spelling_of_a_required_flag(flag: str) -> None:
    short = "-c" if flag in REQUIRED_FLAGS["-c"] else "-ngl"
    assert flag in parse_rig(changed(f'"{short}"', f'"{flag}"')).server.args


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = "a"\ncard =\n', 2),
        ('name = "a"\nname = "b"\n', 2),
        ('name = "a"\n\n[target\n', 3),
        ("name = 1979-13-01\n", 1),
        ('name = "a"\n"""', 2),
        (f"a = {'9' * 5000}\n", 1),
        (f"a = {'[' * 5000}\n", 1),
    ],
)
def test_what_is_not_toml(text: str, line: int) -> None:
    error = error_of(text)
    assert error.message.startswith(f"box.toml:{line}: not valid TOML: ")
    assert "\n" not in error.message


def test_hub_files_need_no_path() -> None:
    repo = 'repo = "org/name"\nfile = "x.gguf"\nrevision = "main"'
    target = parse_rig(changed('path = "~/models/target.gguf"', repo)).target
    assert (target.repo, target.file, target.revision) == ("org/name", "x.gguf", "main")
    assert target.label == "x.gguf"


def test_a_hash_with_a_line_end_is_refused() -> None:
    text = changed('path = "~', f'sha256 = "{"0" * 64}\\n"\npath = "~')
    assert error_of(text).key == "target.sha256"


def test_an_unlisted_type_may_come_with_or_without_a_file() -> None:
    assert parse_rig(changed('"ngram-cache"', '"draft-new"')).drafter[3].type == "draft-new"
    with_file = '"draft-new"\npath = "d.gguf"'
    assert parse_rig(changed('"ngram-cache"', with_file)).drafter[3].has_file


def test_a_list_of_types_needs_the_file_of_its_model() -> None:
    text = changed('type = "ngram-cache"', 'type = "ngram-mod,draft-simple"')
    assert error_of(text).key == "drafter[3]"
    fixed = changed('draft-simple"', 'draft-simple"\npath = "d.gguf"', text)
    assert [kind.name for kind in parse_rig(fixed).drafter[3].types] == [
        "ngram-mod",
        "draft-simple",
    ]


def test_text_inside_a_long_string_is_no_key() -> None:
    text = 'note = """\n[server]\nargs = 1\n"""\n' + changed('"-ngl", "99",', "")
    assert error_of(text).line == line_of("args = [", text)
