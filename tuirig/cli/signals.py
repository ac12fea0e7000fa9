"""SIGINT, SIGTERM and SIGHUP end a command in order: cancelled, sockets closed, server stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine

from tuirig.cli.output import say
from tuirig.errors import ExitCode

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
}


def run(command: Coroutine[None, None, int]) -> int:
    """Run an asynchronous command to its end; its exit code, or that of the signal that ended it.

    The first signal cancels it, further ones are only answered: what they would hurry has limits
    of its own, and the server dies with tuirig in any case.
    """
    return asyncio.run(_until_signal(command))


async def _until_signal(command: Coroutine[None, None, int]) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(command)
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if received:
            say("ending already: the server gets a few seconds to stop")
            return
        received.append(number)
        task.cancel()

    for number in _CODES:
        loop.add_signal_handler(number, end, number)
    try:
        await asyncio.wait((task,))
    finally:
        if received:
            # The program ends now: one more must not break off Python's own ending.
            signal.pthread_sigmask(signal.SIG_BLOCK, _CODES)
        for number in _CODES:
            loop.remove_signal_handler(number)
    if received and task.cancelled():
        say(f"tuirig: ended by {received[0].name}, in order")
        return _CODES[received[0]]
    return task.result()
