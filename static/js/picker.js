// Arrow keys in a grid of links. Without this script, every link of the grid is a stop of the Tab key; with
// it, the grid is one stop, and arrow keys move inside. Enter follows the link, as everywhere.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function linksOf(grid) {
  return [...grid.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.querySelector("a")));
}

function placeOf(rows, link) {
  for (const [row, links] of rows.entries()) {
    const column = links.indexOf(link);
    if (column >= 0) return [row, column];
  }
  return null;
}

// The next link in a direction; cells without one are passed over.
function neighbour(rows, [row, column], [down, right]) {
  for (let r = row + down, c = column + right; rows[r]?.[c] !== undefined; r += down, c += right) {
    if (rows[r][c]) return rows[r][c];
  }
  return null;
}

function target(rows, place, event) {
  if (event.key in STEPS) return neighbour(rows, place, STEPS[event.key]);
  const links = (event.ctrlKey ? rows.flat() : rows[place[0]]).filter(Boolean);
  if (event.key === "Home") return links[0];
  if (event.key === "End") return links.at(-1);
  return null;
}

function makeGrid(grid) {
  const rows = linksOf(grid);
  const links = rows.flat().filter(Boolean);
  if (!links.length) return;
  const select = (chosen) => links.forEach((link) => { link.tabIndex = link === chosen ? 0 : -1; });
  select(links.find((link) => link.hasAttribute("aria-current")) ?? links[0]);
  grid.addEventListener("keydown", (event) => {
    const place = placeOf(rows, event.target);
    const next = place && !event.altKey && !event.metaKey && target(rows, place, event);
    if (!next) return;
    event.preventDefault();
    select(next);
    next.focus();
  });
  grid.addEventListener("focusin", (event) => links.includes(event.target) && select(event.target));
}

document.querySelectorAll("table[role=grid]").forEach(makeGrid);
document.querySelectorAll("[data-keys]").forEach((hint) => { hint.hidden = false; });
