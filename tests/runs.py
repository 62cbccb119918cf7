"""How tests start a simulation."""

from meshlock.simulate.settings import run_settings, simulation


def finished(trace=None, **given):
    """Run these settings to the end."""
    run = simulation(run_settings(given), trace)
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    return run


def per_entry(run, *kinds):
    messages = run.measures.messages
    return sum(messages.get(kind, 0) for kind in kinds or messages) / run.measures.entries


def sync_delay(run):
    return run.measures.sync_total / run.measures.sync_count
