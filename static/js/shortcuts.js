// The list of keyboard shortcuts, and the shortcuts. Single keys work outside of fields only, and the list
// has a switch to turn them off: speech input types letters that nobody meant as commands.

const STORE = "shortcuts-off";
const dialog = document.getElementById("shortcuts");
const toggle = document.getElementById("shortcuts-off");

// A tick or a button takes no letters. One that has the focus may also be hidden: closing the list leaves the
// focus on its tick until the browser draws the page again, and the next key may be faster than that.
const FIELDS = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), select, textarea";

function isTyping(target) {
  return target.closest(`${FIELDS}, [contenteditable]`) !== null;
}

function read() {
  try {
    return localStorage.getItem(STORE) === "1";
  } catch {
    return false; // storage is forbidden here: shortcuts stay on
  }
}

function write(isOff) {
  try {
    localStorage.setItem(STORE, isOff ? "1" : "0");
  } catch {
    // as above
  }
}

function follow(entry) {
  const { go, focus } = entry.dataset;
  if (go) location.assign(go);
  const element = focus && document.getElementById(focus);
  if (element) {
    element.closest("details")?.setAttribute("open", "");
    element.scrollIntoView();
    // Of a grid it is the cell from which the arrow keys go on.
    (element.querySelector("[role=grid] [tabindex='0']") ?? element).focus();
  }
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target) || dialog.open) return;
  if (toggle.checked) return;
  if (event.key === "?") {
    event.preventDefault();
    dialog.showModal();
    return;
  }
  const entry = dialog.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!entry) return;
  event.preventDefault();
  follow(entry);
}

toggle.checked = read();
toggle.addEventListener("change", () => write(toggle.checked));
document.addEventListener("keydown", onKey);
document.querySelectorAll("[data-opens=shortcuts]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
});
