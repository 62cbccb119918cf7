import pytest
from browser import chromium


@pytest.fixture(scope="module")  # while it runs, asyncio.run() fails: not for longer than needed
def browser():
    with chromium() as launched:
        yield launched
