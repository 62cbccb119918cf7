"""``python -m meshlock``: the command, where scripts are not on the path."""

from meshlock.cli.main import run

if __name__ == "__main__":
    run()
