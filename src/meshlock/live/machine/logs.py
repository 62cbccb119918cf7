"""What happens, sent to the logger ``meshlock``: for people in words, for machines as JSON.

Programs that use the library see these lines if they set up logging; the agent always does.
"""

from __future__ import annotations

import logging
import time
from typing import TextIO

import msgspec

from meshlock.errors import Refused

LOGGER = logging.getLogger("meshlock")
LOGGER.addHandler(logging.NullHandler())
LEVELS = ("debug", "info", "warning", "error")


def log_event(
    level: int, event: str, *, failed: bool | BaseException = False, **details: object
) -> None:
    """Something has happened: ``log_event(INFO, "link up", peer="north")``."""
    if LOGGER.isEnabledFor(level):
        words = " ".join(f"{name}={value}" for name, value in details.items())
        extra = {"happened": event, "details": details}
        LOGGER.log(level, "%s %s", event, words, exc_info=failed, extra=extra)


class ForMachines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "event": getattr(record, "happened", record.getMessage()),
            **getattr(record, "details", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ForPeople(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        text = f"{clock} {record.levelname.lower():<7} {record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def set_up(stream: TextIO, level: str) -> None:
    """Log to this stream: for people if it is a terminal, else for machines."""
    if level not in LEVELS:
        raise Refused(
            f"There is no log level '{level}': use {', '.join(LEVELS[:-1])} or {LEVELS[-1]}."
        )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ForPeople() if stream.isatty() else ForMachines())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
