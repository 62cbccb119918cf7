"""Recovery from crashes: :mod:`.node` is the state machine, :mod:`.messages` what it says,
:mod:`.state` what it knows, :mod:`.reports` what a proposer concludes, :mod:`.order` who is served
next, :mod:`.pace` when to do what."""
