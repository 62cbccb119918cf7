"""Why a connection failed, in words for operators."""

from __future__ import annotations

import os
import socket
import ssl

STRANGER = "the peer has another secret or authority"
TLS = {
    "CERTIFICATE_VERIFY_FAILED": STRANGER,
    "TLSV1_ALERT_UNKNOWN_CA": STRANGER,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer has no certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a secret or certificates: set the same",
    "WRONG_VERSION_NUMBER": "the peer does not use TLS: does it have a secret or certificates?",
    "HTTP_REQUEST": "the peer sent HTTP",
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
        return str(error) or "connection closed by peer"
    return str(error) or type(error).__name__
