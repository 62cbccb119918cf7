"""Kill, pause and cut real agents by plan, and judge the record.

May import: machine, links, pools, interfaces.
Must not know: demo; the judge knows nothing but the record.

:mod:`.plan` is drawn from a seed before anything runs; :mod:`.run` carries it out with real
processes (:mod:`.processes`, :mod:`.cluster`); :mod:`.client` uses the permits and writes to
the :mod:`.resource`; all processes append to one :mod:`.record`; :mod:`.judge` reads nothing
else. :mod:`.majority` is what the plan must leave alone and the judge may excuse.
"""
