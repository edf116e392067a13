"""One virtual environment for each peer, made once: PyTorch first, in one exact version, then the peer."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

TORCH = "torch==2.13.0"  # exactly: where a looser range is allowed, pip may take gigabytes for graphics cards

TORCHVISION = "with torchvision's operators nms and qnms declared, which do not load beside PyTorch's CPU build"


@dataclass(frozen=True)
class Peer:
    name: str
    script: str
    packages: tuple[str, ...]  # the first is the peer itself
    torch: bool = True
    note: str = ""  # what its environment needs beyond its own requirements
    workloads: tuple[str, ...] = ("mnist", "cifar")

    @property
    def folder(self) -> str:
        return self.script.removeprefix("with_").removesuffix(".py")


PEERS = (
    Peer("Flower simulation", "with_flower.py", ("flwr[simulation]==1.41.0",)),
    Peer("pfl-research", "with_pfl.py", ("pfl[pytorch]==0.6.0",)),
    Peer("FedLab", "with_fedlab.py", ("fedlab==1.3.0",), note=TORCHVISION),
    Peer(
        "FLGo", "with_flgo.py", ("flgo==0.4.4",),
        note=f"{TORCHVISION}, and its data set given the method __getitems__, which PyTorch 2.13 asks for",
        workloads=("mnist",),  # it deals the data itself, and evenly here
    ),
    Peer("fluke", "with_fluke.py", ("fluke-fl==0.8.1",), note=TORCHVISION),
    Peer(
        "FedJAX", "with_fedjax.py",
        ("fedjax==0.0.17", "jax<0.4.26", "jaxlib<0.4.26", "dm-haiku<0.0.13", "scipy<1.13", "numpy<2"),
        torch=False,
        note="with a JAX of its time, since it calls functions that later ones removed; it starts from Haiku's initial "
        "weights, of three times the variance of PyTorch's",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Environment:
    python: Path
    versions: dict[str, str]


class InstallError(Exception):
    """Why a peer could not be installed, in the last words of pip."""


def make(peer: Peer, folder: Path) -> Environment:
    """The peer's environment in `folder`; found again if it was completed there with the same packages."""
    home = folder / peer.folder
    python, stamp = home / "bin" / "python", home / "installed.json"
    wanted = [TORCH, *peer.packages] if peer.torch else list(peer.packages)
    if not (stamp.is_file() and json.loads(stamp.read_text())["wanted"] == wanted):
        venv.create(home, with_pip=True, clear=True)
        constraints = home / "constraints.txt"
        constraints.write_text(TORCH + "\n" if peer.torch else "")
        if peer.torch:
            _install(python, [TORCH, "numpy"])
        _install(python, ["-c", str(constraints), *peer.packages])
        stamp.write_text(json.dumps({"wanted": wanted, "versions": _versions(python, peer)}))
    return Environment(python, json.loads(stamp.read_text())["versions"])


def _install(python: Path, arguments: list[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise InstallError((errors or done.stderr.splitlines() or ["pip failed"])[-1].removeprefix("ERROR: "))


def _versions(python: Path, peer: Peer) -> dict[str, str]:
    """Versions of the peer and of what computes for it."""
    own = peer.packages[0].split("==")[0].split("[")[0]
    names = [own, "torch", "ray", "jax", "numpy"]
    code = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: have[n] for n in sys.argv[1:] if n in have}))"
    )
    return json.loads(subprocess.check_output([str(python), "-c", code, *names], text=True))


if __name__ == "__main__":  # make or find all, and say what does not install
    for peer in PEERS:
        try:
            print(peer.name, make(peer, Path(sys.argv[1])).versions, flush=True)
        except InstallError as reason:
            print(f"{peer.name} does not install: {reason}", flush=True)
