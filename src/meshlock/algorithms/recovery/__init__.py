"""Recovery from crashes, as a layer over any token algorithm: :mod:`.layer`.

:mod:`.records` is what is written down, :mod:`.messages` what is said, :mod:`.state` what a node
knows, :mod:`.reports` what a proposer concludes, :mod:`.quorum` how a quorum agrees, :mod:`.inside`
the node inside, :mod:`.pace` when to do what, :mod:`.autopilot` who should be a member."""
