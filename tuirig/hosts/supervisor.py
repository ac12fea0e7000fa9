"""The small process between tuirig and a server: it starts it, reaps it and never outlives tuirig.

Run as `python -I -S supervisor.py own|detached`; only the standard library, few imports, so that
it costs milliseconds. It is the server's parent because Linux sends the parent-death signal when
the *thread* that started the child ends, and because the end of tuirig (also by SIGKILL) shows
here as the end of standard input on every POSIX system.

in:  b"<arguments> <bytes>\\n", then the arguments and the environment (NAME=VALUE), joined by NUL;
     after that the commands `term` and `kill`, one a line. The end of input means: end the server.
out: `pid N` or `error ERRNO`, later `exit RC` (negative for a signal), one a line.
The server gets a session and process group of its own, no standard input, and the supervisor's
standard error (the log file) as its output. `detached`: report the pid and leave it alone.
"""

from __future__ import annotations

import os
import select
import signal
import sys

PATIENCE_S = 2.0  #: between SIGTERM and SIGKILL once tuirig is gone
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def main(mode: str) -> None:
    """Start what standard input asks for and stay until it is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    argv, env = _order()
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    pid, error = _start(argv, env, owned=mode == "own")
    _say(f"error {error}" if error else f"pid {pid}")
    if not error and mode == "own":
        _say(f"exit {_watch(pid, wake)}")


def _order() -> tuple[list[bytes], dict[bytes, bytes]]:
    head = b""
    while not head.endswith(b"\n"):
        head += os.read(0, 1) or sys.exit("no order")
    count, size = map(int, head.split())
    body = b""
    while len(body) < size:
        body += os.read(0, size - len(body)) or sys.exit("half an order")
    fields = body.split(b"\0")
    pairs = (field.partition(b"=") for field in fields[count:])
    return fields[:count], {name: value for name, _, value in pairs}


def _start(argv: list[bytes], env: dict[bytes, bytes], *, owned: bool) -> tuple[int, int]:
    """The server's pid and 0, or 0 and the errno of the failed exec."""
    prctl = None
    if owned and sys.platform == "linux":
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    supervisor = os.getpid()
    problem, reporter = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != supervisor:
                    os._exit(1)
            signal.set_wakeup_fd(-1)
            # Python ignores SIGPIPE and SIGXFSZ; ignored signals would be inherited.
            for number in (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            os.execve(argv[0], argv, env)
        except OSError as error:
            os.write(reporter, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(reporter)
    answer = os.read(problem, 16)
    os.close(problem)
    if answer:
        os.waitpid(pid, 0)
        return 0, int(answer)
    return pid, 0


def _watch(pid: int, wake: int) -> int:
    """Pass signals on until the server is gone; its exit code."""
    import time

    listening, deadline = True, 0.0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            # What a wrapper script left behind in the group.
            _signal_group(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        wait_s = None if listening else max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([wake, 0] if listening else [wake], [], [], wait_s)
        if wake in readable:
            os.read(wake, 512)
        if 0 in readable:
            commands = os.read(0, 4096)
            for command in commands.split():
                _signal_group(pid, signal.SIGKILL if command == b"kill" else signal.SIGTERM)
            if not commands:
                listening, deadline = False, time.monotonic() + PATIENCE_S
                _signal_group(pid, signal.SIGTERM)
        elif not listening and not readable:
            _signal_group(pid, signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE_S


def _signal_group(group: int, number: int) -> None:
    try:  # noqa: SIM105 - contextlib would cost a fifth of the start
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone; macOS answers EPERM for a group of zombies


def _say(line: str) -> None:
    try:  # noqa: SIM105
        os.write(1, line.encode() + b"\n")
    except BrokenPipeError:
        pass  # tuirig is gone; the end of input says so too


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)
