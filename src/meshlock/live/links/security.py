"""Who may link to us: mutual TLS 1.3, from certificate files or from one shared secret.

Either way both sides prove themselves in the TLS handshake, before a byte of ours is
read. With certificates, the private authority of ``meshlock certs`` vouches for each
name. With a join secret, the authority's key is *derived from the secret*: a machine that knows
the secret can make the authority, and so vouch for itself, under any name; nobody else can. There
is one mechanism, and the secret is never sent. It takes the extra ``meshlock[live]``.

Without either, :func:`unprotected` links are for one machine only.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from asyncio import BaseTransport
from pathlib import Path
from time import gmtime, strftime, time
from typing import TYPE_CHECKING

from meshlock.errors import Refused

if TYPE_CHECKING:
    from meshlock.live.links.identity import Identity

SHORTEST_SECRET = 16
NO_CHECK_TIME = 0x200000  # of OpenSSL: dates are checked by vouched


class Security:
    """The two TLS contexts of a node, and its ``identity``, by which others know what it says
    where somebody else hands it on; all None on links within one machine, where nothing is proved.

    ``knock`` is the host name that nodes of this mesh ask for in their first packet. Strangers
    do not know it, but a reader of the network's traffic does: it proves nothing, and only
    decides whose handshake comes first when there are too many (:mod:`.admission`).

    ``tells_apart``: a name is one machine's; a machine that knows a join secret can take any.
    """

    def __init__(
        self,
        server: ssl.SSLContext | None,
        client: ssl.SSLContext | None,
        knows: bytes = b"",
        identity: Identity | None = None,
    ) -> None:
        self.server = server
        self.client = client
        self.identity = identity
        self.tells_apart = False
        self.knock = hashlib.sha256(b"meshlock knock" + knows).hexdigest()[:40].encode()

    def vouched(self, transport: BaseTransport) -> str | None:
        """The name that the other side has proved; None where nothing is proved. A certificate that
        is not valid now is refused here, and not by TLS, so that both sides can say why."""
        if self.server is None:
            return None
        certificate = transport.get_extra_info("peercert") or {}
        name = ""
        for part in certificate.get("subject", ()):
            for key, value in part:
                if key == "commonName":
                    name = str(value)
        refuse_by_date(name, certificate)
        return name


def refuse_by_date(name: str, certificate: dict[str, str]) -> None:
    now = time()
    since, until = (
        ssl.cert_time_to_seconds(certificate[field]) for field in ("notBefore", "notAfter")
    )
    if not since <= now <= until:
        when = f"is valid only from {day(since)}" if now < since else f"expired on {day(until)}"
        raise Refused(
            f"the certificate of {name[:64]} {when}, and the clock of its peer says {day(now)}"
        )


def day(seconds: float) -> str:
    return strftime("%Y-%m-%d", gmtime(seconds))


def unprotected() -> Security:
    return Security(None, None)


def by_certificate(
    authority: str | Path, certificate: str | Path, key: str | Path, knows: bytes | None = None
) -> Security:
    """Files as ``meshlock certs`` makes them. What all nodes know, and nobody is shown, is the
    authority's certificate, unless there is something better."""
    for what, path in (("authority", authority), ("certificate", certificate), ("key", key)):
        if not Path(path).is_file():
            raise Refused(f"There is no {what} file {path}: make one with 'meshlock certs'.")
    from meshlock.live.links.identity import Identity

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # peers are known by the name in the certificate, not by address
    server.num_tickets = 0  # every connection proves itself anew
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= NO_CHECK_TIME
        try:
            context.load_verify_locations(str(authority))
            context.load_cert_chain(str(certificate), str(key))
        except ssl.SSLError as error:
            raise Refused(
                f"{certificate} and {key} are not a certificate and its key: {error}."
            ) from None
    known = b"".join(sorted(client.get_ca_certs(binary_form=True))) if knows is None else knows
    made = Security(server, client, known, Identity.load(authority, certificate, key))
    made.tells_apart = knows is None
    return made


def by_secret(secret: str, name: str) -> Security:
    """One secret for all nodes; the certificate is made here and lives as long as the process."""
    if len(secret) < SHORTEST_SECRET:
        raise Refused(
            "The join secret is too short, so it can be guessed: use "
            f"{SHORTEST_SECRET} characters or more, such as 'meshlock certs secret' "
            "makes."
        )
    from meshlock.live.links.certificates import Authority

    authority = Authority.derived(secret)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        authority.save(place / "ca")
        authority.issue(name).save(place / "node")
        knows = (place / "ca.key").read_bytes()  # the certificate differs from node to node
        return by_certificate(place / "ca.crt", place / "node.crt", place / "node.key", knows)
