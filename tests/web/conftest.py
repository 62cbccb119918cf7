import pytest
from browser import chromium


@pytest.fixture(scope="session")
def browser():
    with chromium() as launched:
        yield launched
