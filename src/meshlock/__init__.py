"""Share k identical permits among machines without a server.

The same algorithm source is simulated (:mod:`meshlock.simulate`), model-checked
(:mod:`meshlock.check`) and run on real machines (:mod:`meshlock.live`).
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from meshlock.errors import Refused as Refused
    from meshlock.live.interfaces.blocking import BlockingGrant as BlockingGrant
    from meshlock.live.interfaces.blocking import BlockingNode as BlockingNode
    from meshlock.live.interfaces.blocking import BlockingPool as BlockingPool
    from meshlock.live.interfaces.node import Node as Node
    from meshlock.live.pools.grants import Grant as Grant
    from meshlock.live.pools.pool import Pool as Pool

__all__ = ["BlockingGrant", "BlockingNode", "BlockingPool", "Grant", "Node", "Pool", "Refused"]

_HOMES = {
    "BlockingGrant": "meshlock.live.interfaces.blocking",
    "BlockingNode": "meshlock.live.interfaces.blocking",
    "BlockingPool": "meshlock.live.interfaces.blocking",
    "Grant": "meshlock.live.pools.grants",
    "Node": "meshlock.live.interfaces.node",
    "Pool": "meshlock.live.pools.pool",
    "Refused": "meshlock.errors",
}


def __getattr__(name: str) -> object:
    """Import late: whoever only simulates does not pay for live nodes."""
    if name not in _HOMES:
        raise AttributeError(f"module 'meshlock' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
