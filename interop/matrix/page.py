"""The matrix as a page: in HTML with links to logs and captures, and in Markdown for the documents."""

import re
from html import escape

from features import Feature
from history import table
from raw import RawFeature

RAW_GROUP = "Raw datagrams"
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


def failures(feature: Feature, pairs: dict) -> dict[tuple[str, str], str]:
    """The reasons, by server and client."""
    return {
        pair: re.sub(r"127\.0\.0\.1:\d+: ", "", held[key(feature)]["reason"] or "").replace("|", "\\|").replace("`", "'")
        for pair, held in pairs.items()
        if held.get(key(feature), {}).get("status") in ("fail", "missing")
    }


def explained(titles: dict[str, str], feature: Feature, found: dict[tuple[str, str], str], pairs: dict) -> str:
    """Who fails: a server with all clients or a client with all servers in one piece, other pairs by reason."""
    parts, rest = [], dict(found)
    for place, text in ((0, "{} as server, with all clients"), (1, "{} as client, with all servers")):
        for name in titles:
            tried = [
                pair for pair, held in pairs.items()
                if pair[place] == name and held.get(key(feature), {}).get("status") in ("pass", "fail")
            ]
            if len(tried) > 2 and all(pair in found for pair in tried):
                reasons = dict.fromkeys(found[pair] for pair in tried)
                shown = next(iter(reasons)) + (", among others" if len(reasons) > 1 else "")
                parts.append(f"{text.format(titles[name])} ({shown})")
                rest = {pair: reason for pair, reason in rest.items() if pair not in tried}
    by_reason: dict[str, list[str]] = {}
    for (server, client), reason in rest.items():
        by_reason.setdefault(reason, []).append(f"{titles[client]} → {titles[server]}")
    parts += [f"{', '.join(who)} ({reason})" for reason, who in by_reason.items()]
    return "; ".join(parts)


def raw_cells(feature: RawFeature, names: list[str], raw: list[dict]) -> list[dict]:
    """The result of each server."""
    held = {each["server"]: {r["name"]: r for r in each["results"]} for each in raw}
    return [held[name][feature.name] for name in names]


def raw_markdown(titles: dict[str, str], features: list[RawFeature], raw: list[dict]) -> list[str]:
    names = list(titles)
    out = [
        "", f"## {RAW_GROUP}", "",
        "Datagrams that no library sends, from the runner to each server. “–” means that a server lacks an extension that it does not "
        "have to have.", "",
        "| feature | reference | " + " | ".join(titles[name] for name in names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    wrong = []
    for feature in features:
        cells = raw_cells(feature, names, raw)
        out.append(f"| {feature.name} | {feature.reference} | " + " | ".join(MARKS[cell["status"]] for cell in cells) + " |")
        by_reason: dict[str, list[str]] = {}
        for name, cell in zip(names, cells):
            if cell["status"] in ("fail", "missing"):
                by_reason.setdefault(cell["reason"], []).append(titles[name])
        if by_reason:
            parts = [f"{', '.join(servers)} ({reason})" for reason, servers in by_reason.items()]
            wrong.append(f"- **{feature.name}**: {'; '.join(parts)}.")
    if wrong:
        out += ["", "<!-- prose: off -->", "", "Failures:", "", *wrong, "", "<!-- prose: on -->"]
    return out


def markdown(
    titles: dict[str, str], features: list[Feature], results: list[dict], raw_features: list[RawFeature], raw: list[dict]
) -> str:
    pairs = by_pair(results)
    names = list(titles)
    implementations = {title.split()[0] for title in titles.values()}
    out = [
        "# The interoperability matrix",
        "",
        f"This page is written by `interop/run.py --publish`. It shows {len(implementations)} implementations of CoAP in {len(names)} versions, each "
        f"in each role that it has, with {len(features) + len(raw_features)} features. All traffic passes a relay. That of UDP "
        "records it, and loses, delays, reorders or repeats datagrams where a group or a feature says so. All clients and servers of the secured groups have the same certificate, key or "
        "OSCORE context. [interop/README.md](../interop/README.md) explains how to run the matrix and how to "
        "add an implementation. A run also writes an HTML page, whose cells link to the log and to the packets in the captures of each pair.",
        "",
        "A cell counts the features that work, of those that both sides support. “–” means that one side offers no such transport, extension or call. A "
        "failure can be due to either side, and some features depend on the application rather than on the library. "
        "[Where other implementations differ](../studies/peers.md) explains the deviations that were examined.",
        "",
        "## Servers and clients",
        "",
        "Rows are servers, columns are clients.",
        "",
        "| server | " + " | ".join(titles[name] for name in names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for server in names:
        cells = [share(list(pairs.get((server, client), {}).values())) for client in names]
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
        wrong = [(feature, failures(feature, pairs)) for feature in chosen]
        if any(found for _, found in wrong):
            out += ["", "<!-- prose: off -->", "", "Failures; an arrow leads from the client to the server:", ""]
            out += [f"- **{feature.name}**: {explained(titles, feature, found, pairs)}." for feature, found in wrong if found]
            out += ["", "<!-- prose: on -->"]
    if raw_features:
        out += raw_markdown(titles, raw_features, raw)
    return "\n".join(out) + "\n"


STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } .wide { overflow-x: auto; }
td, th { border: 1px solid #bbb; padding: .25rem .5rem; text-align: left; }
.pass { background: #dff3df; } .fail { background: #f9d9d6; } .missing { background: #f3c6f0; } .unsupported { color: #777; }
@media print { .wide { overflow: visible; } body { font-size: 9px; } td, th { padding: 2px; } tr { break-inside: avoid; } }
"""


def evidence(result: dict) -> str:
    """A link to the capture, with the numbers of the packets as Wireshark counts them."""
    if "capture" not in result:
        return ""
    first, last = result["packets"]
    return f"<a href='{result['capture']}'>packets {first} to {last}</a>"


def row(feature: Feature | RawFeature, result: dict) -> str:
    return (
        f"<tr class={result['status']}><td>{escape(feature.name)}<td>{escape(feature.reference)}"
        f"<td>{MARKS[result['status']]}<td>{escape(result['reason'] or '')}<td>{evidence(result)}"
    )


HEADINGS = "<div class=wide><table><tr><th>feature<th>reference<th>result<th>reason<th>capture"


def html(
    titles: dict[str, str], features: list[Feature], results: list[dict], raw_features: list[RawFeature], raw: list[dict],
    runs: list[dict],
) -> str:
    pairs = by_pair(results)
    names = list(titles)
    out = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>CoAP interoperability</title><style>{STYLE}</style><h1>CoAP interoperability</h1>"
        "<p>Rows are servers, columns are clients; a cell links to the features of the pair, with logs and captures."
        "<div class=wide><table><tr><th>"
    ]
    out += [f"<th>{escape(titles[name])}" for name in names]
    out += [f"<th>{RAW_GROUP.lower()}"] if raw_features else []
    held_raw = {each["server"]: {r["name"]: r for r in each["results"]} for each in raw}

    def cell(server: str, client: str, held: list[dict]) -> str:
        text = share(held)
        if text == "–":
            return "<td>–"
        done = text.split("/")
        kind = "missing" if "start" in text else "pass" if len(done) == 2 and done[0] == done[1] else "fail"
        return f"<td class={kind}><a href='#{server}--{client}'>{text}</a>"

    for server in names:
        out.append(f"<tr><th>{escape(titles[server])}")
        out += [cell(server, client, list(pairs.get((server, client), {}).values())) for client in names]
        if raw_features:
            out.append(cell(server, "raw", list(held_raw[server].values())))
    out.append("</table></div>")
    out += [f"<img src='badges/{name}.svg' alt='{escape(title, quote=True)}'> " for name, title in titles.items()]
    out += [table(runs)] if runs else []
    for (server, client), held in pairs.items():
        name = f"{server}--{client}"
        out.append(
            f"<h2 id='{name}'>{escape(titles[server])} as server, {escape(titles[client])} as client</h2>"
            f"<p><a href='{name}.log'>log</a>{HEADINGS}"
        )
        for group in groups(features):
            rows = [row(feature, held[key(feature)]) for feature in features if feature.group == group and key(feature) in held]
            out += [f"<tr><th colspan=5>{escape(group)}", *rows] if rows else []
        out.append("</table></div>")
    for server in names if raw_features else []:
        name = f"{server}--raw"
        out.append(f"<h2 id='{name}'>{escape(titles[server])} as server, raw datagrams</h2><p><a href='{name}.log'>log</a>{HEADINGS}")
        out += [row(feature, held_raw[server][feature.name]) for feature in raw_features]
        out.append("</table></div>")
    return "\n".join(out)
