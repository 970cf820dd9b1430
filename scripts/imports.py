"""Which source file imports which, in Rust and in Python, read from `use` lines, paths and `import` statements."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Graph = dict[str, set[str]]
Path_ = tuple[str, ...]  # of names, such as ("session", "server")


def tracked(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    return [folder / name for name in sorted(set(names)) if (folder / name).exists()]


def sources(src: Path) -> list[Path]:
    """The files of a crate without its tests."""
    return [path for path in tracked(src, "*.rs") if not path.name.endswith("tests.rs") and "tests" not in path.parts]


def flattened(text: str) -> str:
    """Rust without comments, strings and the test module at its end."""
    text = re.split(r"#\[cfg\((?:all\()?test", text)[0]
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


def used(line: str) -> list[tuple[Path_, str]]:
    """The paths of a `use` line, groups taken apart, each with the name that it gets."""
    found: list[tuple[Path_, str]] = []

    def take(prefix: Path_, rest: str) -> None:
        head, brace, inner = rest.partition("{")
        path, _, alias = head.partition(" as ")
        whole = (*prefix, *re.findall(r"\w+|\*", path))
        if not brace:
            whole = whole[:-1] if whole[-1:] == ("self",) and len(whole) > 1 else whole
            found.append((whole, alias.strip() or whole[-1]))
            return
        depth, start, inner = 0, 0, inner[: inner.rfind("}")]
        for place, char in enumerate(inner + ","):
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 0:
                if inner[start:place].strip():
                    take(whole, inner[start:place])
                start = place + 1

    take((), line)
    return [(path, name) for path, name in found if path]


class Crate:
    """The files of a crate by their module, and the names that each has from others."""

    def __init__(self, src: Path) -> None:
        self.files: dict[Path_, list[Path]] = {}
        self.names: dict[Path_, dict[str, Path_]] = {}
        self.globs: dict[Path_, list[Path_]] = {}
        self.paths: dict[Path_, list[Path_]] = {}
        self.texts: dict[Path, str] = {}
        for path in sources(src):
            parts = path.relative_to(src).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            self.files.setdefault(module, []).append(path)
            self.texts[path] = flattened(path.read_text(encoding="utf-8"))
        for module, paths in self.files.items():
            self.names[module], self.globs[module], self.paths[module] = {}, [], []
            for text in (self.texts[path] for path in paths):
                for line in re.findall(r"\buse ([^;]+);", text):
                    for names, name in used(line):
                        whole = self.absolute(module, names)
                        if whole is None:
                            continue
                        if whole[-1:] == ("*",):
                            self.globs[module].append(whole[:-1])
                        else:
                            self.names[module][name] = whole
                for name in re.findall(r"(?<![\w:])((?:crate|super)(?:::\w+)+)(?!\w*!)", re.sub(r"\buse [^;]+;", "", text)):
                    whole = self.absolute(module, tuple(name.split("::")))
                    if whole:
                        self.paths[module].append(whole)

    def absolute(self, module: Path_, names: Path_) -> Path_ | None:
        """A path from the crate's root; nothing if it leads to another crate."""
        above = 0
        while names[above : above + 1] == ("super",):
            above += 1
        if above:
            return (*module[: len(module) - above], *names[above:])
        if names[0] == "crate":
            return names[1:]
        if names[0] == "self":
            return (*module, *names[1:])
        return (*module, *names) if (*module, names[0]) in self.files else None

    def home(self, whole: Path_, seen: frozenset[Path_] = frozenset()) -> Path_:
        """The module of a path's item: names that a module has from another one are followed there."""
        module = next(whole[:end] for end in range(len(whole), -1, -1) if whole[:end] in self.files)
        rest = whole[len(module) :]
        if rest and whole not in seen:
            if rest[0] in self.names[module]:
                return self.home((*self.names[module][rest[0]], *rest[1:]), seen | {whole})
            texts = [self.texts[path] for path in self.files[module]]
            if not any(re.search(rf"\b(?:fn|struct|enum|trait|type|const|static|mod|union|macro_rules!) {rest[0]}\b", text) for text in texts):
                for source in self.globs[module]:
                    home = self.home((*source, *rest), seen | {whole})
                    if home != source or source in self.files and any(rest[0] in self.texts[path] for path in self.files[source]):
                        return home
        return module

    def graph(self) -> Graph:
        """Which file uses what another one defines."""
        graph: Graph = {}
        for module, paths in self.files.items():
            # What a module only hands on is no use of it.
            text = " ".join(re.sub(r"\bpub(?:\([^)]*\))? use [^;]+;", "", self.texts[path]) for path in paths)
            private = {whole for name, whole in self.names[module].items() if re.search(rf"(?<!pub )\buse [^;]*\b{name}\b", text)}
            homes = {self.home(whole) for whole in [*private, *self.paths[module], *self.globs[module]]}
            # A folder's file and the files in it are one: what these take from it is no arrow.
            graph[str(paths[0])] = {str(self.files[home][0]) for home in homes if home != module[: len(home)]}
        return graph


def rust(src: Path) -> Graph:
    return {name: uses - {name} for name, uses in Crate(src).graph().items()}


def python(folder: Path) -> Graph:
    """Which file of a folder of scripts or packages imports which."""
    places: dict[Path_, str] = {}
    for path in tracked(folder, "*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        places[parts[:-1] if parts[-1] == "__init__" else parts] = str(path)
    graph: Graph = {name: set() for name in places.values()}

    def find(names: Path_, name: str) -> str | None:
        """The file of a name; a package that hands it on is followed."""
        if (*names, name) in places:
            return places[*names, name]
        place = places.get(names)
        if place and place.endswith("__init__.py"):
            for statement in ast.walk(ast.parse(Path(place).read_text(encoding="utf-8"))):
                if isinstance(statement, ast.ImportFrom) and name in {each.name for each in statement.names} and statement.module:
                    whole = tuple(statement.module.split("."))
                    return find(whole, name) if whole != names else None
        return place

    for own, path in places.items():
        # A script imports what lies beside it.
        beside = own[:-1] if not path.endswith("__init__.py") else own
        for statement in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                imported = [(tuple(each.name.split(".")), "") for each in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                module = tuple(statement.module.split(".")) if statement.module else ()
                base = beside[: len(beside) + 1 - statement.level] if statement.level else ()
                imported = [((*base, *module), each.name) for each in statement.names]
            else:
                continue
            for names, name in imported:
                target = find(names, name) or find((*beside, *names), name)
                if target and target != path and not (target.endswith("__init__.py") and Path(target).parent in Path(path).parents):
                    graph[path].add(target)
    return graph
