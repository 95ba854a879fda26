// Draws maps: zones in a few classes, or a grid, with lines of rivers, roads and borders. Pages hold the shapes
// and one frame as data: <figure data-map="ID of the data">; the frames of all days are fetched when somebody
// plays through them. A figure has one or more panels, which show the same days and the same part of the area.
//
// Plotly draws the map and moves it under the pointer. The zones of a class are one shape, a grid is an image of
// one pixel a cell: of all that its basic bundle has, these are the fastest (docs/maps.md). Where the pointer is,
// is looked up here: a mark for each of thousands of zones would slow everything down.

const NOT_ASKED = -1;
const NOT_READ = -2;
const HIDDEN = -3;
const PATTERNS = { [NOT_READ]: { shape: "/", size: 7, solidity: 0.2 }, [HIDDEN]: { shape: ".", size: 7, solidity: 0.2 } };
const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: false, responsive: false };
const MARGIN = 1.06; // of the area at its edges
const MAX_ZOOM = 64;
const NAME_PX = 12; // of the names of zones
const PLAY_MS = 1200; // for a frame, where the page names no pace
const HEIGHT = { least: 260, most: 620 };
const NO_AXIS = { visible: false, fixedrange: false, zeroline: false, showgrid: false };
const DRAG = matchMedia("(pointer: fine)").matches ? "pan" : false; // a finger scrolls the page

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// --- shapes ---------------------------------------------------------------------------------

function addPath(trace, flat) {
  for (let at = 0; at < flat.length; at += 2) {
    trace.x.push(flat[at]);
    trace.y.push(flat[at + 1]);
  }
  trace.x.push(null);
  trace.y.push(null);
}

function boxOf(rings) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  rings.flat().forEach((value, at) => {
    const axis = at % 2; // east, then north
    box[axis] = Math.min(box[axis], value);
    box[axis + 2] = Math.max(box[axis + 2], value);
  });
  return box;
}

// Inside an odd number of rings.
function isInside(rings, x, y) {
  let inside = false;
  for (const flat of rings) {
    for (let at = 0; at + 3 < flat.length; at += 2) {
      const [x1, y1, x2, y2] = [flat[at], flat[at + 1], flat[at + 2], flat[at + 3]];
      if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) inside = !inside;
    }
  }
  return inside;
}

function zoneAt(zones, x, y) {
  return zones.findIndex(
    ({ box, rings }) => x >= box[0] && y >= box[1] && x <= box[2] && y <= box[3] && isInside(rings, x, y),
  );
}

// The widest place inside of a zone along a few lines from west to east: [x, y, width], for its name.
function roomOf({ rings, box }) {
  const lines = [0.5, 0.4, 0.6, 0.3, 0.7].map((share) => box[1] + share * (box[3] - box[1]));
  const rooms = lines.flatMap((y) => {
    const crossings = rings.flatMap((flat) => crossingsOf(flat, y)).sort((a, b) => a - b);
    return crossings.flatMap((x, at) => (at % 2 ? [[(crossings[at - 1] + x) / 2, y, x - crossings[at - 1]]] : []));
  });
  return rooms.reduce((best, room) => (room[2] > best[2] ? room : best), [box[0], box[1], 0]);
}

function crossingsOf(flat, y) {
  const found = [];
  for (let at = 0; at + 3 < flat.length; at += 2) {
    const [x1, y1, x2, y2] = [flat[at], flat[at + 1], flat[at + 2], flat[at + 3]];
    if (y1 > y !== y2 > y) found.push(x1 + ((y - y1) * (x2 - x1)) / (y2 - y1));
  }
  return found;
}

// --- what Plotly draws ----------------------------------------------------------------------

function svgPath(flat) {
  let path = `M${flat[0]},${flat[1]}`;
  for (let at = 2; at < flat.length; at += 2) path += `L${flat[at]},${flat[at + 1]}`;
  return `${path}Z`;
}

// One shape a class; without classes the outlines alone, to lie over a grid. Shapes have no hatching.
function zoneShapes(zones, classes) {
  const line = { color: colour("--map-line"), width: zones.length > 500 ? 0.4 : 0.9 };
  const paths = new Map();
  zones.forEach(({ path }, place) => {
    const found = classes ? classes[place] : NOT_ASKED;
    if (!(found in PATTERNS)) paths.set(found, (paths.get(found) ?? "") + path);
  });
  const look = { type: "path", fillrule: "nonzero", layer: "below", line };
  const colourOf = classes ? classColour : () => "rgba(0,0,0,0)";
  return [...paths].map(([found, path]) => ({ ...look, path, fillcolor: colourOf(found) }));
}

function classColour(found) {
  return colour(found === NOT_ASKED ? "--surface-2" : `--map-${found + 1}`);
}

// Zones that are not to be read, hatched; those that a policy hides, dotted.
function hatchedTraces(zones, classes, kind) {
  const hatched = zones.filter((_, place) => classes?.[place] === kind);
  if (!hatched.length) return [];
  const hatch = { fgcolor: colour("--border-strong"), bgcolor: colour("--surface-2") };
  const trace = {
    type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip", x: [], y: [],
    line: { color: colour("--map-line"), width: 0.9 },
    fillpattern: { ...PATTERNS[kind], ...hatch },
  };
  hatched.forEach(({ rings }) => rings.forEach((ring) => addPath(trace, ring)));
  return [trace];
}

// Rivers, roads and borders.
const LAYER_LINES = {
  water: { colour: "--map-river", width: 1.3 },
  road: { colour: "--map-road", width: 1.3 },
  border: { colour: "--map-border", width: 1.6, dash: "6px,3px" },
  other: { colour: "--map-layer", width: 1.4 },
};

function layerTraces(layers) {
  return layers.filter((layer) => !layer.is_filled).map(({ look, paths }) => {
    const trace = { type: "scatter", mode: "lines", hoverinfo: "skip", x: [], y: [] };
    const line = LAYER_LINES[look];
    trace.line = { color: colour(line.colour), width: line.width, dash: line.dash ?? "solid" };
    paths.forEach((path) => addPath(trace, path));
    return trace;
  });
}

// Seas and lakes lie over zones.
function waterShapes(layers) {
  const line = { color: colour("--map-river"), width: 0.9 };
  const look = { type: "path", fillrule: "evenodd", layer: "below", fillcolor: colour("--map-water"), line };
  return layers.filter((layer) => layer.is_filled).map(({ paths }) => ({ ...look, path: paths.map(svgPath).join("") }));
}

// Flows: a path with its arrowhead each, the largest on top.
function arcTraces(arcs = []) {
  return arcs.map(({ path, width }) => {
    const trace = { type: "scatter", mode: "lines", hoverinfo: "skip", opacity: 0.85, x: [], y: [] };
    trace.line = { color: colour("--flow-arc"), width };
    addPath(trace, path);
    return trace;
  });
}

// Zones that have room for their names at this scale, and those of the darkest class whose names meet no other.
function namedZones(zones, classes, metresPerPixel) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${NAME_PX}px sans-serif`;
  const widthOf = ({ name }) => (pen.measureText(name).width + NAME_PX) * metresPerPixel;
  const meets = (one, other) =>
    2 * Math.abs(one.room[0] - other.room[0]) < widthOf(one) + widthOf(other) &&
    Math.abs(one.room[1] - other.room[1]) < 1.3 * NAME_PX * metresPerPixel;
  const named = zones.filter((zone) => widthOf(zone) < zone.room[2]);
  const inside = new Set(named);
  const top = (classes ?? []).reduce((most, found) => Math.max(most, found), 1);
  zones.forEach((zone, place) => {
    if (classes?.[place] === top && !named.some((other) => meets(zone, other))) named.push(zone);
  });
  return named.map((zone) => ({ zone, isInside: inside.has(zone) }));
}

// Dark ink on light grounds, and light ink on dark ones; the outline is that of the ground.
function inkOn(ground) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(ground.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#10161c" : "#ffffff";
}

function nameTraces(zones, classes, metresPerPixel) {
  const byGround = new Map();
  for (const { zone, isInside } of namedZones(zones, classes, metresPerPixel)) {
    // A name that reaches beyond its zone stands on several colours: it gets the ground of the page around it.
    const found = isInside ? classes?.[zones.indexOf(zone)] : undefined;
    const ground = found === undefined ? colour("--bg") : classColour(Math.max(found, NOT_ASKED));
    byGround.set(ground, [...(byGround.get(ground) ?? []), zone]);
  }
  return [...byGround].map(([ground, named]) => {
    const [x, y] = [0, 1].map((axis) => named.map(({ room }) => room[axis]));
    const textfont = { size: NAME_PX, color: inkOn(ground), shadow: shadowOf(ground) };
    // Plotly reads markup, and would set it with styles that the content policy refuses.
    const text = named.map(({ name }) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;"));
    return { type: "scatter", mode: "text", hoverinfo: "skip", text, textfont, x, y };
  });
}

function shadowOf(ground) {
  const sides = ["1px 1px", "-1px 1px", "1px -1px", "-1px -1px", "2px 0", "-2px 0", "0 2px", "0 -2px"];
  return sides.map((by) => `${by} 1px ${ground}`).join(", ");
}

// Cells of an operator, as dots.
function pointTraces(points = []) {
  if (!points.length) return [];
  const marker = { color: colour("--map-layer"), size: 5, line: { color: colour("--bg"), width: 1 } };
  const [x, y] = [0, 1].map((axis) => points.filter((_, at) => at % 2 === axis));
  return [{ type: "scatter", mode: "markers", hoverinfo: "skip", marker, x, y }];
}

// A grid as an image of one pixel a cell; the style sheet keeps the edges of its pixels sharp.
function gridImage({ x0, y0, step, n_x: nX, n_y: nY, classes }) {
  const canvas = document.createElement("canvas");
  canvas.width = nX;
  canvas.height = nY;
  const context = canvas.getContext("2d");
  const image = context.createImageData(nX, nY);
  const palette = new Map();
  classes.forEach((found, code) => {
    if (found === NOT_ASKED) return; // see-through
    if (!palette.has(found)) {
      const hex = found === NOT_READ ? colour("--border-strong") : colour(`--map-${found + 1}`);
      palette.set(found, [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    }
    const row = nY - 1 - Math.floor(code / nX); // rows of an image go down, those of a grid north
    image.data.set([...palette.get(found), 255], 4 * (row * nX + (code % nX)));
  });
  context.putImageData(image, 0, 0);
  return {
    source: canvas.toDataURL(), xref: "x", yref: "y", layer: "below", sizing: "stretch",
    x: x0, y: y0 + nY * step, sizex: nX * step, sizey: nY * step, xanchor: "left", yanchor: "top",
  };
}

// Seas and lakes as a picture below a grid, which no shape can be: reports in the water stay to be seen.
function waterImages(layers, [west, south, east, north]) {
  const [width, height] = [east - west, north - south].map((length) => 3 * length); // also when zoomed out
  const [left, top] = [west - width / 3, north + height / 3];
  return layers.filter((layer) => layer.is_filled).map(({ paths }) => {
    const outlines = paths.map((flat) => svgPath(flat.map((value, at) => (at % 2 ? top - value : value - left))));
    const look = `fill="${colour("--map-water")}" stroke="${colour("--map-river")}" vector-effect="non-scaling-stroke"`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" preserveAspectRatio="none"><path fill-rule="evenodd" ${look} d="${outlines.join("")}"/></svg>`;
    return {
      source: `data:image/svg+xml,${encodeURIComponent(svg)}`, xref: "x", yref: "y", layer: "below", sizing: "stretch",
      x: left, y: top, sizex: width, sizey: height, xanchor: "left", yanchor: "top",
    };
  });
}

function cellAt({ x0, y0, step, n_x: nX, n_y: nY }, x, y) {
  const [column, row] = [Math.floor((x - x0) / step), Math.floor((y - y0) / step)];
  return column >= 0 && row >= 0 && column < nX && row < nY ? row * nX + column : -1;
}

// --- one map --------------------------------------------------------------------------------

class Panel {
  constructor(frame, map) {
    this.map = map;
    this.plot = frame.querySelector(".map__plot");
    this.hover = frame.querySelector(".map__hover");
    this.scale = frame.querySelector(".map__scale");
    this.blank = frame.querySelector(".map__blank");
    this.frame = frame;
    frame.addEventListener("pointermove", (event) => this.pointAt(event));
    frame.addEventListener("pointerdown", (event) => this.pointAt(event));
    frame.addEventListener("pointerleave", () => { this.hover.hidden = true; });
    frame.addEventListener("keydown", (event) => map.onKey(event));
  }

  get width() { return this.plot.clientWidth; }

  async draw(content) {
    this.content = content;
    this.blank.textContent = content.blank;
    this.blank.hidden = !content.blank;
    const { zones, layers } = this.map.shapes;
    const classes = content.grid ? null : content.classes;
    const blanks = [NOT_READ, HIDDEN].flatMap((kind) => hatchedTraces(zones, classes, kind));
    const data = [...blanks, ...layerTraces(layers), ...arcTraces(content.arcs), ...pointTraces(content.points)];
    data.push(...nameTraces(zones, classes, this.map.view.metresPerPixel));
    this.named = this.map.view.metresPerPixel;
    const [xRange, yRange] = this.map.ranges(this);
    const layout = {
      width: this.width, height: this.map.height(this), margin: { l: 0, r: 0, t: 0, b: 0 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: false,
      dragmode: DRAG, images: content.grid ? this.images(content) : [],
      shapes: content.grid ? zoneShapes(zones, classes) : [...zoneShapes(zones, classes), ...waterShapes(layers)],
      xaxis: { ...NO_AXIS, range: xRange }, yaxis: { ...NO_AXIS, range: yRange },
    };
    await globalThis.Plotly.react(this.plot, data, layout, CONFIG);
    this.plot.removeAllListeners("plotly_relayout");
    this.plot.on("plotly_relayout", () => this.map.moved(this));
    this.drawScale();
  }

  images({ grid, classes }) {
    const { layers, bounds } = this.map.shapes;
    return [...waterImages(layers, bounds), gridImage({ ...grid, classes })];
  }

  look() {
    if (this.named !== this.map.view.metresPerPixel) return this.draw(this.content); // other names have room
    const [xRange, yRange] = this.map.ranges(this);
    this.drawScale();
    return globalThis.Plotly.relayout(this.plot, { "xaxis.range": xRange, "yaxis.range": yRange });
  }

  // A bar of a round length, in metres or kilometres.
  drawScale() {
    const metres = 110 * this.map.view.metresPerPixel;
    const power = 10 ** Math.floor(Math.log10(metres));
    const length = [5, 2, 1].find((step) => step * power <= metres) * power;
    this.scale.textContent = length >= 1000 ? `${length / 1000} km` : `${length} m`;
    this.scale.style.width = `${length / this.map.view.metresPerPixel}px`;
    this.scale.hidden = false;
  }

  pointAt(event) {
    const box = this.plot.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    const isDragging = event.type === "pointermove" && event.buttons > 0;
    const text = this.content && !isDragging ? this.textAt(left, top) : "";
    this.hover.hidden = !text;
    if (!text) return;
    this.hover.textContent = text;
    const room = this.hover.offsetWidth + 18;
    this.hover.style.left = `${left + room > box.width ? Math.max(left - room + 6, 0) : left + 12}px`;
    this.hover.style.top = `${Math.min(top + 12, Math.max(box.height - this.hover.offsetHeight, 0))}px`;
  }

  textAt(left, top) {
    const { x, y, metresPerPixel } = this.map.view;
    const east = x + (left - this.width / 2) * metresPerPixel;
    const north = y - (top - this.map.height(this) / 2) * metresPerPixel;
    const { grid, texts } = this.content;
    const zone = zoneAt(this.map.shapes.zones, east, north);
    if (!grid) return texts[zone] ?? "";
    const code = cellAt(grid, east, north);
    if (code < 0) return "";
    return [this.map.shapes.zones[zone]?.name, cellText(this.content, code)].filter(Boolean).join("\n");
  }
}

// The numbers of a cell in the sentence of its panel: "{0} ({1} to {2})".
function cellText({ pattern, numbers, none, classes, decimal, thousands }, code) {
  if (classes[code] === NOT_ASKED) return none;
  return pattern.replace(/\{(\d)\}/g, (_, place) => {
    const [whole, part] = String(numbers[Number(place)][code]).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
    return part ? grouped + decimal + part : grouped;
  });
}

// --- a figure with its panels ---------------------------------------------------------------

class MapFigure {
  constructor(figure) {
    this.figure = figure;
    const { shapes, frame } = JSON.parse(document.getElementById(figure.dataset.map).textContent);
    this.shapes = shapes;
    this.shapes.zones.forEach((zone) => {
      zone.box = boxOf(zone.rings);
      zone.room = roomOf(zone);
      zone.path = zone.rings.map(svgPath).join("");
    });
    this.first = frame;
    this.shown = frame;
    this.day = Number(figure.dataset.day ?? 0);
    this.panels = [...figure.querySelectorAll(".map__frame")].map((each) => new Panel(each, this));
    this.wholeArea();
    this.connect();
    this.redraw();
    new ResizeObserver(() => this.resized()).observe(this.panels[0].frame);
  }

  // The area fills the panel: that is the largest view.
  get wholeMetresPerPixel() {
    const [west, south, east, north] = this.shapes.bounds;
    const panel = this.panels[0];
    return MARGIN * Math.max((east - west) / panel.width, (north - south) / this.height(panel), 1e-6);
  }

  wholeArea() {
    const [west, south, east, north] = this.shapes.bounds;
    const metresPerPixel = this.wholeMetresPerPixel;
    this.view = { x: (west + east) / 2, y: (south + north) / 2, metresPerPixel };
    this.size = this.panels[0].width;
  }

  height(panel) {
    const [west, south, east, north] = this.shapes.bounds;
    const wanted = panel.width * ((north - south) / Math.max(east - west, 1));
    return Math.round(Math.min(Math.max(wanted, HEIGHT.least), HEIGHT.most));
  }

  ranges(panel) {
    const { x, y, metresPerPixel } = this.view;
    const [halfWidth, halfHeight] = [panel.width, this.height(panel)].map((px) => (px / 2) * metresPerPixel);
    return [[x - halfWidth, x + halfWidth], [y - halfHeight, y + halfHeight]];
  }

  redraw() {
    return Promise.all(this.panels.map((panel, place) => panel.draw(this.shown.panels[place])));
  }

  look() {
    return Promise.all(this.panels.map((panel) => panel.look()));
  }

  resized() {
    const { width } = this.panels[0];
    if (!width || width === this.size) return;
    this.wholeArea();
    this.redraw();
  }

  // Somebody has dragged a panel: the others follow.
  moved(panel) {
    const { xaxis, yaxis } = panel.plot.layout;
    const [x, y] = [(xaxis.range[0] + xaxis.range[1]) / 2, (yaxis.range[0] + yaxis.range[1]) / 2];
    if (Math.hypot(x - this.view.x, y - this.view.y) < this.view.metresPerPixel) return;
    this.view = { ...this.view, x, y };
    this.panels.filter((other) => other !== panel).forEach((other) => other.look());
  }

  zoom(factor) {
    const whole = this.wholeMetresPerPixel;
    const wanted = this.view.metresPerPixel * factor;
    this.view = { ...this.view, metresPerPixel: Math.min(Math.max(wanted, whole / MAX_ZOOM), 2 * whole) };
    return this.look();
  }

  pan(right, up) {
    const step = 0.2 * this.panels[0].width * this.view.metresPerPixel;
    this.view = { ...this.view, x: this.view.x + right * step, y: this.view.y + up * step };
    return this.look();
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
    if (event.key in moves) this.pan(...moves[event.key]);
    else if (event.key in zooms) this.zoom(zooms[event.key]);
    else return;
    event.preventDefault();
  }

  // --- buttons and days ---

  connect() {
    this.bar = this.figure.querySelector(".map__bar");
    this.bar.hidden = false;
    this.bar.addEventListener("click", ({ target }) => {
      const { zoom, step, play } = target.dataset;
      if (zoom === "whole") { this.wholeArea(); this.look(); } else if (zoom) this.zoom(Number(zoom));
      if (step) { this.stop(); this.step(Number(step)); }
      if (play) this.toggle();
    });
    this.pace = Number(this.bar.dataset.pace ?? PLAY_MS);
    this.button = this.bar.querySelector("[data-play]");
    // Whoever wants no motion steps by hand.
    if (this.button) this.button.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  async days() {
    if (!this.frames) {
      const answer = await fetch(this.bar.dataset.days, { headers: { Accept: "application/json" } });
      this.frames = (await answer.json()).frames;
    }
    return this.frames;
  }

  // Show the day after or before; false at either end.
  async step(by) {
    let frames;
    try {
      frames = await this.days();
    } catch {
      this.title(this.bar.dataset.failed);
      return false;
    }
    const next = this.day ? this.day + by : by > 0 ? 1 : frames.length;
    if (next < 1 || next > frames.length) return false;
    this.day = next;
    await this.show(frames[next - 1]);
    return true;
  }

  async show(frame) {
    this.shown = frame;
    this.title(frame.title);
    const isFirst = frame.title === this.first.title;
    const open = this.figure.querySelector("[data-open]");
    open.hidden = isFirst;
    open.href = `?${frame.query}`;
    this.figure.querySelectorAll("[data-window]").forEach((part) => { part.hidden = !isFirst; });
    this.panels.forEach((panel) => { panel.hover.hidden = true; });
    await this.redraw();
  }

  title(text) {
    const title = this.figure.querySelector("[data-title]");
    title.setAttribute("aria-live", this.timer ? "off" : "polite"); // a day a second is no speech
    title.textContent = text;
  }

  toggle() {
    if (this.timer) { this.stop(); return; }
    const play = async () => {
      const begun = performance.now();
      if (!(await this.step(1))) { this.stop(); return; }
      if (this.timer) this.timer = setTimeout(play, Math.max(this.pace - (performance.now() - begun), 0));
    };
    if (this.frames && this.day >= this.frames.length) this.day = 0; // from the beginning
    this.button.textContent = this.button.dataset.pause;
    this.timer = setTimeout(play, 0);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.button) this.button.textContent = this.button.dataset.play;
  }
}

const figures = [];
function drawNew() {
  document.querySelectorAll("[data-map]:not([data-drawn])").forEach((figure) => {
    figure.dataset.drawn = "";
    figures.push(new MapFigure(figure));
  });
}
drawNew();
document.addEventListener("htmx:afterSettle", drawNew); // a form may show a map of its files
const redrawAll = () => figures.forEach((figure) => figure.redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
// Paper has a light ground.
function forPaper(isPaper) {
  document.documentElement.classList.toggle("on-paper", isPaper);
  redrawAll();
}
addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
