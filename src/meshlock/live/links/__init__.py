"""Join nodes: identity, order, nothing lost or doubled, the link map.

May import: machine.
Must not know: permits.

:mod:`.frames` and :mod:`.session` are pure; :mod:`.link` is one connection, :mod:`.mesh` all of
them, over TCP (:mod:`.security`) or Zenoh (:mod:`.zenoh_carrier`).
"""
