"""Share k identical permits among machines without a server.

The same algorithm source is simulated (:mod:`meshlock.simulate`), model-checked
(:mod:`meshlock.check`) and run on real machines (:mod:`meshlock.live`).
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from meshlock.algorithms.registry import Refused as Refused
    from meshlock.live.blocking import BlockingGrant as BlockingGrant
    from meshlock.live.blocking import BlockingNode as BlockingNode
    from meshlock.live.blocking import BlockingPool as BlockingPool
    from meshlock.live.grants import Grant as Grant
    from meshlock.live.node import Node as Node
    from meshlock.live.pool import Pool as Pool

__all__ = ["BlockingGrant", "BlockingNode", "BlockingPool", "Grant", "Node", "Pool", "Refused"]

_HOMES = {
    "BlockingGrant": "meshlock.live.blocking",
    "BlockingNode": "meshlock.live.blocking",
    "BlockingPool": "meshlock.live.blocking",
    "Grant": "meshlock.live.grants",
    "Node": "meshlock.live.node",
    "Pool": "meshlock.live.pool",
    "Refused": "meshlock.algorithms.registry",
}


def __getattr__(name: str) -> object:
    """Import late: whoever only simulates does not pay for live nodes."""
    if name not in _HOMES:
        raise AttributeError(f"module 'meshlock' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
