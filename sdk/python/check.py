"""Checks the package, from nothing: `python3 check.py VENV_DIR [ARGUMENTS OF PYTEST]`.

Makes a virtual environment with the tools of requirements.txt in VENV_DIR, once, and runs the formatter, the linter, the type
checker and the tests there. Nothing is written beside it. The tests need acpd: `ACPD_BIN`, or target/debug/acpd. Exit code: 0
if all is well.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
REQUIREMENTS = PROJECT / "requirements.txt"


def install(place: Path) -> Path:
    """Sees to it that the tools are there; the Python that has them."""
    python = place / "bin" / "python"
    stamp, wanted = place / "installed", f"{sys.version}\n{REQUIREMENTS.read_text()}"
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(place, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", "-r", str(REQUIREMENTS)], check=True)
        # What the package depends on, for an environment that has nothing else.
        fetch = [
            "download",
            "--no-build-isolation",
            "-c",
            str(REQUIREMENTS),
            "-d",
            str(place / "wheels"),
            f"{PROJECT}[acp]",
        ]
        subprocess.run([*pip, *fetch], check=True)
        stamp.write_text(wanted)
    return python


def main(place: Path, options: list[str]) -> int:
    """Runs each check, up to the first that fails."""
    python = str(install(place))
    own = {
        "ACPD_SDK_WHEELS": str(place / "wheels"),
        "PYTHONPYCACHEPREFIX": str(place / "pycache"),
        "RUFF_CACHE_DIR": str(place / "ruff"),
    }
    for check in (
        ["ruff", "format", "--check", "-q", "."],
        ["ruff", "check", "-q", "."],
        ["mypy", "--cache-dir", str(place / "mypy")],
        ["pytest", "-p", "no:cacheprovider", *options],
    ):
        print(f"sdk/python: {check[0]}", flush=True)
        done = subprocess.run([python, "-m", *check], cwd=PROJECT, env={**os.environ, **own}, check=False)
        if done.returncode != 0:
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))
