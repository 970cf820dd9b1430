"""The matrix as a page: in HTML with links to logs and captures, and in Markdown for the documents."""

import re
from html import escape

from features import Feature

MARKS = {"pass": "yes", "fail": "no", "unsupported": "–", "missing": "did not start"}


def key(feature: Feature) -> tuple[str, str]:
    return feature.group, feature.name


def by_pair(results: list[dict]) -> dict[tuple[str, str], dict[tuple[str, str], dict]]:
    return {
        (pair["server"], pair["client"]): {(r["group"], r["name"]): r for r in pair["results"]}
        for pair in results
    }


def share(held: list[dict]) -> str:
    """Passed of those that both sides support."""
    if held and all(r["status"] == "missing" for r in held):
        return "did not start"
    counted = [r for r in held if r["status"] != "unsupported"]
    if not counted:
        return "–"
    return f"{sum(r['status'] == 'pass' for r in counted)}/{len(counted)}"


def groups(features: list[Feature]) -> list[str]:
    return list(dict.fromkeys(feature.group for feature in features))


def failures(titles: dict[str, str], feature: Feature, pairs: dict) -> list[tuple[str, str, str]]:
    found = []
    for (server, client), held in pairs.items():
        result = held.get(key(feature))
        if result and result["status"] in ("fail", "missing"):
            found.append((server, client, result["reason"] or ""))
    return found


def markdown(titles: dict[str, str], features: list[Feature], results: list[dict]) -> str:
    pairs = by_pair(results)
    names = list(titles)
    out = [
        "# The interoperability matrix",
        "",
        f"This page is written by `interop/run.py --publish`. {len(names)} implementations of CoAP are tested against each other, as server "
        f"and as client, with {len(features)} features. All UDP traffic passes a relay that records it; for the group “10 % loss” the relay "
        "loses a tenth of the datagrams in each direction. [interop/README.md](../interop/README.md) explains how to run the matrix and how to "
        "add an implementation. A run also writes a log and a capture of each pair, to which its HTML page links.",
        "",
        "A cell counts the features that work, of those that both sides support. “–” means that one side offers no such transport or call. A "
        "failure can be due to either side, and some features depend on the application rather than on the library. "
        "[Interoperability](interop.md) explains the deviations that were examined.",
        "",
        "## Servers and clients",
        "",
        "Rows are servers, columns are clients.",
        "",
        "| server | " + " | ".join(titles[name] for name in names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for server in names:
        cells = [share(list(pairs[server, client].values())) for client in names]
        out.append(f"| {titles[server]} | " + " | ".join(cells) + " |")
    for group in groups(features):
        chosen = [f for f in features if f.group == group]
        out += [
            "", f"## {group[0].upper()}{group[1:]}", "",
            "“S” counts the clients for which the implementation as server passes, “C” the servers for which it passes as client.", "",
            "| feature | reference | " + " | ".join(f"{titles[n]} S | C" for n in names) + " |",
            "|---|---|" + "---|---|" * len(names),
        ]
        for feature in chosen:
            cells = []
            for name in names:
                for place in (0, 1):
                    held = [h[key(feature)] for pair, h in pairs.items() if pair[place] == name and key(feature) in h]
                    cells.append(share(held))
            out.append(f"| {feature.name} | {feature.reference} | " + " | ".join(cells) + " |")
        wrong = [(feature, failures(titles, feature, pairs)) for feature in chosen]
        if any(found for _, found in wrong):
            out += ["", "Failures, as server ← client:", ""]
        for feature, found in wrong:
            if not found:
                continue
            reasons: dict[str, list[str]] = {}
            for server, client, reason in found:
                reason = re.sub(r"127\.0\.0\.1:\d+: ", "", reason).replace("|", "\\|").replace("`", "'")
                reasons.setdefault(reason, []).append(f"{server} ← {client}")
            listed = "; ".join(f"{', '.join(who)} ({reason})" for reason, who in reasons.items())
            out.append(f"- **{feature.name}**: {listed}.")
    return "\n".join(out) + "\n"


STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } .wide { overflow-x: auto; }
td, th { border: 1px solid #bbb; padding: .25rem .5rem; text-align: left; }
.pass { background: #dff3df; } .fail { background: #f9d9d6; } .missing { background: #f3c6f0; } .unsupported { color: #777; }
"""


def html(titles: dict[str, str], features: list[Feature], results: list[dict]) -> str:
    pairs = by_pair(results)
    names = list(titles)
    out = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>CoAP interoperability</title><style>{STYLE}</style><h1>CoAP interoperability</h1>"
        "<p>Rows are servers, columns are clients; a cell links to what the pair exchanged.<div class=wide><table><tr><th>"
    ]
    out += [f"<th>{escape(titles[name])}" for name in names]
    for server in names:
        out.append(f"<tr><th>{escape(titles[server])}")
        for client in names:
            held = list(pairs[server, client].values())
            text = share(held)
            done = text.split("/")
            kind = "missing" if "start" in text else "pass" if len(done) == 2 and done[0] == done[1] else "fail"
            out.append(f"<td class={kind}><a href='#{server}--{client}'>{text}</a>")
    out.append("</table></div>")
    for (server, client), held in pairs.items():
        name = f"{server}--{client}"
        out.append(
            f"<h2 id='{name}'>{escape(titles[server])} as server, {escape(titles[client])} as client</h2>"
            f"<p><a href='{name}.log'>log</a>, captures: <a href='{name}.pcap'>UDP</a>, "
            f"<a href='{name}-loss.pcap'>with loss</a>, <a href='{name}-dtls.pcap'>DTLS</a>"
            "<div class=wide><table><tr><th>group<th>feature<th>reference<th>result<th>reason"
        )
        for feature in features:
            result = held.get(key(feature))
            if result:
                out.append(
                    f"<tr class={result['status']}><td>{escape(feature.group)}<td>{escape(feature.name)}"
                    f"<td>{escape(feature.reference)}<td>{MARKS[result['status']]}<td>{escape(result['reason'] or '')}"
                )
        out.append("</table></div>")
    return "\n".join(out)
