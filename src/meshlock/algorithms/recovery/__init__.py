"""Recovery from crashes, as a layer over any token algorithm.

May import: algorithms.
Must not know: the clock (time is handed in), or how the algorithm inside works.

:mod:`.records` is what is written down, :mod:`.messages` what is said, :mod:`.state` what a node
knows, :mod:`.reports` what a proposer concludes, :mod:`.quorum` how a quorum agrees, :mod:`.inside`
the node inside, :mod:`.pace` when to do what, :mod:`.autopilot` who should be a member.
"""
