"""Share k identical permits among machines without a server.

The same algorithm source is simulated (:mod:`meshlock.simulate`), model-checked
(:mod:`meshlock.check`) and run on real machines (:mod:`meshlock.live`).
"""

__version__ = "0.1.0"
