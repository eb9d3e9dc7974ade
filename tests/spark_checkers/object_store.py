"""An object store on this machine: moto's S3, from wheels that are fetched once, and Hadoop's file system for Spark.

The SDK that Hadoop declares is a bundle of 686 MB; the parts of it that S3 needs are 15.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from pyarrow import fs

from conformance.parts.maven import Artifact, JarSet
from conformance.parts.wheels import Wheel

MOTO = Wheel(
    "moto",
    "5.2.5",
    (
        "blinker==1.9.0",
        "boto3==1.44.5",
        "botocore==1.44.5",
        "certifi==2026.10.18",
        "cffi==2.1.1",
        "charset-normalizer==3.5.2",
        "click==8.5.1",
        "cryptography==50.0.2",
        "flask==3.1.3",
        "flask-cors==6.0.5",
        "idna==3.20",
        "itsdangerous==2.2.0",
        "jinja2==3.1.6",
        "jmespath==1.1.0",
        "markupsafe==3.0.4",
        "py-partiql-parser==0.6.3",
        "pycparser==3.12",
        "python-dateutil==2.9.0.post0",
        "pyyaml==6.0.3",
        "requests==2.34.2",
        "responses==0.26.3",
        "s3transfer==0.19.3",
        "six==1.17.0",
        "urllib3==2.8.0",
        "werkzeug==3.1.9",
        "xmltodict==1.0.4",
    ),
)
SDK = "2.35.4"
JARS = JarSet(
    product="Hadoop's S3 file system 3.5.0",
    name="s3a-parts",
    place="s3a/3.5.0/lib",
    artifacts=(
        Artifact(
            "org.apache.hadoop", "hadoop-aws", "3.5.0", without="software.amazon.awssdk:bundle"
        ),
        Artifact("software.amazon.awssdk", "s3", SDK),
        Artifact("software.amazon.awssdk", "s3-transfer-manager", SDK),
        Artifact("software.amazon.awssdk", "sts", SDK),
    ),
)
SPARK_HAS = ("slf4j", "netty", "commons-codec", "commons-logging")
BUCKET = "histories"
UP_S = 120
KEYS = {"AWS_ACCESS_KEY_ID": "inorder", "AWS_SECRET_ACCESS_KEY": "inorder"}


class ObjectStore:
    """A server with one bucket, empty at first. folder: for its log and for Spark's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        with (folder / "moto.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                env={**os.environ, "PYTHONPATH": str(MOTO.ensure())},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        try:
            self._wait()
            self._files = fs.S3FileSystem(
                access_key=KEYS["AWS_ACCESS_KEY_ID"],
                secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
                region="us-east-1",
                scheme="http",
                endpoint_override=f"127.0.0.1:{self.port}",
                allow_bucket_creation=True,
            )
            self._files.create_dir(BUCKET)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ObjectStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        until = time.monotonic() + UP_S
        while time.monotonic() < until:
            assert self._process.poll() is None, (self.folder / "moto.log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError(f"moto is not up after {UP_S} s")

    def put(self, folder: Path, name: str) -> str:
        """A folder's files, under that name; returns its URI."""
        fs.copy_files(
            str(folder),
            f"{BUCKET}/{name}",
            source_filesystem=fs.LocalFileSystem(),
            destination_filesystem=self._files,
        )
        return f"s3a://{BUCKET}/{name}"

    def environment_with(self, settings: str) -> dict[str, str]:
        """What a user sets for Arrow's file systems and for Spark's. settings: further lines of Spark's."""
        return {
            **KEYS,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "SPARK_CONF_DIR": str(self._settings(settings)),
        }

    def _settings(self, more: str) -> Path:
        jars = [
            str(jar)
            for jar in sorted(JARS.ensure().glob("*.jar"))
            if not jar.name.startswith(SPARK_HAS)
        ]
        s3a = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": KEYS["AWS_ACCESS_KEY_ID"],
            "secret.key": KEYS["AWS_SECRET_ACCESS_KEY"],
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        }
        lines = [f"spark.jars {','.join(jars)}"]
        lines += [f"spark.hadoop.fs.s3a.{name} {value}" for name, value in s3a.items()]
        folder = self.folder / "spark"
        folder.mkdir(exist_ok=True)
        (folder / "spark-defaults.conf").write_text("\n".join(lines) + f"\n{more}")
        return folder
