#!/usr/bin/env python3
"""Writes what a package of the command says of its dependencies: their licences, and a bill of materials.

    scripts/third_party.py FOLDER

THIRD-PARTY.txt has the name, version, licence and authors of each crate that is linked into the command, and the texts of
its licences; ebbtide.cdx.json lists them in the format CycloneDX 1.5.
"""

import json
import pathlib
import subprocess
import sys

TEXTS = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def linked() -> list[dict]:
    """The packages that the command consists of, apart from the workspace's own."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    start = next(i for i, package in packages.items() if package["name"] == "ebbtide-cli")
    seen, left = {start}, [start]
    while left:
        for edge in edges[left.pop()]:
            is_linked = any(kind["kind"] is None for kind in edge["dep_kinds"])
            if is_linked and edge["pkg"] not in seen:
                seen.add(edge["pkg"])
                left.append(edge["pkg"])
    found = [packages[i] for i in seen if packages[i]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def notices(packages: list[dict]) -> str:
    """Who has written them, and under which terms. A text that many share is written once."""
    places: dict[str, list[str]] = {}
    lines = ["The command ebbtide contains these libraries.", ""]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        authors = ", ".join(package["authors"]) or "its contributors"
        lines.append(f"{name}: {package['license'] or 'see below'}; {authors}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name.upper().startswith(TEXTS):
                places.setdefault(path.read_text(errors="replace").strip(), []).append(name)
    for text, names in sorted(places.items(), key=lambda place: place[1]):
        lines += ["", "=" * 80, ", ".join(sorted(set(names))), "=" * 80, "", text]
    return "\n".join(lines) + "\n"


def bill(packages: list[dict]) -> dict:
    """A bill of materials (CycloneDX 1.5)."""
    def component(package: dict) -> dict:
        name, version = package["name"], package["version"]
        entry = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
        if package["license"]:
            entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        return entry

    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "application", "name": "ebbtide"}},
            "components": [component(package) for package in packages]}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    packages = linked()
    (folder / "THIRD-PARTY.txt").write_text(notices(packages))
    (folder / "ebbtide.cdx.json").write_text(json.dumps(bill(packages), indent=1) + "\n")


if __name__ == "__main__":
    main()
