"""What the event loop itself has to say goes to the log of the agent, as JSON lines."""

import asyncio
import gc
import io
import json

import pytest

from meshlock.live.machine import logs
from meshlock.live.machine.loop import run


@pytest.mark.parametrize(
    ("error", "level"), [(ConnectionResetError("gone"), "warning"), (ValueError("wrong"), "error")]
)
def test_a_failure_that_is_awaited_by_no_task_is_one_line_of_the_log(error, level, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(logs.LOGGER, "handlers", [])
    monkeypatch.setattr(logs.LOGGER, "propagate", False)
    logs.set_up(stream, "info")

    async def abandon():
        asyncio.get_running_loop().create_future().set_exception(error)
        gc.collect()

    run(abandon())
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert (said["level"], said["where"]) == (level, "event loop")
    assert str(error) in said["traceback"]
