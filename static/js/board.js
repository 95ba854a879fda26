// Arranges a board without loading it again. Each button is sent by its form, which also works without this.
const board = document.querySelector("[data-arrange]");
const status = document.getElementById("board-status");
let sent = Promise.resolve();

// A button that is pressed or not, and the class of the tile that follows it.
function toggle(tile, button, name) {
  const isOn = tile.classList.toggle(name);
  [button.value, button.dataset.other] = [button.dataset.other, button.value];
  button.setAttribute("aria-pressed", String(isOn));
  tile.querySelectorAll("[data-figure]").forEach((chart) => globalThis.Plotly.Plots.resize(chart));
}

const wide = (tile, button) => toggle(tile, button, "board__wide");
const hidden = (tile, button) => toggle(tile, button, "board__hidden");
const CHANGES = {
  up: (tile) => tile.previousElementSibling?.before(tile),
  down: (tile) => tile.nextElementSibling?.after(tile),
  wide, small: wide, hide: hidden, show: hidden,
  remove: (tile) => {
    (tile.nextElementSibling ?? tile.previousElementSibling)?.querySelector("[data-tile] button").focus();
    tile.remove();
  },
};

// What would change nothing cannot be pressed.
function disableAtTheEnds() {
  for (const tile of board.children) {
    tile.querySelector("[value=up]").disabled = !tile.previousElementSibling;
    tile.querySelector("[value=down]").disabled = !tile.nextElementSibling;
  }
}

board?.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  const change = CHANGES[button?.value];
  if (!("tile" in form.dataset) || !change) return;
  event.preventDefault();
  const asked = { method: "POST", body: new FormData(form, button), headers: { "HX-Request": "true" } };
  // One after the other, in the order in which they were pressed.
  sent = sent.then(() => fetch(form.action, asked)).then(
    (answer) => {
      if (answer.status === 204) status.textContent = [button.dataset.said, status.dataset.saved].filter(Boolean).join(". ");
      else location.reload();
    },
    () => location.reload(),
  );
  change(form.closest("li"), button);
  disableAtTheEnds();
  if (button.isConnected) (button.disabled ? form.querySelector("button:enabled") : button).focus();
  status.textContent = "";
});
