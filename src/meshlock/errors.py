"""What meshlock raises at a caller; the command line prints the text and exits 2."""

_before = ""
"""The name of a setting, in a sentence; nothing: it is an argument of a function."""


def setting(name: str) -> str:
    """What the reader of a sentence calls this setting."""
    return _before + name if _before else name.replace("-", "_")


def call_settings(before: str) -> None:
    """From now on they are called by their names with this before them."""
    global _before
    _before = before


class Refused(ValueError):
    """This set-up cannot be served; the text is one sentence that says what to do."""


class Attempt:
    """A block of code that reads or writes a file: if the system cannot, that is refused.

    ``with Attempt(f"read {path}"):``
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, OSError):
            raise Refused(f"Cannot {self.what}: {error.strerror}.") from None


class NodeClosed(Refused):
    """The node leaves, or has left; another may serve the same request."""


class NoSuchPool(Refused):
    """Nobody in the mesh has made it."""

    @classmethod
    def among(cls, name: str, known: list[str]) -> "NoSuchPool":
        return cls(f"No pool '{name}'; known: {', '.join(sorted(known)) or 'none'}.")


class NotInTime(TimeoutError):
    """There were no permits in time; the text is one sentence that says why."""
