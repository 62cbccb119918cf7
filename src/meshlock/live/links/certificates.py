"""A private authority and the certificates it issues. Needs the extra ``meshlock[live]``."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from meshlock.errors import Refused

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise Refused(
        "Certificates and join secrets need the package 'cryptography': "
        "pip install 'meshlock[live]'."
    ) from None

AUTHORITY = "meshlock private authority"
YEARS = 10
ALWAYS = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
"""When certificates from a secret are valid: it is the same secret, whatever a clock says."""

CURVE = ec.SECP256R1()
GROUP_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class Issued:
    """A key and its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate

    def save(self, stem: Path) -> None:
        """Write ``stem.crt`` and, readable by the owner only, ``stem.key``."""
        key = stem.with_name(stem.name + ".key")
        key.touch(mode=0o600)
        key.write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        certificate = stem.with_name(stem.name + ".crt")
        certificate.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))


class Authority(Issued):
    valid: tuple[datetime, datetime] | None = None
    """When its certificates are; None: from yesterday on, for clocks differ, for ten years."""

    @classmethod
    def new(cls) -> Authority:
        return cls.of(ec.generate_private_key(CURVE), None)

    @classmethod
    def derived(cls, secret: str) -> Authority:
        """The authority that this secret stands for, the same on every machine.

        A peer that links to a node sees its certificate, and could try secrets against it at
        leisure; scrypt makes each try cost 64 MB and a good part of a second.
        """
        seed = hashlib.scrypt(
            secret.encode(), salt=b"meshlock join secret", n=2**16, r=8, p=1, maxmem=2**27, dklen=48
        )
        number = int.from_bytes(seed) % (GROUP_ORDER - 1) + 1
        return cls.of(ec.derive_private_key(number, CURVE), ALWAYS)

    @classmethod
    def of(
        cls, key: ec.EllipticCurvePrivateKey, valid: tuple[datetime, datetime] | None
    ) -> Authority:
        builder = named(AUTHORITY, key.public_key(), valid)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        builder = builder.add_extension(usage(signs_certificates=True), critical=True)
        made = cls(key, builder.sign(key, hashes.SHA256()))
        made.valid = valid
        return made

    @classmethod
    def load(cls, stem: Path) -> Authority:
        try:
            key = serialization.load_pem_private_key(
                stem.with_name(stem.name + ".key").read_bytes(), None
            )
            certificate = x509.load_pem_x509_certificate(
                stem.with_name(stem.name + ".crt").read_bytes()
            )
        except FileNotFoundError as error:
            raise Refused(
                f"No authority found ({error.filename}): make one with 'meshlock certs authority'."
            ) from None
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(key, certificate)

    def issue(self, name: str) -> Issued:
        """A certificate that says: the holder of this key is the node of this name."""
        key = ec.generate_private_key(CURVE)
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = named(name, key.public_key(), self.valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(signer, critical=False)
        return Issued(key, builder.sign(self.key, hashes.SHA256()))


def named(
    name: str, key: ec.EllipticCurvePublicKey, valid: tuple[datetime, datetime] | None
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    since, until = valid or (now - timedelta(days=1), now + timedelta(days=365 * YEARS))
    return x509.CertificateBuilder(
        subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
        issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY)]),
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=since,
        not_valid_after=until,
    ).add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
