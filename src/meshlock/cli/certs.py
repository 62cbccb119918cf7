"""meshlock certs: a private authority, node certificates, join secrets."""

from __future__ import annotations

from pathlib import Path

import click

from meshlock.cli.flags import Commands
from meshlock.errors import Refused
from meshlock.settings import REQUIRED, argument, option

certs = Commands(
    "certs",
    "Make a private certificate authority and node certificates, or a join secret.",
    {"authority": "certs:authority", "node": "certs:node", "secret": "certs:secret"},
)

FOLDER: Path = option(Path("certs"), "Keep the files in this folder.")


def authority(folder: Path = FOLDER) -> None:
    """Make a private authority: ca.crt for everybody, ca.key for yourself alone.

    Example: meshlock certs authority
    """
    from meshlock.live.links.certificates import Authority

    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "ca.key").exists():
        raise Refused(f"There is an authority in {folder} already: use another --folder.")
    Authority.new().save(folder / "ca")
    click.echo(f"{folder / 'ca.crt'} goes to every node; keep {folder / 'ca.key'} to yourself.")


def node(
    name: str = argument(REQUIRED, "Issue a certificate to the node of this name."),
    folder: Path = FOLDER,
) -> None:
    """Make the certificate and key of one node, signed by the authority.

    Example: meshlock certs node robot-1
    """
    from meshlock.live.links.certificates import Authority
    from meshlock.live.machine.limits import name as legal

    if legal(name, "node") == "ca":
        raise Refused("A node cannot be called 'ca': the authority's certificate is called so.")
    Authority.load(folder / "ca").issue(name).save(folder / name)
    click.echo(f"{folder / name}.crt and {folder / name}.key go to {name}, with ca.crt.")


def secret() -> None:
    """Print a new join secret, which every node needs in place of certificates.

    Example: meshlock certs secret > secret
    """
    import secrets

    click.echo(secrets.token_urlsafe(32))
