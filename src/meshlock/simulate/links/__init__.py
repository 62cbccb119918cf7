"""What happens to messages on a failing link, one model in each file.

May import: algorithms, topology, properties, world, simulate.
Must not know: algorithms by name.
"""
