"""Traces from the disk of the reader: they come in pieces, since requests are short."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.errors import Refused
from meshlock.trace.reader import BadTrace
from meshlock.web.index import Index, open_trace

MOST_BYTES = 32_000_000
"""Of one trace; for larger ones there is `meshlock view`."""

MOST_OPEN = 4
"""That are coming in at once; the oldest makes room."""


class Uploads:
    def __init__(self) -> None:
        self.coming: dict[str, bytearray] = {}
        self.made = 0

    def begin(self) -> str:
        self.made += 1
        name = f"file-{self.made}"
        self.coming[name] = bytearray()
        while len(self.coming) > MOST_OPEN:
            del self.coming[next(iter(self.coming))]
        return name

    def add(self, name: str, piece: bytes) -> None:
        if name not in self.coming:
            raise Refused("This file is not being opened any more: choose it again.")
        if len(self.coming[name]) + len(piece) > MOST_BYTES:
            del self.coming[name]
            raise Refused(
                f"This file is longer than {MOST_BYTES // 1_000_000} MB: open it with meshlock "
                f"view FILE."
            )
        self.coming[name] += piece

    def end(self, name: str, called: str) -> Index:
        """The whole file is here; ``called`` is what its owner calls it."""
        self.add(name, b"")
        text = self.coming.pop(name)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "trace.jsonl"
            path.write_bytes(text)
            try:
                return open_trace(path)
            except BadTrace as error:
                raise Refused(str(error).replace(str(path), called[:100] or "This file")) from None
