"""Recovery from crashes: :mod:`.node` is the state machine, :mod:`.messages` what it says."""
