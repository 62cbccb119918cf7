"""Who said it, where it did not come over a link of its own: needs the extra ``meshlock[live]``.

On a link TLS proves the name of the node at the other end. What others hand on is proved by
the node that made it:

*Records* of the link map are signed with the key of their owner's certificate, which goes with
them. They are checked when they are new, once.

*Routed messages* carry a tag, which only the two ends can compute. Every process draws a key
pair (X25519) when it starts; the public half stands in its record, so nobody can tell another one
in its name. What both ends derive from their two halves is the key of a keyed hash
(BLAKE2b) over who sends to whom, and what: it is made once per pair of processes, so a tag costs
microseconds, and is good for no other life of either.

With a join secret all nodes can make certificates, under any name: then this proves that a message
comes from somebody who knows the secret and says that name first.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from meshlock.errors import Refused
from meshlock.live.links.frames import LinksFrame, encode
from meshlock.live.links.rate_limit import keep_latest
from meshlock.live.machine.limits import MOST_NODES

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.x509.oid import NameOID
except ImportError:
    raise Refused(
        "Certificates and join secrets need the package 'cryptography': "
        "pip install 'meshlock[live]'."
    ) from None

TAG = 16  # bytes
REMEMBERED = 2 * MOST_NODES  # certificates that were checked, and keys that were derived
PURPOSE = b"meshlock routed"
HASHED = ec.ECDSA(hashes.SHA256())

Signing: TypeAlias = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Verifying: TypeAlias = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class Identity:
    """Of this process; ``authorities`` vouch for the names of others."""

    def __init__(
        self, authorities: list[x509.Certificate], certificate: x509.Certificate, key: Signing
    ) -> None:
        self.authorities = authorities
        self.certificate = certificate.public_bytes(serialization.Encoding.DER)
        self.signing = key
        self.agreeing = X25519PrivateKey.generate()
        self.public = self.agreeing.public_key().public_bytes_raw()
        self.vouched: dict[bytes, tuple[str, Verifying, datetime]] = {}
        self.keys: dict[bytes, bytes] = {}  # by the public half of the other end

    @classmethod
    def load(cls, authority: str | Path, certificate: str | Path, key: str | Path) -> Identity:
        try:
            authorities = x509.load_pem_x509_certificates(Path(authority).read_bytes())
            own = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
            private = serialization.load_pem_private_key(Path(key).read_bytes(), None)
        except (ValueError, TypeError) as error:
            raise Refused(
                f"{certificate} and {key} are not a certificate and its key: {error}."
            ) from None
        if not isinstance(private, Signing):
            raise Refused(
                f"{key} is a key that nodes cannot sign with: use one of an elliptic curve or "
                f"Ed25519, as 'meshlock certs' makes them."
            )
        for path, one in ((authority, authorities[0]), (certificate, own)):
            refuse_by_date(str(path), one)
        made = cls(authorities, own, private)
        if made.issuer(own) is None:
            raise Refused(
                f"{certificate} was not issued by the authority in {authority}: use the ca.crt "
                "of the authority that issued it."
            )
        return made

    # -- records of the link map ---------------------------------------------------------

    def signed(self, record: LinksFrame) -> LinksFrame:
        """The record of this node, as all others will believe it."""
        whole = msgspec.structs.replace(record, key=self.public, certificate=self.certificate)
        made = self.signing.sign(stated(whole), *hashing(self.signing))
        return msgspec.structs.replace(whole, signature=made)

    def doubts(self, record: LinksFrame) -> str:
        """Why this cannot be what the node of that name says; empty if it is."""
        try:
            name, key, until = self.vouched.get(record.certificate) or self.check(record)
            if name != record.name:
                return f"its certificate names {name[:64]!r}"
            if datetime.now(UTC) > until:
                return "its certificate has expired"
            key.verify(record.signature, stated(record), *hashing(key))
        except InvalidSignature:
            return "it is not signed by that node"
        except (ValueError, TypeError) as error:
            return f"its certificate is invalid: {error}"
        return ""

    def check(self, record: LinksFrame) -> tuple[str, Verifying, datetime]:
        """What a certificate says that we have not seen before; raises if no authority of ours has
        issued it."""
        found = x509.load_der_x509_certificate(record.certificate)
        if self.issuer(found) is None:
            raise ValueError("it was issued by another authority")
        if datetime.now(UTC) < found.not_valid_before_utc:
            raise ValueError("it is not valid yet")
        key = found.public_key()
        if not isinstance(key, Verifying):
            raise ValueError("its key is for something else")
        names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        name = str(names[0].value) if names else ""
        checked = (name, key, found.not_valid_after_utc)
        keep_latest(self.vouched, record.certificate, checked, REMEMBERED)
        return checked

    def issuer(self, found: x509.Certificate) -> x509.Certificate | None:
        """The authority of ours that has issued it."""
        for authority in self.authorities:
            if found.issuer == authority.subject:
                try:
                    found.verify_directly_issued_by(authority)
                except InvalidSignature:
                    continue
                return authority
        return None

    # -- routed messages -----------------------------------------------------------------

    def tag(self, public: bytes, origin: str, target: str, content: bytes) -> bytes:
        """That the two who have this key, ours and the one of the other end, say so to each
        other."""
        key = self.keys.get(public) or self.agree(public)
        made = hashlib.blake2b(content, digest_size=TAG, key=key)
        made.update(f">{origin}>{target}".encode())
        return made.digest()

    def proves(self, public: bytes, origin: str, target: str, content: bytes, tag: bytes) -> bool:
        return hmac.compare_digest(tag, self.tag(public, origin, target, content))

    def agree(self, public: bytes) -> bytes:
        try:
            shared = self.agreeing.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # no public key: nobody has the other half, and no tag will fit
            shared = self.agreeing.private_bytes_raw()
        key = hashlib.blake2b(shared, person=PURPOSE, digest_size=32).digest()
        keep_latest(self.keys, public, key, REMEMBERED)
        return key


def hashing(key: Signing | Verifying) -> tuple[Any, ...]:
    """What else such a key must be told: Ed25519 has its own hash."""
    own = isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey)
    return () if own else (HASHED,)


def refuse_by_date(path: str, certificate: x509.Certificate) -> None:
    now, since = datetime.now(UTC), certificate.not_valid_before_utc
    if now < since:
        raise Refused(
            f"{path} is not valid yet: it is from {since:%Y-%m-%d} on, and the clock of this "
            f"machine says {now:%Y-%m-%d}. Set the clock."
        )
    if now > certificate.not_valid_after_utc:
        raise Refused(
            f"{path} has expired on {certificate.not_valid_after_utc:%Y-%m-%d}: make a new one "
            "with 'meshlock certs', or set the clock of this machine."
        )


def stated(record: LinksFrame) -> bytes:
    """What a signature is of."""
    said = (record.name, record.boot, record.number, record.peers, record.addresses, record.key)
    return b"meshlock links" + encode(said)
