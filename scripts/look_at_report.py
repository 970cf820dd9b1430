#!/usr/bin/env python3
"""Opens a report in headless Chromium and checks what a reader would see.

    scripts/look_at_report.py REPORT.html OUTDIR

At 1280 and at 400 pixels, in light and in dark: no console message of a warning or an error,
no request but the file itself, no page wider than the window, every drawing that is not folded
has a size, text in drawings is not smaller than a reader can read, and the colours of the page
follow the scheme. Legend buttons are pressed and a tip is shown once. Writes a screenshot of
each and the printed pages to OUTDIR, and one JSON line with what was found. Exit 0: as it should be, 1: not, 2: could
not look. Needs Python 3.9 and Chromium ($CHROMIUM, or chromium, chromium-browser,
google-chrome in $PATH); talks to it over a pipe, so no package is needed.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 90

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
]

LOOK = """(() => {
  const shown = e => !(e.closest("details:not([open])")) && !e.closest("[hidden]") && getComputedStyle(e).display !== "none"
    && !(e.parentElement && getComputedStyle(e.parentElement).display === "none");
  const svgs = [...document.querySelectorAll("figure svg[role=img]")].filter(shown);
  const sizes = svgs.map(e => e.getBoundingClientRect());
  const text = svgs.flatMap(e => {
    const t = e.querySelector("text");
    return t ? [e.getScreenCTM().a * parseFloat(getComputedStyle(t).fontSize)] : [];
  });
  const root = document.documentElement;
  return {
    drawings: svgs.length,
    empty: sizes.filter(r => r.width < 100 || r.height < 40).length,
    outside: sizes.filter(r => r.left < -1 || r.right > window.innerWidth + 1).length,
    smallest_text_px: Math.min(...text, 99),
    page_px: Math.max(root.scrollWidth, document.body.scrollWidth),
    window_px: window.innerWidth,
    background: getComputedStyle(document.body).backgroundColor,
    height_px: root.scrollHeight,
  };
})()"""

TOUCH = """(() => {
  const button = document.querySelector(".legend button");
  if (button) {
    button.click();
    const k = button.getAttribute("data-k");
    if (!document.querySelector("svg[role=img] ." + k + ".off")) return "legend does nothing";
    button.click();
    if (document.querySelector(".off")) return "legend does not undo";
  }
  // On a phone a wide table scrolls, and the names of its rows stay in sight.
  for (const box of document.querySelectorAll(".scroll")) {
    const name = box.querySelector("tbody th");
    if (window.innerWidth > 760 || !name || box.scrollWidth <= box.clientWidth) continue;
    box.scrollLeft = box.scrollWidth;
    if (name.getBoundingClientRect().left < box.getBoundingClientRect().left - 1) {
      return "names scroll out of " + name.closest("table").className;
    }
    box.scrollLeft = 0;
  }
  const target = document.querySelector("figure [data-tip]");
  if (target) {
    target.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 50, clientY: 50}));
    const tip = document.getElementById("tip");
    if (getComputedStyle(tip).display !== "block" || !tip.textContent) return "no tip";
    document.body.dispatchEvent(new PointerEvent("pointermove", {bubbles: true}));
    if (getComputedStyle(tip).display !== "none") return "tip stays";
  }
  return "";
})()"""


class Browser:
    """Chromium, spoken to in JSON messages that end in a zero byte."""

    def __init__(self, program, profile):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        # The browser reads from descriptor 3 and writes to 4.
        def arrange():
            high = os.dup(to_read), os.dup(to_write)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            close_fds=False, preexec_fn=arrange,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.count, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]

    def message(self, deadline):
        while b"\0" not in self.buffer:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self.read_end], [], [], wait)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.read_end, 1 << 20)
            if not chunk:
                raise ConnectionError("the browser has ended")
            self.buffer += chunk
        head, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(head)

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def until(self, method):
        deadline = time.monotonic() + PATIENCE_S
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message(deadline))

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"in the page: {answer['exceptionDetails']}")
        return answer["result"]["value"]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def complaints(events):
    """Console messages from warning up, exceptions, and requests that leave the file."""
    found = []
    for event in events:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            found.append(f"exception: {params['exceptionDetails'].get('text')}")
        elif event.get("method") == "Runtime.consoleAPICalled":
            found.append(f"console: {params['type']}: {params['args']}")
        elif event.get("method") == "Log.entryAdded":
            found.append(f"log: {params['entry']['level']}: {params['entry']['text']}")
        elif event.get("method") == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith("file:"):
                found.append(f"request: {url}")
    return found


def look(browser, url, width, scheme, picture):
    browser.events.clear()
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Page.navigate", url=url)
    browser.until("Page.loadEventFired")
    seen = browser.value(LOOK)
    wrong = []
    touched = browser.value(TOUCH)
    if touched:
        wrong.append(touched)
    wrong += complaints(browser.events)
    if seen["page_px"] > seen["window_px"] or seen["window_px"] != width:
        wrong.append(f"page of {seen['page_px']} px in a window of {seen['window_px']} px")
    for what in ("empty", "outside"):
        if seen[what]:
            wrong.append(f"{seen[what]} drawings {what}")
    if seen["smallest_text_px"] < 9.5:
        wrong.append(f"text of {seen['smallest_text_px']:.1f} px in a drawing")
    channels = [int(part) for part in seen["background"].strip("rgba()").split(",")[:3]]
    if (sum(channels) > 384) != (scheme == "light"):
        wrong.append(f"background {seen['background']} in {scheme}")
    shot = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": width,
                              "height": min(seen["height_px"], 16000), "scale": 1})
    picture.write_bytes(base64.b64decode(shot["data"]))
    if (width, scheme) == (1280, "light"):
        paper = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
        picture.with_suffix(".pdf").write_bytes(paper)
        seen["pages"] = paper.count(b"/Type /Page\n")
    return seen, wrong


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    report, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    program = next((found for name in names if name and (found := shutil.which(name))), None)
    if program is None or not report.is_file():
        print(f"cannot look: chromium {program}, report {report}", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(f"{domain}.enable")
            for width in (1280, 400):
                for scheme in ("light", "dark"):
                    picture = out / f"{report.stem}-{width}-{scheme}.png"
                    seen, faults = look(browser, report.as_uri(), width, scheme, picture)
                    seen.update(width=width, scheme=scheme, faults=faults)
                    print(json.dumps(seen))
                    wrong += len(faults)
        except (OSError, RuntimeError) as error:
            print(f"cannot look: {error}", file=sys.stderr)
            return 2
        finally:
            browser.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
