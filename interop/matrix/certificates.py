"""The certificates that all adapters share, made by the program openssl."""

import subprocess
from pathlib import Path

NAMES = "subjectAltName=DNS:localhost,DNS:peer,IP:127.0.0.1"


def make_certificates(folder: Path) -> None:
    """Writes authority.pem, peer.key, peer.crt, and peer.pem, which has both of these."""
    folder.mkdir(parents=True, exist_ok=True)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *curve, "-days", "30", "-keyout", "authority.key", "-out", "authority.pem",
            "-subj", "/CN=interop authority", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *curve, "-keyout", "peer.key", "-out", "peer.csr", "-subj", "/CN=peer")
    (folder / "extensions").write_text(f"{NAMES}\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n")
    openssl("x509", "-req", "-in", "peer.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial",
            "-days", "30", "-extfile", "extensions", "-out", "peer.crt")
    (folder / "peer.pem").write_text((folder / "peer.key").read_text() + (folder / "peer.crt").read_text())
