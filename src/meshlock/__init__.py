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
    from meshlock.live.interfaces.locks import AsyncLock as AsyncLock
    from meshlock.live.interfaces.locks import AsyncRWLock as AsyncRWLock
    from meshlock.live.interfaces.locks import AsyncSemaphore as AsyncSemaphore
    from meshlock.live.interfaces.locks import Lock as Lock
    from meshlock.live.interfaces.locks import RWLock as RWLock
    from meshlock.live.interfaces.locks import Semaphore as Semaphore
    from meshlock.live.interfaces.node import Node as Node
    from meshlock.live.pools.grants import BlockingGrant as BlockingGrant
    from meshlock.live.pools.grants import Grant as Grant
    from meshlock.live.pools.grants import Pool as Pool

__all__ = [
    "AsyncLock",
    "AsyncRWLock",
    "AsyncSemaphore",
    "BlockingClient",
    "BlockingClientPool",
    "BlockingGrant",
    "BlockingNode",
    "BlockingPool",
    "Client",
    "ClientPool",
    "Grant",
    "Lock",
    "NoSuchPool",
    "Node",
    "NotInTime",
    "Pool",
    "RWLock",
    "Refused",
    "Semaphore",
    "aconnect",
    "connect",
]

_HOMES = {
    "meshlock.errors": ("NoSuchPool", "NotInTime", "Refused"),
    "meshlock.live.interfaces.async_client": ("Client", "ClientPool", "aconnect"),
    "meshlock.live.interfaces.blocking": ("BlockingNode", "BlockingPool"),
    "meshlock.live.interfaces.client": ("BlockingClient", "BlockingClientPool", "connect"),
    "meshlock.live.interfaces.locks": (
        *("AsyncLock", "AsyncRWLock", "AsyncSemaphore"),
        *("Lock", "RWLock", "Semaphore"),
    ),
    "meshlock.live.interfaces.node": ("Node",),
    "meshlock.live.pools.grants": ("BlockingGrant", "Grant", "Pool"),
}


def __getattr__(name: str) -> object:
    """Import late: a program that only simulates does not pay for live nodes."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(__import__(home, fromlist=[name]), name)  # importlib takes longer
    raise AttributeError(f"module 'meshlock' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
