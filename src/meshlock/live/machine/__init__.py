"""What a process has of its machine: a clock, an event loop, a log, and words for its errors."""
