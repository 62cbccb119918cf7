"""Links between nodes: who is there, that it is really them, and that nothing is lost or doubled.

:mod:`.frames` and :mod:`.session` are pure; :mod:`.link` is one connection, :mod:`.mesh` all of
them, over TCP (:mod:`.security`) or Zenoh (:mod:`.zenoh_carrier`). Nothing here knows permits.
"""
