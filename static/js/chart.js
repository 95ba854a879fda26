// Draws the figures of a page. A figure is data: <script type="application/json" id="name">, drawn into
// <div data-figure="name">. Colours are names of CSS custom properties, so it follows light and dark.

const COLOUR = /^(--[\w-]+)(?:\/([\d.]+))?$/;
// The width of a card on A4 or Letter, in CSS pixels. The paper's own is known only after charts are drawn for it.
const PAPER_WIDTH = 660;
const CONFIG = {
  responsive: true,
  displaylogo: false,
  showEditInChartStudio: false,
  showSendToCloud: false,
  displayModeBar: false,
  doubleClick: false,
};

function colour(name, opacity, styles) {
  const value = styles.getPropertyValue(name).trim();
  if (opacity === undefined) return value;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

// A copy of a figure with the colours of the moment.
function painted(node, styles) {
  if (Array.isArray(node)) return node.map((item) => painted(item, styles));
  if (node && typeof node === "object") {
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, painted(value, styles)]));
  }
  const match = typeof node === "string" && COLOUR.exec(node);
  return match ? colour(match[1], match[2], styles) : node;
}

function draw(element) {
  const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
  const { data, layout } = painted(figure, getComputedStyle(document.documentElement));
  // Plotly takes the height of the element when the window changes, and shrinks the chart to what it finds.
  if (layout.height) element.style.height = `${layout.height}px`;
  if (isOnPaper()) layout.width = Math.min(element.clientWidth, PAPER_WIDTH);
  return globalThis.Plotly.react(element, data, layout, CONFIG);
}

function isOnPaper() {
  return document.documentElement.classList.contains("on-paper");
}

function drawAll() {
  document.querySelectorAll("[data-figure]").forEach(draw);
}

drawAll();
// A part of the page that htmx has replaced has figures of its own.
document.addEventListener("htmx:afterSwap", (event) => {
  event.target.querySelectorAll("[data-figure]").forEach(draw);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// Paper has another width than the window, and a light ground.
function resizeAll() {
  document.querySelectorAll("[data-figure]").forEach((element) => globalThis.Plotly.Plots.resize(element));
}
function forPaper(isPaper) {
  document.documentElement.classList.toggle("on-paper", isPaper);
  drawAll();
  if (!isPaper) resizeAll();
}
// A chart in a closed part of the page has had no width until it opens.
document.addEventListener("toggle", (event) => {
  if (!event.target.open) return;
  event.target.querySelectorAll("[data-figure]").forEach((element) => globalThis.Plotly.Plots.resize(element));
}, true);
addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
