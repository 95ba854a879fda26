"""Measure how fast a browser draws a map of zones: as pages do, and with Plotly's MapLibre traces.

    python -m benchmarks.maplibre --plotly FILE [--runs 3] [--chromium FILE]

FILE is plotly.min.js of the npm package `plotly.js-dist-min` in the version of static/vendor: the bundle
that pages load has no map traces. Both pages come from this machine with the content policy of the site;
zones are polygons that touch, in five classes. Prints milliseconds to the first picture (from the start of
the navigation, scripts included), to the next day (other classes), and what the policy blocked. No request
leaves the machine. A browser without a graphics card draws WebGL in software, as here.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import numpy as np
import shapely
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

SIZES: Final = (37, 1_000)
N_DAYS: Final = 8
LIMIT_S: Final = 15.0
STEP: Final = 0.7548776662466927  # of the sequence that fills a square most evenly
SIDE_M: Final = 80_000
STATIC: Final = Path(__file__).parents[1] / "static"
POLICY: Final = "default-src 'self'; img-src 'self' data:; object-src 'none'"
WITH_WORKERS: Final = POLICY + "; worker-src blob:"
TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".json": "application/json",
}

# Every drawing, of either kind, goes through Plotly.react.
WATCH: Final = """
window.drawn = [];
const react = Plotly.react.bind(Plotly);
Plotly.react = async (plot, ...given) => {
  const found = await react(plot, ...given);
  const map = plot._fullLayout?.map?._subplot?.map;
  if (map) await new Promise((done) => { map.once("idle", done); map.triggerRepaint(); });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  window.drawn.push(performance.now());
  return found;
};
"""
AS_MAPLIBRE: Final = """
const { zones, days } = JSON.parse(document.getElementById("given").textContent);
const plot = document.querySelector(".map__plot");
const colours = ["#dceaf5", "#a6cae5", "#659fcc", "#2b6ca6", "#0b3a66"];
const colorscale = colours.flatMap((each, at) => [[at / 5, each], [(at + 1) / 5, each]]);
const layout = {
  width: plot.clientWidth, height: 500, margin: { l: 0, r: 0, t: 0, b: 0 },
  map: { style: { version: 8, sources: {}, layers: [] }, center: { lon: 0.36, lat: 0.27 }, zoom: 9 },
};
const dataOf = (z) => [{
  type: "choroplethmap", geojson: zones, locations: zones.features.map(({ id }) => id), z,
  zmin: -0.5, zmax: 4.5, colorscale, showscale: false, hoverinfo: "skip",
  marker: { line: { width: 0.9, color: "#7b8895" } },
}];
let day = 0;
const draw = () => Plotly.react(plot, dataOf(days[day]), layout, { displayModeBar: false });
document.querySelector("[data-step]").addEventListener("click", () => { day += 1; draw(); });
draw();
"""
HEAD: Final = """<!doctype html><meta charset="utf-8"><title>Map</title>
<link rel="stylesheet" id="plotly.js-style-global" href="/css/charts.css">
<link rel="stylesheet" href="/css/app.css"><link rel="stylesheet" href="/css/map.css">
<script src="/plotly.js" defer></script><script src="/watch.js" defer></script>
<script src="/map.js" type="module"></script>"""
FIGURE: Final = """<figure class="map" data-map="given"><div class="map__bar" data-days="/days.json" hidden>
<button type="button" data-step="1">Next</button></div><p><span data-title></span><a data-open hidden></a></p>
<div class="map__frame" tabindex="0"><div class="map__plot"></div><div class="map__hover" hidden></div>
<p class="map__scale" hidden></p><p class="map__blank" hidden></p></div></figure>"""


def spread(n: int, step: float) -> NDArray[np.float64]:
    """Numbers in [0, 1) that look like chance and are the same each time, shape (n,)."""
    return (np.arange(1, n + 1) * step) % 1


def zones_of(n: int) -> list[Any]:
    """Touching polygons that fill a square, in metres."""
    square = shapely.box(0, 0, SIDE_M, SIDE_M)
    points = shapely.multipoints(np.column_stack([spread(n, STEP), spread(n, STEP * STEP)]) * SIDE_M)
    cells = shapely.get_parts(shapely.voronoi_polygons(points, extend_to=square))
    return list(shapely.intersection(cells, square))


def pages(n: int, *, plotly: Path) -> dict[str, dict[str, bytes]]:
    """Files of both pages by address."""
    shapes = zones_of(n)
    days = [(spread(n, STEP * day) * 5).astype(int).tolist() for day in range(1, N_DAYS + 1)]
    rings = [np.rint(shapely.get_coordinates(each)).astype(int).ravel().tolist() for each in shapes]
    frames = [_frame(classes, title=f"Day {day}") for day, classes in enumerate(days, start=1)]
    now = {
        "shapes": {
            "zones": [{"name": f"Zone {at}", "rings": [ring]} for at, ring in enumerate(rings)],
            "layers": [],
            "bounds": [0, 0, SIDE_M, SIDE_M],
        },
        "frame": frames[0],
    }
    degrees = shapely.transform(np.array(shapes, object), lambda at: at / 111_000)
    features = [
        {"type": "Feature", "id": at, "properties": {}, "geometry": json.loads(shapely.to_geojson(each))}
        for at, each in enumerate(degrees)
    ]
    maplibre = {"zones": {"type": "FeatureCollection", "features": features}, "days": days}
    shared = {
        "/watch.js": WATCH.encode(),
        "/favicon.ico": b"",
        **{
            f"/css/{name}.css": (STATIC / f"css/{name}.css").read_bytes() for name in ("app", "map", "charts")
        },
    }
    as_now = {
        "/plotly.js": (STATIC / "vendor/plotly/plotly-basic.min.js").read_bytes(),
        "/map.js": (STATIC / "js/map.js").read_bytes(),
        "/days.json": json.dumps({"frames": frames}).encode(),
        "/page.html": _page(now),
    }
    with_maplibre = {
        "/plotly.js": plotly.read_bytes(),
        "/map.js": AS_MAPLIBRE.encode(),
        "/page.html": _page(maplibre),
    }
    return {"as now": shared | as_now, "MapLibre": shared | with_maplibre}


def _frame(classes: list[int], *, title: str) -> dict[str, Any]:
    panel = {"blank": "", "classes": classes, "texts": [""] * len(classes)}
    return {"title": title, "query": "", "panels": [panel]}


def _page(given: dict[str, Any]) -> bytes:
    data = f'<script type="application/json" id="given">{json.dumps(given)}</script>'
    return f"{HEAD}{FIGURE}{data}".encode()


class _Handler(BaseHTTPRequestHandler):
    """Serve files from memory under a content policy."""

    def __init__(self, *given: Any, files: dict[str, bytes], policy: str) -> None:
        self.files, self.policy = files, policy
        super().__init__(*given)

    def do_GET(self) -> None:
        """Answer with a file, or 404."""
        found = self.files.get(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", TYPES.get(Path(self.path).suffix, "text/plain"))
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(files: dict[str, bytes], *, policy: str) -> Iterator[str]:
    """Serve files on this machine; yields the address of the page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, files=files, policy=policy))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page.html"
    finally:
        server.shutdown()


def measure(browser: Browser, address: str) -> tuple[list[float], list[str]]:
    """Return milliseconds of the first picture and of the next day (median; [] = no picture), and errors."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(address)
        first = wait_for(page, 0)
        steps = []
        for n in range(1, N_DAYS):
            began = page.evaluate("performance.now()")
            page.evaluate("document.querySelector('[data-step]').click()")
            steps.append(wait_for(page, n) - began)
        return [first, statistics.median(steps[1:])], said
    except TimeoutError:  # a page that draws nothing is a result, too
        return [], said
    finally:
        page.close()


def wait_for(page: Page, n: int) -> float:
    """Return the time of drawing `n`, counted from 0; the policy forbids the page to evaluate conditions."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = page.evaluate(f"window.drawn?.[{n}] ?? null")
        if found is not None:
            return float(found)
        time.sleep(0.01)
    raise TimeoutError


def main() -> None:
    """Print a line a map, way and policy, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plotly", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=options.chromium, args=args)
        for n in SIZES:
            for name, files in pages(n, plotly=options.plotly).items():
                for policy in (POLICY,) if name == "as now" else (POLICY, WITH_WORKERS):
                    report(browser, n, name, files, policy=policy, runs=options.runs)
        browser.close()


def report(browser: Browser, n: int, name: str, files: dict[str, bytes], *, policy: str, runs: int) -> None:
    """Measure one page some times, and print it."""
    with serving(files, policy=policy) as address:
        found = [measure(browser, address) for _ in range(runs)]
    times = [each for each, _ in found if each]
    how = "policy of the site" if policy == POLICY else "worker-src blob: added"
    sys.stdout.write(f"{n} zones, {name}, {how}: ")
    if times:
        first, step = ([round(each[at]) for each in times] for at in (0, 1))
        sys.stdout.write(f"first picture {first} ms, next day {step} ms")
    else:
        sys.stdout.write("no picture")
    blocked = sorted({text[:160] for _, said in found for text in said})
    sys.stdout.write("".join(f"\n    {text}" for text in blocked) + "\n")


if __name__ == "__main__":
    main()
