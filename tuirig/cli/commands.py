"""The commands that make no runs: their arguments and their help. Imports nothing of the core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tuirig.cli.arguments import RIG_HELP, SETTING_HELP, add_command, json_flag, whole


def add_open(commands: Any) -> None:
    """`tuirig open`."""
    parser = add_command(
        commands,
        "open",
        "open the screen; the word may be left out",
        """\
Open the screen, on a rig if one is named. `tuirig` alone and `tuirig RIG` do the same;
the word is needed for a rig that is called like a command.

With --web the same screen opens in a browser on this machine: the address is printed,
with a token in it that lets one in, and ctrl+c ends it. It listens on 127.0.0.1 alone and
loads nothing from elsewhere; every page is a screen of its own, which ends when the page
is closed and stops its server. Needs textual-serve (pip install 'tuirig[web]').

examples:
  tuirig open
  tuirig open rigs.toml
  tuirig --theme light my-card
  tuirig --web --port 8000 my-card
""",
        "screen",
    )
    parser.add_argument("rig", metavar="RIG", nargs="?", help=RIG_HELP)
    _look(parser)
    parser.add_argument("--web", action="store_true", help="open it in a browser")
    parser.add_argument(
        "--port",
        metavar="N",
        type=whole(1024, 65535),
        help="with --web: the port (default: a free one)",
    )


def add_demo(commands: Any) -> None:
    """`tuirig demo`."""
    parser = add_command(
        commands,
        "demo",
        "open the screen on a built-in rig",
        """\
Open the screen on a built-in rig: a real llama-server with miniature models that need no
GPU. Their files (90 to 230 MB each) are made in the cache folder when they are first needed,
here or by any other command. demo-gemma4 and demo-qwen35 write broken English, and speeds
are those of this CPU; serving, acceptance and timing are real.

With --make no screen is opened: the files are made and the command ends. It needs no
terminal.

examples:
  tuirig demo
  tuirig demo demo-qwen35
  tuirig demo --make
""",
        "demo",
    )
    parser.add_argument(
        "rig",
        metavar="RIG",
        nargs="?",
        help="demo-gemma4 (default), demo-qwen35 or demo-smollm2",
    )
    parser.add_argument(
        "--make", action="store_true", help="make the files of RIG, or of all three, and end"
    )
    _look(parser)


def add_rigs(commands: Any) -> None:
    """`tuirig rigs`."""
    parser = add_command(
        commands,
        "rigs",
        "list the rigs and what they miss",
        """\
List every rig: its card, target and drafters, whether it is a file or built in, and what
is missing: files that are not there, hashes that are not given, a program that is not
found. A file with an error is listed with it and does not hide the others.
""",
        "rigs",
    )
    parser.add_argument("--names", action="store_true", help="only the names, one a line")
    json_flag(parser)


def add_rig(commands: Any) -> None:
    """`tuirig rig`."""
    parser = commands.add_parser(
        "rig",
        help="new, discover: write a rig file; check: say what would run",
        description="Write a rig file to start from, find one, or say what a rig would run.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    new = add_command(
        actions,
        "new",
        "write a commented rig file to start from",
        """\
Write a commented rig file NAME.toml into the folder of the rigs and print its path. A
file that exists is never overwritten.

example:
  tuirig rig new my-card
""",
        "new",
    )
    new.add_argument("name", metavar="NAME", help="letters, digits, '.', '_' and '-'")
    discover = add_command(
        actions,
        "discover",
        "find models on this machine and the drafters that fit them",
        """\
Look through the caches of the Hub, of llama.cpp and of LM Studio, ~/models and the given
folders for GGUF files, and pair targets with the drafters that fit them, by what stands
in their headers. Each pair is offered as a rig file; --write writes it. Nothing is
fetched and no weight is read.

examples:
  tuirig rig discover
  tuirig rig discover /data/models --write gemma-4-E4B-it
""",
        "discover",
    )
    discover.add_argument("folders", metavar="DIR", nargs="*", help="look here as well")
    discover.add_argument("--write", metavar="NAME", help="write the offered rig of that name")
    json_flag(discover)
    check = add_command(
        actions,
        "check",
        "say what a rig would run, without starting a server",
        """\
Say what would happen, without starting a server: the program and its build, the command
lines, which settings this build can run, whether each drafter fits the target by their
headers, the card, whether everything fits its memory and which context would, a free
port, who else holds the card, and servers of tuirig that still run. Other people's
servers are named and never touched. The files of a built-in rig are made first. Exit
code 0 means that every setting can run.
""",
        "check",
    )
    check.add_argument("rig", metavar="RIG", help=RIG_HELP)
    json_flag(check)


def add_measure(commands: Any) -> None:
    """`tuirig measure`."""
    parser = add_command(
        commands,
        "measure",
        "measure one setting",
        """\
Start the server with one setting, measure replies to the built-in prompts one after the
other, stop it. tok/s comes from the server's own timings; a setting with a drafter counts
only if drafting is proven, else the exit code is 6.

The result is a short table on stderr; with --json it is one document on stdout instead,
with one object per reply, so that a pipe gets data and nothing else.

With --save, `none` is measured first in a start of its own, with the same prompts, and
the setting is saved as the profile of this card and model with its gain. Nothing is saved
that is not proven.

examples:
  tuirig measure demo-gemma4 --setting q4_0:2
  tuirig measure my-card --setting q8_0:3 --prompts 36 --json > q8_0-3.json
  tuirig measure my-card --setting none --prompt-file prompts.txt
""",
        "measure",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    parser.add_argument("--setting", metavar="S", required=True, help=SETTING_HELP)
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument(
        "--prompts",
        metavar="N",
        type=whole(1, 36),
        default=12,
        help="how many built-in prompts, 1 to 36; 12 are two of each kind (default 12)",
    )
    prompts.add_argument(
        "--prompt-file",
        metavar="FILE",
        type=Path,
        help='your own prompts: paragraphs of text, or one {"prompt": "..."} a line',
    )
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=whole(2, 1_000_000),
        default=128,
        help="tokens per reply (default 128)",
    )
    parser.add_argument(
        "--temperature",
        metavar="T",
        type=_temperature,
        default=0.0,
        help="sampling temperature (default 0: greedy, the only one whose results compare)",
    )
    parser.add_argument("--save", action="store_true", help="save the profile")
    json_flag(parser)


def add_serve(commands: Any) -> None:
    """`tuirig serve`."""
    parser = add_command(
        commands,
        "serve",
        "serve one setting in the foreground",
        """\
Start the server with a setting, or with the one of a profile, and keep it until SIGINT
(ctrl+c), SIGTERM or SIGHUP; the server then ends with tuirig. Without --setting and
--profile, the profile saved for this card and model decides.

The server answers on 127.0.0.1 only and asks for a key: the content of --api-key-file,
else of the environment variable TUIRIG_API_KEY, else a random one that is printed once.
The key never stands in a command line.

examples:
  tuirig serve my-card
  tuirig serve my-card --setting q4_0:2 --port 8080 --api-key-file ~/.secret
""",
        "serve",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--setting", metavar="S", help=SETTING_HELP)
    what.add_argument(
        "--profile", metavar="P", help="a profile as `tuirig profiles` lists it, or its file"
    )
    parser.add_argument(
        "--port", metavar="N", type=whole(1, 65535), help="the port (default: a free one)"
    )
    parser.add_argument(
        "--api-key-file", metavar="FILE", type=Path, help="a file whose first line is the key"
    )


def add_stop(commands: Any) -> None:
    """`tuirig stop`."""
    parser = add_command(
        commands,
        "stop",
        "end servers that tuirig started and left running",
        """\
End the servers that tuirig itself started and remembers: those that were to keep serving,
and leftovers of a tuirig that was killed. Never a server that somebody else started.
""",
        "stop",
    )
    parser.add_argument("rig", metavar="RIG", nargs="?", help="only the servers of this rig")


def add_profiles(commands: Any) -> None:
    """`tuirig profiles`."""
    parser = add_command(
        commands,
        "profiles",
        "list the profiles and which fit this card",
        """\
List your own profiles and the published ones that come with tuirig, with the setting,
tok/s, the gain against no drafter, and whether they fit this machine's card. Your own win
over a shipped one of the same name. One whose server build, driver, target or drafter is
another one now is marked as stale, with what has changed.
""",
        "profiles",
    )
    parser.add_argument(
        "--card", metavar="NAME", help="only those of cards with NAME in their name"
    )
    json_flag(parser)


def add_inspect(commands: Any) -> None:
    """`tuirig inspect`."""
    parser = add_command(
        commands,
        "inspect",
        "say what a model file is, by its header",
        """\
Say what a GGUF is: architecture, parameters, the encodings of its tensors, vocabulary,
context, layers, and whether it drafts: with which --spec-type, for which targets. Only
the header is read, of a URL too; the file's name counts for nothing. With --against it
says whether the file can draft for a target, and why not. Exit code 3 means that
something is wrong with the file or the pair.

examples:
  tuirig inspect ~/models/gemma-4-E4B-it-assistant-q4_0.gguf
  tuirig inspect drafter.gguf --against target.gguf --json
  tuirig inspect https://huggingface.co/REPO/resolve/main/FILE.gguf
""",
        "inspect",
    )
    parser.add_argument("file", metavar="FILE|URL", help="a GGUF file, or its http(s) address")
    parser.add_argument("--against", metavar="TARGET", help="the target's file or address")
    json_flag(parser)


def add_fetch(commands: Any) -> None:
    """`tuirig fetch`."""
    parser = add_command(
        commands,
        "fetch",
        "download the model files of a rig, checked by their hash",
        """\
Bring a rig's target and drafters onto this machine: files with `repo` and `file` into the
cache of the Hub, files with a `url` to their `path`. A file that is there with the right
hash is used. A download that was cut is taken up again, and gets its name when all of it
has the hash that the rig gives (sha256), or else the one that the Hub gives.

For a rig without a pin, the commit and the hash are printed, ready to paste into it. The
Hub's variables count: HF_TOKEN (or `hf auth login`), HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME.

examples:
  tuirig fetch my-card
  tuirig fetch my-card --json
""",
        "fetch",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    json_flag(parser)


def add_repack(commands: Any) -> None:
    """`tuirig repack`."""
    parser = add_command(
        commands,
        "repack",
        "store a QAT checkpoint as Q4_0 without rounding it again",
        """\
Write a checkpoint that was trained for Q4_0 (quantization-aware training) as a GGUF whose
4-bit values are the trained ones. SNAPSHOT is the folder of its safetensors, TEMPLATE the
Q8_0 GGUF that llama.cpp's converter made of the same checkpoint: keys and vocabulary are
taken from it unchanged, and each matrix is checked against it. A group of weights that is
on no 4-bit grid ends the work with its place; nothing is rounded, nothing is left behind.

With --bf16 the weights are written as they are, in the same layout. With --verify FILE
nothing is written: FILE is compared with the snapshot, and the exit code is 1 if it is not
exact. Needs numpy (pip install 'tuirig[repack]').

examples:
  tuirig repack ~/assistant drafter-q8_0.gguf drafter-q4_0.gguf
  tuirig repack ~/assistant drafter-q8_0.gguf drafter-bf16.gguf --bf16
  tuirig repack ~/assistant --verify drafter-q4_0.gguf --json
""",
        "repack",
    )
    parser.add_argument(
        "snapshot", metavar="SNAPSHOT", type=Path, help="a folder with safetensors, or such a file"
    )
    parser.add_argument(
        "template", metavar="TEMPLATE.gguf", type=Path, nargs="?", help="the converter's Q8_0 file"
    )
    parser.add_argument("out", metavar="OUT.gguf", type=Path, nargs="?", help="the file to write")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--bf16", action="store_true", help="write bf16 instead of Q4_0")
    what.add_argument(
        "--verify", metavar="FILE", type=Path, help="compare FILE with the snapshot, write nothing"
    )
    json_flag(parser)


def add_doctor(commands: Any) -> None:
    """`tuirig doctor`."""
    parser = add_command(
        commands,
        "doctor",
        "look whether this machine has what tuirig needs",
        """\
Look at versions, folders, the card and its driver, the server program, Python packages,
servers that are still remembered and tuirig's own start time. Each line is ok, warn or
fail, with the next step. The exit code is 4 if a line fails.
""",
        "doctor",
    )
    json_flag(parser)


def add_completion(commands: Any) -> None:
    """`tuirig completion`."""
    parser = add_command(
        commands,
        "completion",
        "print a script that completes commands in a shell",
        """\
Print a script that completes commands, their options and the names of rigs. Put it where
the shell looks for it, or read it in the shell's own start file.

examples:
  source <(tuirig completion bash)
  tuirig completion zsh > ~/.zfunc/_tuirig
  tuirig completion fish > ~/.config/fish/completions/tuirig.fish
""",
        "completion",
    )
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"))


def add_help(commands: Any) -> None:
    """`tuirig help`."""
    parser = add_command(
        commands,
        "help",
        "explain a command",
        """\
Explain a command, as `tuirig COMMAND --help` does; without a command, tuirig itself.

examples:
  tuirig help tune
  tuirig help rig check
""",
        "help",
    )
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="the command")


def _look(parser: argparse.ArgumentParser) -> None:
    """How the screen looks, for this time; config.toml beside the rigs says it for always."""
    parser.add_argument(
        "--theme",
        metavar="NAME",
        help="dark, light, high-contrast, ansi (the terminal's own 16 colours), or another of the"
        " palette's",
    )
    parser.add_argument(
        "--hz",
        metavar="N",
        type=whole(1, 30),
        help="frames of the screen per second, 1 to 30 (default 5, over SSH 4)",
    )


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 5:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 5")
    return value
