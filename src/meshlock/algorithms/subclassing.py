"""Which compiled classes may have subclasses that are not compiled, as patches make of them.

``@mypyc_attr(allow_interpreted_subclasses=True)`` says so to mypyc, which knows the decorator by
where it was defined; to Python it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_: object) -> Callable[[type], type]:
        return lambda kind: kind
