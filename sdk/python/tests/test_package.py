"""What is generated is up to date, and what is built can be installed and used."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from daemon import Daemon

PROJECT = Path(__file__).resolve().parents[1]

USE = """
import sys
from acpd_client import SyncAcpdClient, __file__ as place
import acpd_client.acp
assert place.startswith(sys.prefix), place
with SyncAcpdClient(sys.argv[1]) as client:
    print(client.health().status)
"""


# inspector: SDK Python: models generated from docs/openapi.json; ../tools/generate.py writes them
def test_generated_files_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, str(PROJECT / "tools" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


# inspector: SDK Python: no `Any` in what is public
def test_generated_models_have_no_any() -> None:
    assert "Any" not in (PROJECT / "src" / "acpd_client" / "models.py").read_text().split("import Annotated", 1)[1]


# issue 12: the wheel installs and runs in an empty directory
def test_the_wheel_is_installed_and_used(tmp_path: Path, shared: Daemon) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(PROJECT)]
    subprocess.run([*pip, *build], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "empty"
    venv.create(place, with_pip=False)
    # check.py has fetched what it depends on.
    fetched = os.environ.get("ACPD_SDK_WHEELS")
    source = ["--no-index", "--find-links", fetched] if fetched else ["-c", str(PROJECT / "requirements.txt")]
    install = ["--python", str(place), "install", "--no-compile", *source, f"{wheel}[acp]"]
    subprocess.run([*pip, *install], check=True, cwd=tmp_path)
    used = subprocess.run(
        [str(place / "bin" / "python"), "-W", "error", "-c", USE, shared.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (used.stdout, used.stderr) == ("ok\n", "")
