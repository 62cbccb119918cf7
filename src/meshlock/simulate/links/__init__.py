"""What becomes of what is on a failing link, one model in each file."""
