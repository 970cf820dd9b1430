"""What earlier runs of the matrix came to, and a badge for each implementation."""

import json
import time
from html import escape
from pathlib import Path

KEPT = 200  # runs


def totals(names: list[str], results: list[dict], raw: list[dict]) -> dict[str, list[int]]:
    """For each implementation the features that passed, of those that it and the other side support."""
    out = {}
    for name in names:
        cells = [r for pair in results if name in (pair["server"], pair["client"]) for r in pair["results"]]
        cells += [r for each in raw if each["server"] == name for r in each["results"]]
        counted = [cell for cell in cells if cell["status"] != "unsupported"]
        out[name] = [sum(cell["status"] == "pass" for cell in counted), len(counted)]
    return out


def read_runs(file: Path) -> list[dict]:
    """The runs of a file, oldest first; a ValueError names the line that is none."""
    runs = []
    for number, line in enumerate(file.read_text().splitlines() if file.exists() else [], 1):
        try:
            run = json.loads(line)
            runs.append({"date": run["date"], "titles": dict(run["titles"]), "totals": dict(run["totals"])})
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file}, line {number}: not a run of the matrix ({error})") from error
    return runs


def add_run(file: Path, titles: dict[str, str], now: dict[str, list[int]]) -> list[dict]:
    """Appends this run to the file, and returns all that the file keeps."""
    run = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "titles": titles, "totals": now}
    runs = [*read_runs(file), run][-KEPT:]
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return runs


def table(runs: list[dict]) -> str:
    """The runs in HTML, newest first; an implementation is named by its title, which has its version."""
    names = list(dict.fromkeys(name for run in reversed(runs) for name in run["totals"]))
    out = ["<h2>History</h2><p>Features that passed, of those that both sides support.<div class=wide><table><tr><th>date"]
    out += [f"<th>{escape(name)}" for name in names]
    for run in reversed(runs):
        out.append(f"<tr><td>{escape(run['date'])}")
        for name in names:
            cell = run["totals"].get(name)
            title = run["titles"].get(name, name)
            out.append(f"<td title='{escape(title, quote=True)}'>{cell[0]}/{cell[1]}" if cell else "<td>")
    out.append("</table></div>")
    return "".join(out)


def badge(title: str, passed: int, of: int) -> str:
    """An SVG with the share that passed."""
    label, text = title, f"{passed} of {of}"
    share = passed / of if of else 0.0
    colour = "#2e7d32" if share >= 0.95 else "#8a6d00" if share >= 0.8 else "#b3261e"
    left, right = 7 * len(label) + 12, 7 * len(text) + 12
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{left + right}' height='20' role='img' aria-label='{escape(label, quote=True)}: {text}'>"
        f"<rect width='{left}' height='20' fill='#444'/><rect x='{left}' width='{right}' height='20' fill='{colour}'/>"
        f"<g fill='#fff' font-family='Verdana,sans-serif' font-size='11' text-anchor='middle'>"
        f"<text x='{left / 2}' y='14'>{escape(label)}</text><text x='{left + right / 2}' y='14'>{text}</text></g></svg>\n"
    )


def write_badges(folder: Path, titles: dict[str, str], now: dict[str, list[int]]) -> None:
    folder.mkdir(exist_ok=True)
    for name, (passed, of) in now.items():
        (folder / f"{name}.svg").write_text(badge(f"CoAP: {titles[name]}", passed, of))
