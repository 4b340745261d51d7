"""Publish the stub like the operator of its domain: sign it, and put it into a catalogue.

`shout.py` calls it; by hand: `python publish.py FOLDER stream://HOST:PORT`
"""

import json
import subprocess
import sys
from pathlib import Path

DOMAIN = "shout.example"
PACKAGE = Path(__file__).with_name("package")
TRUST = f"""\
# A runtime trusts this domain and its publisher; the server may be in a private network.
[domains."{DOMAIN}"]
keys = "domain/jwks.json"
publishers = ["acme"]
reach = "anywhere"

[publishers.acme]
keys = "acme/jwks.json"
"""


def protofly(*arguments: str | Path) -> None:
    """Run a command of protofly; the command itself prints its errors."""
    command = [sys.executable, "-m", "actors", *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(done.returncode)


def publish(folder: Path, endpoint: str) -> tuple[Path, Path]:
    """Make keys, sign the package, publish it; return the catalogue and the trust file."""
    keys: dict[str, Path] = {}
    for signer in ("domain", "acme"):
        protofly("token", "keys", "--kid", signer, "--out", folder / signer)
        keys[signer] = folder / signer / f"{signer}.key.json"
    draft, signed, catalogue = folder / "draft.json", folder / "signed.jws", folder / "catalogue"
    draft.write_text(json.dumps({"version": "1", "endpoints": [endpoint]}))
    protofly(
        *("stub", "sign", draft, "--out", signed, "--domain", DOMAIN, "--key", keys["domain"]),
        *("--package", PACKAGE, "--entry-point", "shout_stub:activate"),
        *("--machine", "stub_connection"),
        *("--publisher", "acme", "--publisher-key", keys["acme"]),
    )
    public = folder / "domain" / "jwks.json"
    protofly("stub", "publish", signed, "--keys", public, "--into", catalogue)
    trust = folder / "trust.toml"
    trust.write_text(TRUST)
    return catalogue, trust


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python publish.py FOLDER stream://HOST:PORT")
    publish(Path(sys.argv[1]), sys.argv[2])
