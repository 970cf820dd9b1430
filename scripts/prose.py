#!/usr/bin/env python3
"""Checks the prose of documents, doc comments, messages and help texts.

    scripts/prose.py                 check everything; fails if a crate or document has more findings than allowed
    scripts/prose.py FILE...         print every finding in these files
    scripts/prose.py --rules         print the rules with their advice
    scripts/prose.py --tighten       lower the allowances to the present counts (never raises one)
    scripts/prose.py --baseline      set them to the present counts: only to merge work that predates the rules

CONTRIBUTING.md explains the style. `scripts/prose-allowed.txt` holds, for each crate and each document
that was written before the rules were, how many findings it may still have; a document that is not
listed may have none. Allowances only fall: mend sentences, then run `--tighten`.

A sentence that a rule misjudges is exempted by a comment that contains `prose: allow RULE`, on the
same line or the line before; `prose: off` and `prose: on` enclose lines that are not checked.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "scripts/prose-allowed.txt"

# Words after "is no" that make ordinary English: "is no longer", "is no more than".
ORDINARY = "longer|more|less|fewer|later|earlier|larger|smaller|better|worse|different|doubt|need|one"
START = r"(?:^|(?<=[.!?;] ))"

# Name, pattern, advice, a text that the rule finds and one that it does not: both are checked at each
# start. A pattern sees one paragraph at a time with code replaced by a placeholder.
RULES = [
    ("is-none", r"(?<![Tt]here )\b(?:is|are|was|were|be) none\b(?! of)", 'say "is not a valid ...", or name the value that is missing',
     "The URI is none.", "There is none."),
    ("is-no", rf"(?<![Tt]here )\b(?:is|are|was|were) no (?!(?:{ORDINARY})\b)[a-z]", 'say "is not a ..."',
     "192.0.2.1 is no address of this machine", "It is no longer needed, and there is no other."),
    ("who", START + r"Who (?!(?:[^.?]*)\?)|\bto whom\b|\bfrom whom\b|\bwhoever\b|\bWhoever\b", '"who" is for people: say "a client that ..."',
     "Who has not acknowledged it gets one.", "Who sends it? Engineers who read this."),
    ("body", r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b", "name the actor: a client, a peer, a caller",
     "It has nobody to fail to.", "No body follows."),
    ("what-clause", START + r"What (?![^.?]*\?)", "name the thing instead of describing it with a clause",
     "What an endpoint is told.", "What is a probe?"),
    ("so-that", r"\bso that\b[^.;]*\bso that\b", 'one "so that" per sentence',
     "It waits so that it ends so that all is free.", "It waits so that it ends."),
    ("be-had", r"\b(?:be|is|are|was) had\b", 'say "is available" or "can be obtained"',
     "It cannot be had here.", "It had a queue."),
    ("telegram", r"\bRead it so\b|\bSo it is\b|\bsuch a one\b|\bof such\.|\bSeeing$|\bso are\b\.", "write a whole sentence in the usual order",
     "Read it so: 501 s.", "Read it first."),
    ("tells-of", r"\btells? of\b|\btold of\b", 'say "reports", "announces" or "shows"',
     "It tells of a Reset.", "It tells the caller."),
    ("is-told", r"\b(?:is|are|was|were) told\b", 'say "receives", "is notified of" or "is configured with"',
     "The caller is told.", "It told the caller."),
    ("if-fragment", START + r"If [^,.:;?!]*\.(?= |$)", 'complete the sentence: "Returns an error if ..."',
     "If it cannot be bound.", "If it is full, the oldest one goes."),
    ("two-colons", r"[^.:;?!]*: [^.:;?!]{4,}: [^.:;?!]{4,}[.]", "a colon is not a conjunction: use two sentences",
     "It waits: the queue is full: others go first.", "It waits: the queue is full."),
    ("idiom", r"\bevery now and then\b|\bin silence\b|\bfor ever\b|\bin good order\b|\bno excuse\b|\bno matter\b(?! (?:how|what|which|where|when|whether))|\bnow and then\b", "use the plain word: occasionally, silently, forever, cleanly",
     "It is dropped in silence.", "No matter how long it takes."),
    ("melt", r"\bmelt(?:s|ed|ing)?\b", 'say "cause congestion collapse" or "overload"',
     "It melts the network.", "The smelter reports."),
    ("book", r"\bbooks? (?:of|on) (?:a|an|the|what|each|every)\b", "say record, log or ledger",
     "The book of a sender.", "The book is built."),
    ("beside", r"\bnothing (?:else )?beside\b|\bbeside (?:it|them|that)\b", 'say "at the same time", "next to" or "alongside"',
     "With nothing beside it.", "The limit beside the rate."),
    ("in-turn", r"\bin the mean\b|\bat the one and\b|\bis one no more\b", "use the usual idiom: on average",
     "It takes 2 s in the mean.", "In the meantime it waits."),
]
LONG = 55  # words
RULES_COMPILED = [(name, re.compile(pattern, re.MULTILINE), advice) for name, pattern, advice, _, _ in RULES]
for (_name, _pattern, _), (*_, _wrong, _right) in zip(RULES_COMPILED, RULES):
    assert _pattern.search(_wrong) and not _pattern.search(_right), f"the rule {_name} misjudges its examples"
LONG_ADVICE = f"more than {LONG} words: split the sentence"


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    text: str
    advice: str


class Paragraph(NamedTuple):
    lines: list[tuple[int, str]]  # line number and text

    def joined(self) -> tuple[str, list[int]]:
        """The text, and the line number of each of its characters."""
        text, where = "", []
        for number, line in self.lines:
            text += line + " "
            where += [number] * (len(line) + 1)
        return without_code(text.rstrip()), where


def without_code(line: str) -> str:
    line = re.sub(r"``[^`]*``|`[^`]*`", lambda m: "C" * len(m.group()), line)
    line = re.sub(r"\]\([^)]*\)", lambda m: "]" + " " * (len(m.group()) - 1), line)
    line = re.sub(r"https?://\S+", lambda m: "U" * len(m.group()), line)
    # An abbreviation's point does not end a sentence.
    return re.sub(r"\b(e\.g|i\.e|vs|cf)\.", lambda m: m.group().replace(".", "_"), line)


def paragraphs_of_markdown(lines: list[tuple[int, str]]) -> Iterator[Paragraph]:
    paragraph: list[tuple[int, str]] = []
    fence = None
    blank = True
    for number, line in lines:
        stripped = line.strip()
        mark = re.match(r"(```+|~~~+)", stripped)
        if fence:
            if mark and stripped.startswith(fence):
                fence = None
            continue
        ends = not stripped or bool(mark) or stripped.startswith(("#", "|", "<!--"))
        begins = bool(re.match(r"([-*+]|\d+[.)])\s", stripped))
        code = blank and line.startswith("    ") and not begins and not paragraph
        if (ends or begins) and paragraph:
            yield Paragraph(paragraph)
            paragraph = []
        if mark:
            fence = mark.group(1)
        elif stripped.startswith("|"):
            for cell in stripped.strip("|").split("|"):
                if len(cell.split()) > 2:
                    yield Paragraph([(number, cell.strip())])
        elif not ends and not code:
            text = re.sub(r"^([-*+]|\d+[.)])\s+", "", stripped)
            paragraph.append((number, text))
        blank = not stripped or (code and blank)
    if paragraph:
        yield Paragraph(paragraph)


STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def paragraphs_of_rust(lines: list[tuple[int, str]]) -> Iterator[Paragraph]:
    comment: list[tuple[int, str]] = []
    for number, line in lines:
        match = re.match(r"\s*//[/!]( ?.*)?$", line)
        if match and not line.strip().startswith("////"):
            comment.append((number, (match.group(1) or "")[1:]))
            continue
        if comment:
            yield from paragraphs_of_markdown(comment)
            comment = []
        if line.strip().startswith("//"):
            continue
        for match in STRING.finditer(line):
            words = match.group(1)
            if len(words.split()) > 2:
                yield Paragraph([(number, words)])
    if comment:
        yield from paragraphs_of_markdown(comment)


def findings_in(path: Path) -> list[Finding]:
    name = path.relative_to(ROOT).as_posix()
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    exempt: dict[int, set[str]] = {}
    off = False
    for number, line in lines:
        off = (off or "prose: off" in line) and "prose: on" not in line
        if off:
            exempt[number] = {rule for rule, *_ in RULES} | {"long-sentence"}
        for rule in re.findall(r"prose: allow ([a-z-]+)", line):
            exempt.setdefault(number, set()).add(rule)
            exempt.setdefault(number + 1, set()).add(rule)
    found = []
    paragraphs = paragraphs_of_markdown(lines) if path.suffix == ".md" else paragraphs_of_rust(lines)
    for paragraph in paragraphs:
        text, where = paragraph.joined()

        def add(rule: str, at: int, excerpt: str, advice: str) -> None:
            if rule not in exempt.get(where[at], ()):
                found.append(Finding(name, where[at], rule, excerpt.strip(), advice))

        for rule, pattern, advice in RULES_COMPILED:
            for match in pattern.finditer(text):
                excerpt = text[max(0, match.start() - 20) : match.end() + 40]
                add(rule, match.start(), excerpt, advice)
        at = 0
        for sentence in re.split(r"(?<=[.!?:;]) ", text):
            if len(sentence.split()) > LONG:
                add("long-sentence", at, sentence[:80], LONG_ADVICE)
            at += len(sentence) + 1
    return sorted(found, key=lambda finding: finding.line)


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "crates/*.rs", "testbed/*.rs", "studies/*.rs", "interop/*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\n")
    chosen = []
    for name in sorted(set(filter(None, listed))):
        path = ROOT / name
        rust = name.endswith(".rs")
        if not path.exists() or (rust and ("/src/" not in name or name.endswith("tests.rs"))):
            continue
        chosen.append(path)
    return chosen


def allowed() -> dict[str, int]:
    if not ALLOWED.exists():
        return {}
    lines = [line.split("#")[0].split() for line in ALLOWED.read_text().splitlines()]
    return {name: int(count) for count, name in (line for line in lines if line)}


def write_allowed(counts: dict[str, int]) -> None:
    head = "# Findings of scripts/prose.py that a crate or document may still have. Numbers only fall (--tighten).\n"
    ALLOWED.write_text(head + "".join(f"{count:4} {name}\n" for name, count in sorted(counts.items()) if count))


def group(name: str) -> str:
    """What shares an allowance: the sources of a crate, or one document."""
    return "/".join(name.split("/")[:3]) if name.endswith(".rs") else name


@cache
def changed() -> frozenset[str]:
    """The files that differ from the last commit but one: a new finding is in one of them."""
    command = ["git", "diff", "--name-only", "HEAD~1"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    return frozenset(output.splitlines())


def show(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.text!r}\n    {finding.advice}")


def main(arguments: list[str]) -> int:
    if arguments == ["--rules"]:
        for name, pattern, advice, _, _ in RULES:
            print(f"{name:14} {advice}\n{'':14} {pattern}")
        print(f"{'long-sentence':14} {LONG_ADVICE}")
        return 0
    if arguments and not arguments[0].startswith("-"):
        found = [finding for name in arguments for finding in findings_in(Path(name).resolve())]
        show(found)
        print(f"{len(found)} findings")
        return 1 if found else 0
    if arguments not in ([], ["--tighten"], ["--baseline"]):
        print(__doc__, file=sys.stderr)
        return 2
    limits, total, failed = allowed(), 0, False
    found: dict[str, list[Finding]] = {}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        found.setdefault(group(name), []).extend(findings_in(path))
    for name, findings in found.items():
        total += len(findings)
        limit = limits.get(name, 0)
        if len(findings) > limit and not arguments:
            failed = True
            recent = [finding for finding in findings if finding.path in changed()]
            show(recent or findings)
            print(f"{name}: {len(findings)} findings, {limit} allowed\n")
    slack = [name for name, limit in limits.items() if len(found.get(name, ())) < limit]
    if arguments == ["--baseline"]:
        write_allowed({name: len(findings) for name, findings in found.items()})
    elif arguments:
        write_allowed({name: min(limit, len(found.get(name, ()))) for name, limit in limits.items()})
    elif slack:
        print(f"fewer findings than allowed in {', '.join(slack)}: run scripts/prose.py --tighten")
    print(f"{total} findings, {sum(limits.values())} allowed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
