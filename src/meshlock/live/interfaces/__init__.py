"""What people and programs talk to: a node in their own process, or an agent beside it.

:mod:`.node` puts links and pools together and is the library, :mod:`.blocking` the same for
threads; :mod:`.agent` serves it on a socket (:mod:`.asking` is the other end), :mod:`.http` to
browsers and monitoring. :mod:`.configuration` and :mod:`.discovery` tell a node what to join.
"""
