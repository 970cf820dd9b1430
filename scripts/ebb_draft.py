"""studies/ebb.md as an Internet-Draft: source for kramdown-rfc, and the text if the tools are installed.

    ebb_draft.py FOLDER

Writes FOLDER/draft-ebbtide-ebb.md. With `kramdown-rfc` (Debian: ruby-kramdown-rfc2629) and `xml2rfc` (PyPI) it
builds the draft's text as well, offline, since the references are part of the source.
"""

import pathlib
import re
import shutil
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).parent.parent / "studies/ebb.md"
NAME = "draft-ebbtide-ebb"

# Title, authors, date and series of each reference.
NORMATIVE = {
    "RFC2119": ("Key words for use in RFCs to Indicate Requirement Levels", "S. Bradner", "1997-03", "RFC: 2119"),
    "RFC6298": (
        "Computing TCP's Retransmission Timer", "V. Paxson, M. Allman, J. Chu, M. Sargent", "2011-06", "RFC: 6298",
    ),
    "RFC7252": (
        "The Constrained Application Protocol (CoAP)", "Z. Shelby, K. Hartke, C. Bormann", "2014-06", "RFC: 7252",
    ),
    "RFC7641": (
        "Observing Resources in the Constrained Application Protocol (CoAP)", "K. Hartke", "2015-09", "RFC: 7641",
    ),
    "RFC8174": (
        "Ambiguity of Uppercase vs Lowercase in RFC 2119 Key Words", "B. Leiba", "2017-05", "RFC: 8174",
    ),
    "FASOR": (
        "Fast-Slow Retransmission Timeout and Congestion Control Algorithm for CoAP",
        "I. Järvinen, M. Kojo, I. Raitahila, Z. Cao", "2023-03", "Internet-Draft: draft-ietf-core-fasor-02",
    ),
}  # fmt: skip
INFORMATIVE = {
    "COCOA": (
        "CoAP Simple Congestion Control/Advanced", "C. Bormann, A. Betzler, C. Gomez, I. Demirkol", "2018-02",
        "Internet-Draft: draft-ietf-core-cocoa-03",
    ),
}  # fmt: skip


def references(kind: str, entries: dict) -> str:
    lines = [f"{kind}:"]
    for anchor, (title, authors, date, series) in entries.items():
        names = "".join(f"\n      - name: {name}" for name in authors.split(", "))
        lines.append(f'  {anchor}:\n    title: "{title}"\n    author:{names}\n    date: {date}\n    seriesinfo:\n      {series}')
    return "\n".join(lines) + "\n"


def front(title: str) -> str:
    return (
        f'---\ntitle: "{title}"\nabbrev: Ebb\ndocname: {NAME}-latest\ncategory: exp\nsubmissiontype: independent\n'
        "ipr: trust200902\narea: WIT\nworkgroup: CoRE\nkeyword: CoAP, congestion control\n"
        "stand_alone: yes\npi: [toc, sortrefs, symrefs]\n"
        "author:\n  - org: Ebbtide\n\n"
        + references("normative", NORMATIVE)
        + references("informative", INFORMATIVE)
        + "\n"
    )


def prose(text: str) -> str:
    """A line of prose with references as kramdown-rfc has them."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    text = text.replace("[", "\\[").replace("]", "\\]")
    text = re.sub(r"draft-ietf-core-fasor(-02)?", "{{FASOR}}", text)
    text = text.replace("draft-ietf-core-cocoa-03", "{{COCOA}}")
    return re.sub(r"RFC (\d{4})", lambda found: f"{{{{RFC{found[1]}}}}}", text)


def draft(document: str) -> str:
    """The document in the form that kramdown-rfc reads."""
    out, in_code, is_left_out = [], False, False
    title = "Ebb"
    for line in document.splitlines():
        if line.startswith("```"):
            in_code = not in_code
            if not is_left_out:
                out.append("~~~")
            continue
        heading = None if in_code else re.match(r"(#+) (?:(Appendix [A-Z])\. |[\d.]+\.? )?(.*)", line)
        if heading and heading[1] == "#":
            title = heading[3]
            continue
        if heading and len(heading[1]) == 2:
            # The references are made from the lists above.
            is_left_out = heading[3] == "References"
            if heading[3] == "Abstract":
                out = ["--- abstract"]
                continue
            if heading[3] == "Introduction":
                out.append("--- middle\n")
            if heading[2]:
                out.append("--- back\n")
        if is_left_out:
            continue
        if heading:
            out.append(f"{'#' * (len(heading[1]) - 1)} {heading[3]}")
        else:
            # An abstract has no references.
            is_plain = in_code or "--- middle\n" not in out
            out.append(line if is_plain else prose(line))
    return front(title) + "\n".join(out) + "\n"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{NAME}.md"
    source.write_text(draft(DOCUMENT.read_text()))
    print(source)
    if not (shutil.which("kramdown-rfc") and shutil.which("xml2rfc")):
        print("kramdown-rfc and xml2rfc are not both installed: the text is not built", file=sys.stderr)
        return
    xml = source.with_suffix(".xml")
    with xml.open("w") as file:
        subprocess.run(["kramdown-rfc", source], stdout=file, check=True)
    subprocess.run(["xml2rfc", "--quiet", "--no-network", "--text", xml], check=True)
    print(xml.with_suffix(".txt"))


main()
