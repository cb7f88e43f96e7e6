"""Writes what is not written by hand: the models, from docs/openapi.json, and the blocking client, from the other one.

`python tools/generate.py` writes them, `--check` says which of them are not up to date (exit code 1).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "src" / "acpd_client"
OPENAPI = PROJECT.parent.parent / "docs" / "openapi.json"

# Read by events.py, which tells the kinds of events apart.
BY_HAND = {"EventsPage"}

# Events whose `question` is read from the raw request in them.
ASKING = {"PermissionRequestedEvent": "AsksPermission", "ElicitationRequestedEvent": "AsksForm"}

MODELS = """\
--input-file-type openapi --output-model-type pydantic_v2.BaseModel --target-python-version 3.10
--base-class acpd_client._base.Model --additional-imports acpd_client._base.OPEN
--enum-field-as-literal all --use-type-alias --use-standard-collections --use-union-operator --use-annotated
--snake-case-field --use-schema-description --use-field-description --use-title-as-name
--disable-timestamp --formatters builtin"""

HEADER = '"""What the daemon answers and sends. Written by tools/generate.py from docs/openapi.json."""\n\n'

# A name of the async client, and what stands for it in the blocking one.
BLOCKING = {
    "AsyncClient": "Client",
    "AsyncHTTPTransport": "HTTPTransport",
    "_async": "_sync",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aiter_sse": "iter_sse",
    "anyio": "time",
    "aread": "read",
}


def description() -> str:
    """The schemas alone: the operations are the methods of the client."""
    document = json.loads(OPENAPI.read_text())
    schemas = {k: v for k, v in document["components"]["schemas"].items() if k not in BY_HAND}
    for name, schema in schemas.items():
        for variant in schema.get("oneOf", []):
            if "properties" in variant:
                variant["title"] = name + next(iter(variant["properties"])).capitalize()
    return json.dumps({**document, "paths": {}, "components": {"schemas": schemas}})


def models(work: Path) -> str:
    """The text of models.py."""
    (work / "openapi.json").write_text(description())
    output = work / "models.py"
    command = [sys.executable, "-m", "datamodel_code_generator", *MODELS.split()]
    command += ["--input", str(work / "openapi.json"), "--output", str(output)]
    subprocess.run(command, check=True)
    return HEADER + finished(output.read_text())


def finished(text: str) -> str:
    """What the generator has no option for: raw values are JSON, and lists of words are open."""
    text = re.sub(r"\A(#.*\n)+\n*", "", text)
    text = re.sub(r"^from typing import .*$", "from typing import Annotated, Literal", text, flags=re.M)
    text = text.replace("import AwareDatetime, ", "import AwareDatetime, JsonValue, ")
    text = re.sub(r"(?<=[\[( ])Any(?=[\]) ,\n])", "JsonValue", text)
    words = re.compile(r"^(\w+ = TypeAliasType\(\s*\"\w+\",\s*)(Literal\[[^\]]*\])", re.M)
    text = words.sub(r"\1Annotated[\2, OPEN]", text)
    names = re.findall(r"^(?:class )?(\w+)(?:\(Model\):| = TypeAliasType)", text, re.M)
    text = text.replace("\n\n\nclass", f"\n\n__all__ = {sorted(names)}\n\n\nclass", 1)
    for name, base in ASKING.items():
        text = text.replace(f"class {name}(Model):", f"class {name}({base}):")
    bases = ", ".join(ASKING.values())
    return re.sub(
        r"^(from acpd_client\._base import .*)$",
        rf"\1\nfrom acpd_client._questions import {bases}",
        text,
        count=1,
        flags=re.M,
    )


def blocking(work: Path) -> dict[Path, str]:
    """The files of the blocking client."""
    source, target = PACKAGE / "_async", work / "_sync"
    rule = unasync.Rule(str(source), str(target), BLOCKING)
    files = sorted(source.glob("*.py"))
    unasync.unasync_files([str(file) for file in files], [rule])
    note = "# Written by tools/generate.py from _async.\n"
    return {PACKAGE / "_sync" / file.name: note + (target / file.name).read_text() for file in files}


def formatted(texts: dict[Path, str], work: Path) -> dict[Path, str]:
    """The texts as ruff has them."""
    files = {path: work / f"{number}.py" for number, path in enumerate(texts)}
    for path, text in texts.items():
        files[path].write_text(text)
    # From the project, wherever this is run: what ruff takes for the package's own follows from the directory.
    ruff = [sys.executable, "-m", "ruff", "--config", str(PROJECT / "pyproject.toml")]
    named = [str(file) for file in files.values()]
    subprocess.run(
        [*ruff[:3], "check", *ruff[3:], "-q", "--select", "I,F811", "--fix", *named], check=True, cwd=PROJECT
    )
    subprocess.run([*ruff[:3], "format", *ruff[3:], "-q", *named], check=True, cwd=PROJECT)
    return {path: file.read_text() for path, file in files.items()}


def generated() -> dict[Path, str]:
    """Each generated file with its text."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        return formatted({PACKAGE / "models.py": models(work), **blocking(work)}, work)


def outdated() -> list[str]:
    """The files that are not what would be written now."""
    texts = generated()
    known = {*texts, *(PACKAGE / "_sync").glob("*.py")}
    wrong = [p for p in known if not p.exists() or texts.get(p) != p.read_text()]
    return sorted(str(path.relative_to(PROJECT)) for path in wrong)


def main() -> int:
    """Writes, or with `--check` compares."""
    if sys.argv[1:] == ["--check"]:
        wrong = outdated()
        for name in wrong:
            print(f"{name} is not up to date; run tools/generate.py")
        return 1 if wrong else 0
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
