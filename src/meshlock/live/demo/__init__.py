"""The demonstration: real processes share permits while links are cut, and a report judges it."""
