"""The one record of a run: write, read, convert."""
