"""Logs for machines (a JSON object per line) and for people (words and key=value)."""

from __future__ import annotations

import logging
import time
from typing import TextIO

import msgspec

USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def details(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in USUAL}


class ForMachines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **details(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ForPeople(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        parts = [f"{name}={value}" for name, value in details(record).items()]
        text = f"{clock} {record.levelname.lower():<7} {record.getMessage():<14} {' '.join(parts)}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text.rstrip()


def set_up(stream: TextIO, level: str) -> None:
    """Log to this stream: for people if it is a terminal, else for machines."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ForPeople() if stream.isatty() else ForMachines())
    logger = logging.getLogger("meshlock")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
