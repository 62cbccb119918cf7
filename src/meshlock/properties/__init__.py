"""What must always, or in the end, be true of a run, whoever runs it."""
