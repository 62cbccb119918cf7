from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium


@pytest.fixture(scope="module")  # while it runs, asyncio.run() fails: not for longer than needed
def browser():
    with chromium() as launched:
        yield launched


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Plain tracebacks: beside playwright's greenlets, Python 3.11 cannot parse sources."""
    if item.path.parent != Path(__file__).parent:
        return (yield)
    style, item.config.option.tbstyle = item.config.option.tbstyle, "native"
    try:
        return (yield)
    finally:
        item.config.option.tbstyle = style
