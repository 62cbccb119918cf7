"""Every interleaving of a small set-up, breadth first."""
