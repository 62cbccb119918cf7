"""Why a connection failed, in words for whoever must mend it."""

from __future__ import annotations

import os
import socket
import ssl

STRANGER = "another secret or authority than ours"
TLS = {
    "CERTIFICATE_VERIFY_FAILED": STRANGER,
    "TLSV1_ALERT_UNKNOWN_CA": STRANGER,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate: start with a secret or with one",
    "WRONG_VERSION_NUMBER": "it does not speak TLS: is it started with a secret?",
    "HTTP_REQUEST": "it speaks HTTP",
}


def error_text(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return TLS.get(error.reason, f"TLS failed: {error.reason.replace('_', ' ').lower()}")
    if isinstance(error, socket.gaierror):
        return f"no such host ({(error.strerror or str(error)).lower()})"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    if isinstance(error, ConnectionError):
        return str(error) or "the other side hung up"
    return str(error) or type(error).__name__
