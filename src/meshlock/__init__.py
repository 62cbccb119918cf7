"""Share k identical permits among machines without a server.

The same algorithm source is simulated (:mod:`meshlock.simulate`), model-checked
(:mod:`meshlock.check`) and run on real machines (:mod:`meshlock.live`).
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # from a clone, without pip
    raise ImportError(f"meshlock needs Python 3.11 or newer, and this is {sys.version.split()[0]}.")

TYPE_CHECKING = False  # as in typing, which takes as long to import as all else that a client needs

__version__ = "0.2.0"

if TYPE_CHECKING:
    from meshlock.errors import NoSuchPool as NoSuchPool
    from meshlock.errors import NotInTime as NotInTime
    from meshlock.errors import Refused as Refused
    from meshlock.live.interfaces.async_client import Client as Client
    from meshlock.live.interfaces.async_client import ClientPool as ClientPool
    from meshlock.live.interfaces.async_client import aconnect as aconnect
    from meshlock.live.interfaces.blocking import BlockingNode as BlockingNode
    from meshlock.live.interfaces.blocking import BlockingPool as BlockingPool
    from meshlock.live.interfaces.client import BlockingClient as BlockingClient
    from meshlock.live.interfaces.client import BlockingClientPool as BlockingClientPool
    from meshlock.live.interfaces.client import connect as connect
    from meshlock.live.interfaces.node import Node as Node
    from meshlock.live.pools.grants import BlockingGrant as BlockingGrant
    from meshlock.live.pools.grants import Grant as Grant
    from meshlock.live.pools.grants import Pool as Pool

__all__ = [
    "BlockingClient",
    "BlockingClientPool",
    "BlockingGrant",
    "BlockingNode",
    "BlockingPool",
    "Client",
    "ClientPool",
    "Grant",
    "NoSuchPool",
    "Node",
    "NotInTime",
    "Pool",
    "Refused",
    "aconnect",
    "connect",
]

_HOMES = {
    "BlockingClient": "meshlock.live.interfaces.client",
    "BlockingClientPool": "meshlock.live.interfaces.client",
    "BlockingGrant": "meshlock.live.pools.grants",
    "BlockingNode": "meshlock.live.interfaces.blocking",
    "BlockingPool": "meshlock.live.interfaces.blocking",
    "Client": "meshlock.live.interfaces.async_client",
    "ClientPool": "meshlock.live.interfaces.async_client",
    "Grant": "meshlock.live.pools.grants",
    "NoSuchPool": "meshlock.errors",
    "Node": "meshlock.live.interfaces.node",
    "NotInTime": "meshlock.errors",
    "Pool": "meshlock.live.pools.grants",
    "Refused": "meshlock.errors",
    "aconnect": "meshlock.live.interfaces.async_client",
    "connect": "meshlock.live.interfaces.client",
}


def __getattr__(name: str) -> object:
    """Import late: a program that only simulates does not pay for live nodes."""
    if name not in _HOMES:
        raise AttributeError(f"module 'meshlock' has no attribute '{name}'")
    home = __import__(_HOMES[name], fromlist=[name])  # importlib takes long to import
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
