"""Two zones apart, each in processes of its own, and the line between them."""

import ipaddress
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from benchmarks.installation import ROOT
from mobility.runtime import RuntimePaths
from scripts import services
from tests.e2e.deployment import wait_until

BUFFER_BYTES = 64 << 10


@dataclass(frozen=True)
class Certificates:
    """Files of an authority of our own, and of a server that it vouches for."""

    authority: Path
    server: Path
    key: Path


def certificates(folder: Path) -> Certificates:
    """An authority, and the certificate of a server at 127.0.0.1."""
    folder.mkdir()
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the test")])
    authority = (
        _certificate(subject=ca_name, issuer=ca_name, public_key=ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "analysts")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = (
        _certificate(subject=name, issuer=ca_name, public_key=key.public_key())
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    made = Certificates(folder / "authority.pem", folder / "server.pem", folder / "server.key")
    made.authority.write_bytes(authority.public_bytes(Encoding.PEM))
    made.server.write_bytes(server.public_bytes(Encoding.PEM))
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return made


def _certificate(
    *, subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


class AnalystServer:
    """A web server of the analyst zone, that can be killed and started again at the same address."""

    def __init__(
        self, root: Path, *, tls: Certificates | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.data, self.tls, self.log = root / "data", tls, root / "web.log"
        root.mkdir(parents=True, exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
        self.environment = inherited | {
            "DJANGO_SETTINGS_MODULE": "mobility.settings",
            "MOBILITY_ZONE": "analyst",
            "MOBILITY_DATA_DIR": str(self.data),
            **(environment or {}),
        }
        self.port = services.free_port()
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this zone."""
        return subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment, text=True,
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    def value(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        done = self.manage(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *, waits: bool = True) -> None:
        """Serve; a process that is still there keeps its address."""
        command = ["gunicorn", "mobility.wsgi", "--bind", f"127.0.0.1:{self.port}", "--no-control-socket"]
        if self.tls:
            command += ["--certfile", str(self.tls.server), "--keyfile", str(self.tls.key)]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command, "--worker-class", "gthread", "--threads", "4"],
                cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        if waits:
            wait_until(self.answers, what="the analyst server")

    def answers(self) -> bool:
        """Whether it answers, be it with a refusal."""
        context = ssl.create_default_context(cafile=str(self.tls.authority)) if self.tls else None
        try:
            with urlopen(f"{self.address}/api/v1/intake/", context=context, timeout=5):  # noqa: S310
                return True
        except HTTPError:
            return True
        except (OSError, HTTPException):
            return False

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it; by default as a machine that loses its power."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._process.wait(timeout=30)
            self._process = None

    def database(self) -> Path:
        return RuntimePaths(self.data).main_database


def totals_of(database: Path, study: str) -> dict[str, bytes]:
    """Everything that an SQLite database of reports has counted of a study, byte for byte."""
    tallies = (
        "SELECT i.slug, t.counts, t.n_reports FROM reports_tally t JOIN reports_indicator i "
        "ON i.id = t.indicator_id JOIN reports_study s ON s.id = i.study_id WHERE s.slug = ?"
    )
    visitors = (
        "SELECT 'visitors', v.counts, '' FROM reports_visitortally v JOIN reports_study s "
        "ON s.id = v.study_id WHERE s.slug = ?"
    )
    found = {}
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        for statement in (tallies, visitors):
            for slug, counts, n_reports in connection.execute(statement, [study]):
                found[slug] = bytes(counts)
                found[f"{slug}/n_reports"] = bytes(n_reports or b"")
    return found


class ForgetfulLine:
    """Passes bytes on in both directions, but loses answers: what was sent arrives, and nobody hears of it.

    A connection that has carried more than `longest` bytes upwards loses its answer, `losses` times.

    Attributes
    ----------
    carried : bytes that each connection carried upwards, of those that have ended
    """

    def __init__(self, port: int) -> None:
        self._port, self.longest, self.losses = port, 0, 0
        self.carried: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                below, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._carry, args=(below,), daemon=True).start()

    def _carry(self, below: socket.socket) -> None:
        carried = 0

        def is_lost() -> bool:
            return carried > self.longest and self.losses > 0

        try:
            above = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            below.close()
            return
        down = threading.Thread(target=self._down, args=(above, below, is_lost), daemon=True)
        down.start()
        with above, suppress(OSError):
            while data := below.recv(BUFFER_BYTES):
                carried += len(data)
                above.sendall(data)
        self.carried.append(carried)

    def _down(self, above: socket.socket, below: socket.socket, is_lost: Callable[[], bool]) -> None:
        with below, suppress(OSError):
            while data := above.recv(BUFFER_BYTES):
                if is_lost():
                    self.losses -= 1
                    return
                below.sendall(data)


@contextmanager
def forgetful_line(port: int) -> Iterator[ForgetfulLine]:
    """Such a line inside this block; it loses nothing before it is told to."""
    line = ForgetfulLine(port)
    try:
        yield line
    finally:
        line.close()
